"""Trusted roots: which are in force, for which issuers each may speak, and until when (service 2, `TRUSTED_ROOT`).

Roots are read from files that the operator controls, or from the one that the library ships; never from a user's cache
directory, whose content would be trusted unverified (trust 1.1). No network.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import ValidationError
from sigstore_models.common.v1 import PublicKey, PublicKeyDetails, TimeRange
from sigstore_models.trustroot.v1 import CertificateAuthority, TransparencyLogInstance
from sigstore_models.trustroot.v1 import TrustedRoot as TrustedRootModel

from app.adapters.sigstore.engine import TrustMaterial
from app.core.errors import InputError

PUBLIC_GOOD: Final = "public-good"
MAX_ROOT_BYTES: Final = 4 << 20

PUBLIC_GOOD_ISSUERS: Final = frozenset(
    {
        "https://accounts.google.com",
        "https://agent.buildkite.com",
        "https://github.com/login/oauth",
        "https://gitlab.com",
        "https://login.microsoftonline.com",
        "https://oauth2.sigstore.dev/auth",
        "https://oidc.codefresh.io",
        "https://token.actions.githubusercontent.com",
    }
)
"""Issuers that public Fulcio certifies: beside an unlimited public-good root, no private root may claim them."""


@dataclass(frozen=True, slots=True)
class Window:
    """When a root trusts a key or an authority; both ends are inside."""

    start: datetime | None
    end: datetime | None

    def holds(self, at: datetime) -> bool:
        """Whether `at` lies in it."""
        return (self.start is None or self.start <= at) and (self.end is None or at <= self.end)

    def to_json(self) -> dict[str, str | None]:
        """`from` and `until`, null when open."""
        return {"from": _instant(self.start), "until": _instant(self.end)}

    def __str__(self) -> str:
        return f"{_instant(self.start) or 'the beginning'} to {_instant(self.end) or 'today'}"


@dataclass(frozen=True, slots=True)
class Log:
    """A transparency log that a root names; `material` trusts this log and no other."""

    name: str
    log_id: bytes
    window: Window
    material: TrustMaterial
    _hosts: frozenset[str]
    _ed25519: bytes | None

    def wrote(self, origin: str) -> bool:
        """Whether a checkpoint's origin is this log's.

        A v2 log's id is a hash over origin and key, so nothing else has to be known; a v1 origin is the log's host
        with the number of a tree behind it.
        """
        if self._ed25519 is not None:
            signed_note_id = hashlib.sha256(origin.encode() + b"\n\x01" + self._ed25519).digest()
            if signed_note_id == self.log_id:
                return True
        host, dash, tree = origin.partition(" - ")
        return host in self._hosts and (not dash or (tree.isascii() and tree.isdecimal()))


@dataclass(frozen=True, slots=True)
class TrustRoot:
    """One root: what it trusts, and for whom. `issuers` None is every issuer but those in `reserved`."""

    name: str
    sha256: str
    issuers: frozenset[str] | None
    reserved: frozenset[str]
    logs: Mapping[bytes, Log]
    material: TrustMaterial
    authorities: Mapping[bytes, tuple[Window, ...]]  # by the DER of a CA certificate
    ct_logs: Mapping[bytes, Window]
    description: Mapping[str, object] = field(default_factory=dict)

    def speaks_for(self, issuer: str) -> bool:
        """Whether this root may certify identities of `issuer`."""
        return issuer not in self.reserved if self.issuers is None else issuer in self.issuers


@dataclass(frozen=True, slots=True)
class RootSpec:
    """One item of the setting: the word `public-good` or a path, and the issuers it is limited to (None: any)."""

    location: str
    issuers: frozenset[str] | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `path;issuer=URL;issuer=URL`; raises `InputError`."""
        location, *limits = (part.strip() for part in text.split(";"))
        if not location:
            raise InputError(f"expected a trusted root, got {text[:80]!r}", hint="write public-good or a file's path")
        issuers: set[str] = set()
        for limit in limits:
            key, _, issuer = limit.partition("=")
            if key != "issuer" or not issuer:
                raise InputError(
                    f"expected issuer=URL behind a trusted root, got {limit[:120]!r}", hint="write path;issuer=URL"
                )
            if urlsplit(issuer).scheme not in {"http", "https"} or not issuer.isprintable() or " " in issuer:
                raise InputError(
                    f"expected an issuer's URL, got {issuer[:120]!r}",
                    hint="an issuer begins with https://, e.g. https://token.actions.githubusercontent.com",
                )
            issuers.add(issuer)
        return cls(location, frozenset(issuers) if issuers else None)


@dataclass(frozen=True, slots=True)
class TrustRoots:
    """The roots in force, in the order of the setting."""

    roots: tuple[TrustRoot, ...]

    @classmethod
    def from_setting(cls, text: str) -> Self:
        """Load what `TRUSTED_ROOT` names; raises `InputError` for a setting under which roots could impersonate.

        Refused: no root, one root twice, an unlimited private root beside another, one issuer in two roots (an
        unlimited public-good root has those that public Fulcio certifies).
        """
        specs = [RootSpec.parse(part) for part in text.split(",")]
        if len(specs) > 1:
            _refuse_overlap(specs)
        explicit = frozenset(issuer for spec in specs for issuer in spec.issuers or ())
        roots = [_load(spec, reserved=explicit if spec.issuers is None else frozenset()) for spec in specs]
        if len({root.sha256 for root in roots}) != len(roots):
            raise InputError("expected every trusted root once, got the same root twice")
        return cls(_with_distinct_names(roots))

    @classmethod
    def from_files(cls, locations: Sequence[str]) -> Self:
        """Load roots that a person named himself (`verify --trusted-root`): no limit is needed, repeats are one."""
        if not locations:
            raise InputError("expected at least one trusted root, got none")
        roots = {root.sha256: root for root in (_load(RootSpec.parse(text)) for text in locations)}
        return cls(_with_distinct_names(list(roots.values())))

    @property
    def public_good(self) -> bool:
        """Whether the public-good root is in force, by its name or as a file (a sandbox wants none of it)."""
        embedded = hashlib.sha256(public_good_bytes()).hexdigest()
        return any(root.sha256 == embedded for root in self.roots)

    def describe(self) -> list[dict[str, object]]:
        """What `trust show` prints: name, sha256, issuers, what each trusts from when to when, and until when."""
        return [dict(root.description) for root in self.roots]


def public_good_bytes() -> bytes:
    """The public-good trusted root that the library ships, byte for byte."""
    store = resources.files("sigstore._store")
    return store.joinpath("https%3A%2F%2Ftuf-repo-cdn.sigstore.dev", "trusted_root.json").read_bytes()


def load_root(name: str, data: bytes, *, issuers: frozenset[str] | None = None, reserved: frozenset[str]) -> TrustRoot:
    """Make a root from the bytes of a `trusted_root.json`; raises `InputError` when it can not be used.

    A log whose key the engine does not know is left out, so that a new kind of log does not end trust in the others.
    """
    try:
        model = TrustedRootModel.from_json(data)
        material = TrustMaterial(model)
        logs = [_log(model, instance) for instance in model.tlogs]
        authorities = _authorities(model.certificate_authorities)
    except ValidationError as err:
        raise _unusable(name, _misfit(err)) from err
    except Exception as err:
        raise _unusable(name, str(err)[:300]) from err
    by_id = {log.log_id: log for log in logs if log.material.usable}
    if len({log.log_id for log in logs}) != len(logs):
        raise _unusable(name, "two logs have the same id")
    if not by_id or not material.usable:
        raise _unusable(name, "no transparency log, or no CT log, has a key that can be used")
    sha256 = hashlib.sha256(data).hexdigest()
    ct_logs = {log.log_id.key_id: _key_window(log.public_key) for log in model.ctlogs}
    described = _describe(name, sha256, issuers, model, logs)
    return TrustRoot(name, sha256, issuers, reserved, by_id, material, authorities, ct_logs, described)


def _misfit(err: ValidationError) -> str:
    """Where a text is no trusted root; pydantic's own words are about its checks."""
    where = ".".join(map(str, err.errors(include_url=False, include_input=False)[0]["loc"]))
    return f"its {where[:200]} is not as the format says" if where else "it is no JSON object"


def _unusable(name: str, problem: str) -> InputError:
    return InputError(
        f"expected a Sigstore trusted root, got {name!r} that can not be used: {problem}",
        code="TRUST_ROOT_INVALID",
        hint="take the trusted_root.json of the instance's operator",
    )


def _refuse_overlap(specs: Sequence[RootSpec]) -> None:
    claimed: dict[str, str] = {}
    for spec in specs:
        if spec.issuers is None and spec.location != PUBLIC_GOOD:
            raise InputError(
                f"trusted root {spec.location!r} is limited to no issuer, so it could mint anybody's identity",
                hint=f"write {spec.location};issuer=<URL of the issuer that it serves>",
            )
        for issuer in PUBLIC_GOOD_ISSUERS if spec.issuers is None else spec.issuers:
            other = claimed.setdefault(issuer, spec.location)
            if other != spec.location:
                raise InputError(
                    f"issuer {issuer} belongs to two trusted roots, {other!r} and {spec.location!r}",
                    hint="give it to one; an unlimited public-good root serves the public issuers, "
                    "write public-good;issuer=<URL> to limit it",
                )


def _load(spec: RootSpec, *, reserved: frozenset[str] = frozenset()) -> TrustRoot:
    if spec.location == PUBLIC_GOOD:
        return load_root(PUBLIC_GOOD, public_good_bytes(), issuers=spec.issuers, reserved=reserved)
    path = Path(spec.location)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ROOT_BYTES + 1)
    except OSError as err:
        raise InputError(
            f"expected a readable trusted root at {spec.location!r}: {err.strerror or 'unreadable'}",
            code="TRUST_ROOT_INVALID",
            hint="write public-good, or the path of a trusted_root.json",
        ) from err
    if len(data) > MAX_ROOT_BYTES:
        raise InputError(f"trusted root {spec.location!r} is larger than {MAX_ROOT_BYTES} bytes")
    name = path.stem if path.stem != PUBLIC_GOOD else f"{PUBLIC_GOOD}-file"
    return load_root(name, data, issuers=spec.issuers, reserved=reserved)


def _with_distinct_names(roots: Sequence[TrustRoot]) -> tuple[TrustRoot, ...]:
    """Roots that share a file name are told apart by their digest."""
    names = [root.name for root in roots]
    return tuple(
        root if names.count(root.name) == 1 else _renamed(root, f"{root.name}-{root.sha256[:8]}") for root in roots
    )


def _renamed(root: TrustRoot, name: str) -> TrustRoot:
    return TrustRoot(
        name,
        root.sha256,
        root.issuers,
        root.reserved,
        root.logs,
        root.material,
        root.authorities,
        root.ct_logs,
        {**root.description, "name": name},
    )


def _log(model: TrustedRootModel, instance: TransparencyLogInstance) -> Log:
    url = urlsplit(instance.base_url)
    host = url.hostname or instance.base_url
    raw = instance.public_key.raw_bytes or b""
    return Log(
        name=host,
        log_id=instance.log_id.key_id,
        window=_key_window(instance.public_key),
        material=TrustMaterial(model, [instance]),
        _hosts=frozenset({host, url.netloc, f"{url.netloc}{url.path}".rstrip("/")}),
        _ed25519=raw[-32:] if instance.public_key.key_details is PublicKeyDetails.PKIX_ED25519 else None,
    )


def _key_window(key: PublicKey) -> Window:
    return _window(key.valid_for)


def _window(period: TimeRange | None) -> Window:
    return Window(None, None) if period is None else Window(period.start, period.end)


def _authorities(authorities: Sequence[CertificateAuthority]) -> dict[bytes, tuple[Window, ...]]:
    found: dict[bytes, tuple[Window, ...]] = {}
    for authority in authorities:
        for certificate in authority.cert_chain.certificates:
            der = x509.load_der_x509_certificate(certificate.raw_bytes).public_bytes(Encoding.DER)
            found[der] = (*found.get(der, ()), _window(authority.valid_for))
    return found


def _authority_window(authority: CertificateAuthority) -> Window:
    """The authority's period, cut where a certificate of its chain ends."""
    chain = [x509.load_der_x509_certificate(c.raw_bytes) for c in authority.cert_chain.certificates]
    ends = [certificate.not_valid_after_utc for certificate in chain]
    if authority.valid_for.end is not None:
        ends.append(authority.valid_for.end)
    return Window(authority.valid_for.start, min(ends))


def _describe(
    name: str, sha256: str, issuers: frozenset[str] | None, model: TrustedRootModel, logs: Sequence[Log]
) -> dict[str, object]:
    parts: dict[str, list[tuple[dict[str, str], Window]]] = {
        "logs": [({"log": log.name, "logId": log.log_id.hex()}, log.window) for log in logs],
        "certificateAuthorities": [
            ({"name": a.subject.common_name, "uri": a.uri or ""}, _authority_window(a))
            for a in model.certificate_authorities
        ],
        "ctLogs": [
            ({"log": log.base_url, "logId": log.log_id.key_id.hex()}, _key_window(log.public_key))
            for log in model.ctlogs
        ],
        "timestampAuthorities": [
            ({"name": a.subject.common_name, "uri": a.uri or ""}, _authority_window(a))
            for a in model.timestamp_authorities
        ],
    }
    needed = [parts[key] for key in ("logs", "certificateAuthorities", "ctLogs")]
    last = [max((w.end for _, w in part if w.end is not None), default=None) for part in needed]
    ends = [
        end
        for part, end in zip(needed, last, strict=True)
        if end is not None and all(w.end is not None for _, w in part)
    ]
    return {
        "name": name,
        "sha256": sha256,
        "issuers": None if issuers is None else sorted(issuers),
        **{key: [{**facts, **window.to_json()} for facts, window in part] for key, part in parts.items()},
        "until": _instant(min(ends, default=None)),
    }


def _instant(value: datetime | None) -> str | None:
    return None if value is None else value.strftime("%Y-%m-%dT%H:%M:%SZ")
