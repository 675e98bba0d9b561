"""The trusted-registry gate (corroboration 4.4): decided on the reference's text, before any network access."""

from dataclasses import dataclass
from typing import Self

from app.core.errors import RegistryNotTrusted
from app.core.refs import OciRef, is_registry_host, is_repository

SETTING = "AICR_EVIDENCE_TRUSTED_REGISTRIES"


@dataclass(frozen=True, slots=True)
class TrustedRegistries:
    """Prefixes of `registry/path` that evidence may come from; an empty list admits nothing.

    Hosts are compared without case, trailing dot and the https port; paths exactly. A prefix matches whole
    path segments only, so `ghcr.io/nvidia` does not admit `ghcr.io/nvidia-evil`.
    """

    prefixes: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the comma-separated setting; spaces are trimmed, empty items dropped."""
        return cls(tuple(item for item in (part.strip() for part in text.split(",")) if item))

    def admits(self, ref: OciRef) -> bool:
        """Whether evidence may be fetched from `ref`."""
        return self.admits_text(f"{ref.registry}/{ref.repository}")

    def admits_text(self, text: str) -> bool:
        """The same for a reference as written: up to `@`, less a tag after the last `/`."""
        name = text.partition("@")[0]
        if name.rfind(":") > name.rfind("/"):
            name = name.rpartition(":")[0]
        wanted = normal_name(name)
        if wanted is None:
            return False
        return any(
            wanted == prefix or wanted.startswith(f"{prefix}/")
            for prefix in map(normal_name, self.prefixes)
            if prefix is not None
        )

    def require(self, ref: OciRef) -> None:
        """Raise `RegistryNotTrusted` with the setting line that would admit `ref`."""
        if self.admits(ref):
            return
        name = f"{normal_host(ref.registry)}/{ref.repository}"
        line = f"{SETTING}={','.join([*self.prefixes, name])}"
        known = ", ".join(self.prefixes) or "none"
        raise RegistryNotTrusted(
            f"expected a reference under a trusted registry ({known}), got {name}",
            hint=f"whoever runs the service can admit it with {line}",
            details={"reference": str(ref), "setting": line},
        )


def can_admit(prefix: str) -> bool:
    """Whether some reference could begin with this prefix; a setting with one that admits nothing is a mistake."""
    host, slash, path = prefix.partition("/")
    return is_registry_host(host) and normal_host(host) != "index.docker.io" and (not slash or is_repository(path))


def one_spelling(host: str) -> str:
    """Lower-case and without a trailing dot; the port stays."""
    head = host.lower()
    name, colon, port = head.rpartition(":")
    if colon and port.isdigit():
        return f"{name.rstrip('.')}:{port}"
    return head.rstrip(".")


def normal_host(host: str) -> str:
    """One spelling, and without the https port."""
    return one_spelling(host).removesuffix(":443")


def normal_name(name: str) -> str | None:
    """`host/path` with a normal host; None for a name that no registry can hold, such as one with `..`.

    A trailing slash stays and makes an empty last segment, which matches nothing (T10).
    """
    host, slash, path = name.partition("/")
    if not host or any(part in {".", ".."} for part in name.split("/")):
        return None
    if slash and not all(path.split("/")):
        return None
    return f"{normal_host(host)}{slash}{path}"
