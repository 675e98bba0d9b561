"""How a judge is made: in a command, or in each judging worker. Imports no database and no web framework."""

from app.adapters.files import ContentLimits, DirectoryReader
from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.verifier import SignatureLimits, SigstoreVerifier
from app.bootstrap.judging import BuildJudge
from app.services.judge import JudgeService


def from_setting(recipe: BuildJudge) -> JudgeService:
    """The judge under the roots of the setting; raises `InputError` for a bad root."""
    return with_roots(recipe, TrustRoots.from_setting(recipe.trusted_root))


def with_roots(recipe: BuildJudge, roots: TrustRoots) -> JudgeService:
    """The judge over roots that are loaded already."""
    return JudgeService(reader(recipe), SigstoreVerifier(roots, SignatureLimits(recipe.max_signature_bytes)))


def reader(recipe: BuildJudge) -> DirectoryReader:
    """What gathers a directory, within the limits."""
    return DirectoryReader(
        ContentLimits(
            max_bytes=recipe.max_unpacked_bytes,
            max_files=recipe.max_files,
            max_path_bytes=recipe.max_path_bytes,
            max_depth=recipe.max_depth,
        )
    )
