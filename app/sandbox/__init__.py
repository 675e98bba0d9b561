"""A private Sigstore and an OCI registry on loopback: for the demo, for tests, for hostile modes."""
