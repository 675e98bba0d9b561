"""Sigstore's verifier as its own documentation uses it, without any rule of ours: the yardstick of `app.bench`.

Never judges evidence.
"""

from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity


class BareVerifier:
    """`verify_dsse` under one root, loaded once; what it accepts is not evidence (trust 1.2 says why)."""

    def __init__(self, trusted_root: str) -> None:
        self._verifier = Verifier(trusted_root=TrustedRoot.from_file(trusted_root))

    def parse(self, bundle: bytes) -> object:
        """The library's own form of a bundle, for `verify`."""
        return Bundle.from_json(bundle)

    def verify(self, bundle: object, *, identity: str, issuer: str) -> bytes:
        """The payload of a parsed bundle; raises whatever sigstore raises."""
        if not isinstance(bundle, Bundle):
            raise TypeError("expected a bundle that `parse` returned")
        return self._verifier.verify_dsse(bundle, Identity(identity=identity, issuer=issuer))[1]
