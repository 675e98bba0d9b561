"""The two files that a Sigstore instance hands to its clients: trusted root and signing configuration."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

from app.sandbox.sigstore.authority import EPOCH, CertificateAuthority, CtLog, certificate_der, spki
from app.sandbox.sigstore.entries import b64
from app.sandbox.sigstore.log import LogVersion, TransparencyLog
from app.sandbox.sigstore.timestamping import TimestampAuthority

TRUSTED_ROOT_TYPE: Final = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"
SIGNING_CONFIG_TYPE: Final = "application/vnd.dev.sigstore.signingconfig.v0.2+json"


@dataclass(frozen=True, slots=True)
class Window:
    """`validFor` of one entry of a trusted root; open-ended when `end` is None."""

    start: datetime = EPOCH
    end: datetime | None = None

    def to_json(self) -> dict[str, str]:
        """As protobuf JSON writes it."""
        return {"start": _instant(self.start)} | ({"end": _instant(self.end)} if self.end else {})


@dataclass(frozen=True, slots=True)
class Windows:
    """From when to when a trusted root believes each part (S11)."""

    ca: Window = field(default_factory=Window)
    ct_log: Window = field(default_factory=Window)
    rekor_v1: Window = field(default_factory=Window)
    rekor_v2: Window = field(default_factory=Window)
    timestamping: Window = field(default_factory=Window)


def trusted_root(
    host: str,
    *,
    ca: CertificateAuthority,
    ct_log: CtLog,
    logs: Iterable[TransparencyLog],
    timestamping: TimestampAuthority,
    windows: Windows,
) -> bytes:
    """A `trusted_root.json` with these parts; base URLs name the logs and are never called (see `signing_config`)."""
    tlogs = [
        _log(log.base_url, log.key.public_key(), log.log_id, _window(log, windows))
        for log in sorted(logs, key=lambda log: log.version)
    ]
    return _dump(
        {
            "mediaType": TRUSTED_ROOT_TYPE,
            "tlogs": tlogs,
            "certificateAuthorities": [_authority(host, f"https://fulcio.{host}", ca.chain, windows.ca)],
            "ctlogs": [_log(f"https://ctfe.{host}", ct_log.key.public_key(), ct_log.log_id, windows.ct_log)],
            "timestampAuthorities": [
                _authority(
                    host,
                    f"https://timestamp.{host}/api/v1/timestamp",
                    timestamping.chain,
                    windows.timestamping,
                )
            ],
        }
    )


def signing_config(base_url: str, *, log: LogVersion, timestamps: bool, operator: str) -> bytes:
    """A `signing_config.json` whose services are those of `sigstore.server` at `base_url`."""

    def service(path: str = "", version: int = 1) -> dict[str, Any]:
        return {
            "url": f"{base_url}{path}",
            "majorApiVersion": version,
            "validFor": {"start": _instant(EPOCH)},
            "operator": operator,
        }

    version = 2 if log is LogVersion.V2 else 1
    config: dict[str, Any] = {
        "mediaType": SIGNING_CONFIG_TYPE,
        "caUrls": [service()],
        "oidcUrls": [service()],
        "rekorTlogUrls": [service(version=version)],
        "rekorTlogConfig": {"selector": "ANY"},
    }
    if timestamps:
        config |= {"tsaUrls": [service("/api/v1/timestamp")], "tsaConfig": {"selector": "ANY"}}
    return _dump(config)


def _window(log: TransparencyLog, windows: Windows) -> Window:
    return windows.rekor_v1 if log.version is LogVersion.V1 else windows.rekor_v2


def _log(base_url: str, key: PublicKeyTypes, log_id: bytes, window: Window) -> dict[str, Any]:
    ed = isinstance(key, ed25519.Ed25519PublicKey)
    return {
        "baseUrl": base_url,
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": b64(spki(key)),
            "keyDetails": "PKIX_ED25519" if ed else "PKIX_ECDSA_P256_SHA_256",
            "validFor": window.to_json(),
        },
        "logId": {"keyId": b64(log_id)},
    }


def _authority(host: str, uri: str, chain: tuple[x509.Certificate, ...], window: Window) -> dict[str, Any]:
    common_name = chain[-1].subject.rfc4514_string().partition("CN=")[2].partition(",")[0]
    return {
        "subject": {"organization": host, "commonName": common_name},
        "uri": uri,
        "certChain": {"certificates": [{"rawBytes": b64(certificate_der(certificate))} for certificate in chain]},
        "validFor": window.to_json(),
    }


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _dump(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
