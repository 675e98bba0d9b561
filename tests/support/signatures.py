"""Bundles to judge: one private Sigstore a test process, a sample statement, and a judge that trusts it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from app.adapters.sigstore.roots import TrustRoot, TrustRoots, load_root
from app.adapters.sigstore.verifier import SignatureLimits, SigstoreVerifier
from app.core.bundle import Pins, SignatureRefused, VerifiedSignature
from app.core.refs import Digest
from app.sandbox.identities import OCTOCAT, SandboxIdentity
from app.sandbox.sigstore import Faults, LogVersion, PrivateSigstore, Windows

AT = datetime(2026, 5, 8, 10, 24, 0, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ARTIFACT = Digest("1f0c0ffee".ljust(64, "0"))
V3 = "https://aicr.run/recipe-evidence/v3"


@cache
def sigstore() -> PrivateSigstore:
    """The instance that signs the tests' bundles."""
    return PrivateSigstore()


def statement_json(**changes: Any) -> bytes:
    """A statement of recipe evidence about `ARTIFACT`; a change of None takes the key out."""
    document: dict[str, Any] = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "registry.example.org/evidence:h100", "digest": {"sha256": ARTIFACT.hex}}],
        "predicateType": V3,
        "predicate": {
            "schemaVersion": "1.0.0",
            "attestedAt": "2026-05-08T10:23:11Z",
            "recipe": {"name": "h100-eks-ubuntu-training", "digest": "ab" * 32},
            "phases": {},
        },
    }
    document |= changes
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


STATEMENT = statement_json()


def minted(
    *,
    log: LogVersion | str = LogVersion.V2,
    identity: SandboxIdentity = OCTOCAT,
    statement: bytes = STATEMENT,
    at: datetime = AT,
    **faults: Any,
) -> bytes:
    """A bundle of the private Sigstore, with the faults that are named."""
    return sigstore().mint(statement, identity, log=log, at=at, faults=Faults(**faults))


def edited(bundle: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """The bundle with its JSON changed in place; nothing is signed again."""
    document = json.loads(bundle)
    edit(document)
    return json.dumps(document).encode()


def private_root(
    name: str = "sandbox", *, issuers: frozenset[str] | None = None, windows: Windows | None = None
) -> TrustRoot:
    """The private Sigstore's root, for every issuer unless limited."""
    return load_root(name, sigstore().trusted_root_json(windows), issuers=issuers, reserved=frozenset())


@cache
def verifier() -> SigstoreVerifier:
    """A judge that trusts the private Sigstore and nobody else."""
    return SigstoreVerifier(TrustRoots((private_root(),)))


def judged(
    bundle: bytes,
    *,
    by: SigstoreVerifier | None = None,
    artifact: Digest | None = ARTIFACT,
    pins: Pins | None = None,
) -> VerifiedSignature | SignatureRefused:
    """What the judge says."""
    return (by or verifier()).verify(bundle, artifact=artifact, pins=pins or Pins(), now=NOW)


def accepted(bundle: bytes, **options: Any) -> VerifiedSignature:
    """The signature that the judge accepted; fails with its reason otherwise."""
    verdict = judged(bundle, **options)
    assert isinstance(verdict, VerifiedSignature), verdict
    return verdict


def refused(bundle: bytes, **options: Any) -> SignatureRefused:
    """The refusal of the judge; fails when it accepts."""
    verdict = judged(bundle, **options)
    assert isinstance(verdict, SignatureRefused), verdict
    return verdict


def limited(max_bundle_bytes: int) -> SigstoreVerifier:
    """A judge with another size limit."""
    return SigstoreVerifier(verifier().roots, SignatureLimits(max_bundle_bytes))
