"""A private Sigstore: in-process minting of bundles, good and bad, and the same services over loopback HTTP."""

from app.sandbox.sigstore.authority import Curve, Sct
from app.sandbox.sigstore.documents import Window, Windows
from app.sandbox.sigstore.faults import HONEST, Faults, LeafKey, Promise, Stamp, stamps
from app.sandbox.sigstore.log import LogVersion
from app.sandbox.sigstore.private import SANDBOX_HOST, PrivateSigstore
from app.sandbox.sigstore.server import SigstoreServer

__all__ = [
    "HONEST",
    "SANDBOX_HOST",
    "Curve",
    "Faults",
    "LeafKey",
    "LogVersion",
    "PrivateSigstore",
    "Promise",
    "Sct",
    "SigstoreServer",
    "Stamp",
    "Window",
    "Windows",
    "stamps",
]
