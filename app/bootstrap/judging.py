"""How a judge is made: in a command, or in each judging worker. Imports no database and no web framework."""

from dataclasses import dataclass

from app.adapters.files import ContentLimits, DirectoryReader
from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.verifier import SignatureLimits, SigstoreVerifier
from app.services.judge import JudgeService


@dataclass(frozen=True, slots=True)
class BuildJudge:
    """A picklable recipe for a judge; calling it loads the trust roots."""

    trusted_root: str
    max_signature_bytes: int
    max_unpacked_bytes: int
    max_files: int
    max_path_bytes: int
    max_depth: int

    def __call__(self) -> JudgeService:
        """The judge, with its roots from the `TRUSTED_ROOT` setting; raises `InputError` for a bad root."""
        return self.with_roots(TrustRoots.from_setting(self.trusted_root))

    def with_roots(self, roots: TrustRoots) -> JudgeService:
        """The judge over roots that are loaded already."""
        return JudgeService(self.reader(), SigstoreVerifier(roots, SignatureLimits(self.max_signature_bytes)))

    def reader(self) -> DirectoryReader:
        """What gathers a directory, within the limits."""
        return DirectoryReader(
            ContentLimits(
                max_bytes=self.max_unpacked_bytes,
                max_entries=self.max_files,
                max_path_bytes=self.max_path_bytes,
                max_depth=self.max_depth,
            )
        )
