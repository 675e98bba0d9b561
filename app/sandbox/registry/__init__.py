"""An OCI registry on loopback, honest or hostile."""

from app.sandbox.registry.auth import AuthMode, RegistryAuth
from app.sandbox.registry.modes import Behaviour, Hostility
from app.sandbox.registry.server import SAMPLE_FILES, SandboxRegistry, Seen

__all__ = ["SAMPLE_FILES", "AuthMode", "Behaviour", "Hostility", "RegistryAuth", "SandboxRegistry", "Seen"]
