"""How a judge is made: in a command, or in each judging worker. Imports no database and no web framework."""

from app.adapters.files import ContentLimits, DirectoryReader
from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.verifier import SignatureLimits, SigstoreVerifier
from app.bootstrap.judging import BuildJudge
from app.core.errors import InputError
from app.services.judge import JudgeService


def from_setting(recipe: BuildJudge) -> JudgeService:
    """The judge under the roots of the setting; raises `InputError` for a bad root.

    A sandbox has only sandbox roots (service 2): its pages say that nothing in it is real evidence.
    """
    roots = TrustRoots.from_setting(recipe.trusted_root)
    if recipe.sandbox and roots.public_good:
        raise InputError(
            "expected only sandbox roots in a sandbox, got public-good",
            hint="set AICR_EVIDENCE_TRUSTED_ROOT to the trusted_root.json of `aicr evidence sandbox`",
        )
    return with_roots(recipe, roots)


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
