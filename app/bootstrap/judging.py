"""How a judge is described: small enough for a process that never makes one, since Sigstore is half of its memory."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from app.ports import Judge


@dataclass(frozen=True, slots=True)
class BuildJudge:
    """A picklable recipe for a judge; calling it, in a command or a worker, loads the parts and the trust roots."""

    trusted_root: str
    max_signature_bytes: int
    max_unpacked_bytes: int
    max_files: int
    max_path_bytes: int
    max_depth: int
    sandbox: bool = False

    def __call__(self) -> Judge:
        """The judge, with its roots from the `TRUSTED_ROOT` setting; raises `InputError` for a bad root."""
        make = cast("Callable[[BuildJudge], Judge]", import_module("app.bootstrap.judge_parts").from_setting)
        return make(self)
