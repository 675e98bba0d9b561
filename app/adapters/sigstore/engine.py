"""The engine: sigstore's verifier over trust material that is parsed once, with what it established kept.

Uses names that are not sigstore's public interface, which is why the version is pinned exactly: `verify_dsse` returns
the payload only, while S11 and S12 need the times that it verified and the authority that issued the certificate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cryptography.x509 import Certificate
from sigstore._internal.timestamp import TimestampSource, TimestampVerificationResult
from sigstore._internal.trust import CertificateAuthority, CTKeyring, Keyring, KeyringPurpose, RekorKeyring
from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier
from sigstore.verify.policy import VerificationPolicy
from sigstore_models.bundle.v1 import Bundle as BundleModel
from sigstore_models.trustroot.v1 import TransparencyLogInstance
from sigstore_models.trustroot.v1 import TrustedRoot as TrustedRootModel


class TrustMaterial(TrustedRoot):
    """A trusted root whose keys and chains are loaded once; `logs` narrows it to some of its transparency logs.

    With one log only, nothing but that log's own key can vouch for an entry: the engine tries every key it has when
    the log id is not the hash of a key, as with Rekor v2.
    """

    def __init__(self, inner: TrustedRootModel, logs: Iterable[TransparencyLogInstance] | None = None) -> None:
        super().__init__(inner)
        keys = [log.public_key for log in (inner.tlogs if logs is None else logs)]
        self._rekor = RekorKeyring(Keyring(keys))
        self._ct = CTKeyring(Keyring([log.public_key for log in inner.ctlogs]))
        self._authorities = [CertificateAuthority(authority) for authority in inner.timestamp_authorities]
        self._fulcio = super().get_fulcio_certs()

    @property
    def usable(self) -> bool:
        """Whether the logs and the CT logs have a key at all that the engine can use; it leaves out the others."""
        return bool(self._rekor._keyring) and bool(self._ct._keyring)  # noqa: SLF001

    def rekor_keyring(self, purpose: KeyringPurpose) -> RekorKeyring:
        """The logs' keys; whether each was in force is S11's question, asked for the verified times."""
        del purpose
        return self._rekor

    def ct_keyring(self, purpose: KeyringPurpose) -> CTKeyring:
        """The CT logs' keys; windows as above."""
        del purpose
        return self._ct

    def get_timestamp_authorities(self) -> list[CertificateAuthority]:
        """The timestamp authorities, parsed."""
        return self._authorities

    def get_fulcio_certs(self) -> list[Certificate]:
        """Every certificate of the certificate authorities."""
        return self._fulcio


@dataclass(frozen=True, slots=True)
class VerifiedTime:
    """A time that the engine verified, and the certificate that issued the leaf, as valid at that time."""

    at: datetime
    issuer: Certificate
    stamped: bool  # by a timestamp authority; otherwise the log's integrated time


class Engine(Verifier):
    """One verification by sigstore; afterwards `times` says what it established."""

    def __init__(self, material: TrustMaterial) -> None:
        # Not the base's: it would open an HTTP session for a log that is never asked.
        self._fulcio_certificate_chain = material.get_fulcio_certs()
        self._trusted_root = material
        self.times: list[VerifiedTime] = []

    def run(self, bundle: Bundle, policy: VerificationPolicy) -> bytes:
        """Verify an envelope; the payload that is signed. Raises whatever sigstore raises."""
        return self.verify_dsse(bundle, policy)[1]

    def _verify_chain_at_time(
        self, certificate: Certificate, timestamp_result: TimestampVerificationResult
    ) -> list[Certificate]:
        chain = super()._verify_chain_at_time(certificate, timestamp_result)
        stamped = timestamp_result.source is TimestampSource.TIMESTAMP_AUTHORITY
        self.times.append(VerifiedTime(timestamp_result.time, chain[0], stamped))
        return chain


def load_bundle(document: object) -> Bundle:
    """The engine's bundle from JSON values that were read already; raises whatever sigstore raises."""
    return Bundle(BundleModel.model_validate(document))
