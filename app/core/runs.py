"""From judged parts to the flat `Run` that the store keeps (service 1), with its prints and its own remarks.

Only what was judged goes in: everything but the time of receipt derives from signed bytes. Remarks between runs
(`same-party`, `copy-of`, ...) come with a recipe's verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.core.bundle import SNAPSHOT_FILE, Content, Run, VerifiedSignature
from app.core.coordinate import coordinate_of
from app.core.criteria_match import match_criteria
from app.core.ctrf import PhaseReport, durations_print
from app.core.documents import Predicate, ValidatorImage
from app.core.errors import RecipeInvalid
from app.core.findings import LATE_AFTER
from app.core.party import is_personal_address, visible
from app.core.recipe import Recipe
from app.core.refs import Digest
from app.core.remarks import is_mutable
from app.core.versions import normalized_commit

K8S_CONSTRAINT: Final = "K8s.server.version"
MAX_CONSTRAINT_CHARS: Final = 256


@dataclass(frozen=True, slots=True)
class RunParts:
    """What the judge has read of a bundle that it accepts."""

    digest: Digest
    content: Content
    predicate: Predicate
    recipe: Recipe
    signature: VerifiedSignature
    reports: Mapping[str, PhaseReport]
    received_at: datetime
    exit: int
    public: bool


def make_run(parts: RunParts) -> Run:
    """The run; raises `RecipeInvalid` when the recipe gives no coordinate, which E8 has excluded for evidence."""
    predicate, recipe, signature = parts.predicate, parts.recipe, parts.signature
    if recipe.criteria is None or predicate.attested_at is None:
        raise RecipeInvalid("expected criteria and a time of attestation, found none")
    matched = match_criteria(recipe.criteria, predicate.fingerprint)
    reports = [parts.reports[summary.phase] for summary in predicate.phase_summaries if summary.phase in parts.reports]
    overridden = sorted({path for report in reports for path in report.overridden_paths})
    return Run(
        digest=parts.digest,
        signer=signature.signer,
        recipe=recipe.name,
        criteria=recipe.criteria,
        coordinate=coordinate_of(recipe.criteria, recipe.profile_segment),
        profile=recipe.profile_segment,
        profile_selection=recipe.selection,
        predicate_type=signature.statement.predicate_type,
        recipe_digest=predicate.recipe.digest,
        aicr_version=predicate.aicr_version,
        aicr_commit=normalized_commit(predicate.aicr_commit),
        k8s_version=predicate.fingerprint.k8s_version.value,
        k8s_constraint=visible(recipe.constraint(K8S_CONSTRAINT))[:MAX_CONSTRAINT_CHARS],
        attested_at=predicate.attested_at,
        logged_at=signature.logged_at,
        received_at=parts.received_at,
        log=signature.log,
        root=signature.root,
        root_sha256=signature.root_sha256,
        signature_sha256=signature.bundle_sha256,
        exit=parts.exit,
        phases=predicate.phase_summaries,
        results=tuple(test for report in reports for test in report.tests),
        prints=tuple(_prints(parts, reports)),
        dimensions=matched.dimensions,
        hardware_matched=matched.matched,
        weightless=signature.weightless,
        public=parts.public,
        remarks=tuple(_remarks(parts, overridden, hardware_matched=matched.matched)),
        overridden_paths=tuple(overridden),
        validator_images=tuple(map(_image_text, predicate.validator_images)),
        recipe_text=recipe.text,
        figures=tuple(figure for report in reports for figure in report.figures),
    )


def _prints(parts: RunParts, reports: Sequence[PhaseReport]) -> Iterator[tuple[str, str]]:
    """What runs of different signers must not share (trust 6); values are bare hex."""
    digests = {summary.phase: summary.ctrf_digest for summary in parts.predicate.phase_summaries}
    for report in reports:
        if report.ran:
            yield "ctrf", digests[report.phase].removeprefix("sha256:")
    snapshot = parts.content.entries.get(SNAPSHOT_FILE)
    if snapshot is not None and snapshot.sha256 is not None:
        yield "snapshot", snapshot.sha256
    durations = durations_print(reports)
    if durations is not None:
        yield "durations", durations


def _remarks(parts: RunParts, overridden: Sequence[str], *, hardware_matched: bool) -> Iterator[str]:
    """Remark codes that the run carries alone (service 5)."""
    attested = parts.predicate.attested_at
    if attested is not None and parts.signature.logged_at - attested > LATE_AFTER:
        yield "signed-late"
    if overridden:
        yield "overridden"
    if any(map(is_mutable, map(_image_text, parts.predicate.validator_images))):
        yield "validator-mutable-tag"
    if not hardware_matched:
        yield "mismatched-hardware"
    if is_personal_address(parts.signature.signer.identity):
        yield "personal-address"


def _image_text(image: ValidatorImage) -> str:
    return f"{image.image}@{image.digest}" if image.digest else image.image
