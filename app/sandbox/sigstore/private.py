"""A whole private Sigstore in one object: fresh keys each time, nothing on disk, nothing on the network."""

from datetime import UTC, datetime
from typing import Final

from app.sandbox.identities import SandboxIdentity
from app.sandbox.sigstore import documents
from app.sandbox.sigstore.authority import EPOCH, CertificateAuthority, CtLog, Curve
from app.sandbox.sigstore.documents import Windows
from app.sandbox.sigstore.faults import HONESTLY, Faults
from app.sandbox.sigstore.log import LogVersion, TransparencyLog
from app.sandbox.sigstore.mint import Instance, mint
from app.sandbox.sigstore.timestamping import TimestampAuthority

SANDBOX_HOST: Final = "sandbox.example"
GENESIS: Final = b'{"apiVersion":"0.0.0","kind":"sandbox-genesis","spec":{}}'


class PrivateSigstore:
    """CA, CT log, two Rekor logs and a timestamp authority that trust one another and that nobody else trusts.

    It certifies whoever it is asked to, also identities of public issuers: only who loads its trusted root believes
    it, and that is why such a root must be limited to issuers (service 2, `TRUSTED_ROOT`).

    Logs begin with one entry that is nobody's. With `empty_logs` the first signature has index 0 and a proof without
    hashes, which no long-running log gives out any more: encoders that drop protobuf defaults then write bundles that
    strict readers refuse.
    """

    def __init__(self, *, curve: Curve = Curve.P256, host: str = SANDBOX_HOST, empty_logs: bool = False) -> None:
        self.host = host
        self.ca = CertificateAuthority(host, curve=curve)
        self.ct_log = CtLog()
        self.logs = {version: TransparencyLog(version, host) for version in LogVersion}
        if not empty_logs:
            for log in self.logs.values():
                log.append(GENESIS, int(EPOCH.timestamp()))
        self.timestamping = TimestampAuthority(host)
        self.instance = Instance(
            self.ca, self.ct_log, self.timestamping, CtLog(), TimestampAuthority("stranger.example")
        )

    def mint(
        self,
        statement: bytes,
        identity: SandboxIdentity,
        *,
        log: LogVersion | str = LogVersion.V2,
        at: datetime | None = None,
        faults: Faults = HONESTLY,
    ) -> bytes:
        """A Sigstore bundle (v0.3 JSON) over `statement`, signed keyless by `identity`.

        `at` is the time of signing, now when None; what else depends on nothing but the arguments and on how many
        entries the log already has.
        """
        return mint(
            self.instance,
            self.logs[LogVersion(log)],
            statement,
            identity,
            at=at or datetime.now(UTC),  # noqa: TID251  the sandbox may read the clock
            faults=faults,
        )

    def trusted_root_json(self, windows: Windows | None = None) -> bytes:
        """What a verifier has to load to believe this instance."""
        return documents.trusted_root(
            self.host,
            ca=self.ca,
            ct_log=self.ct_log,
            logs=self.logs.values(),
            timestamping=self.timestamping,
            windows=windows or Windows(),
        )

    def signing_config_json(
        self, base_url: str, *, log: LogVersion | str = LogVersion.V2, timestamps: bool | None = None
    ) -> bytes:
        """Where a signer finds the services of this instance when `sigstore.server` serves them at `base_url`.

        A v1 log tells the time itself, a v2 log does not: `timestamps` None asks the authority for v2 only.
        """
        version = LogVersion(log)
        stamped = version is LogVersion.V2 if timestamps is None else timestamps
        return documents.signing_config(base_url, log=version, timestamps=stamped, operator=self.host)
