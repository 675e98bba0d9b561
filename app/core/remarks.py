"""Remarks: what is shown beside a result and never silently weighed (service 5).

Remarks that one run carries alone, and the sentences of those that compare runs. Messages name sources by slug,
never by address.
"""

from collections.abc import Iterable, Mapping, Sequence

from app.core.bundle import Run
from app.core.copies import Original
from app.core.figures import below_floors
from app.core.party import is_personal_address
from app.core.verdict import Remark
from app.core.versions import is_release

SAME_PARTY = "same-party"
COPY_OF = "copy-of"
FAILURE_OF_REMOVED_SIGNER = "failure-of-removed-signer"
STALE_DIGEST = "stale-digest"
WEIGHTLESS = "weightless"
BRANCH_FAILURE = "branch-failure"

_SHORT = 8  # characters of a slug or a digest in a sentence
_LISTED = 20  # names in one remark's data
_MAX_NAME_CHARS = 200

_RECORDED: Mapping[str, str] = {
    "signed-late": "signed more than 7 days after the run says it was attested",
    "overridden": "the checks ran with values that differ from what the recipe ships",
    "validator-mutable-tag": "a validator image is named by a tag that can change",
    "mismatched-hardware": "the cluster does not match the recipe's criteria",
    "not-public": "the bundle was only ever pulled with credentials",
    "personal-address": "the signature put an e-mail address into a public log",
    "below-floor": "a measured figure does not reach the catalogue's floor",
}
"""Codes that a run may carry already when it comes from the judge, with their sentences."""

_PRINTS: Mapping[str, str] = {
    "ctrf": "a phase report",
    "snapshot": "the cluster snapshot",
    "durations": "all test durations",
}


def run_remarks(run: Run, floors: Mapping[str, str] | None = None, *, seen_public: bool = False) -> tuple[Remark, ...]:
    """What one run says about itself, sorted by code.

    `floors` are those of today's catalogue version; `seen_public`: its bundle was found elsewhere without credentials.
    """
    found = {
        code: Remark(code, _RECORDED.get(code, f"noted when the bundle was judged: {code}")) for code in run.remarks
    }
    if run.weightless:
        found[WEIGHTLESS] = Remark(WEIGHTLESS, f"has no weight: {run.weightless}")
    if run.overridden_paths:
        found["overridden"] = Remark("overridden", _RECORDED["overridden"], {"paths": _joined(run.overridden_paths)})
    if mutable := [image for image in run.validator_images if is_mutable(image)]:
        found["validator-mutable-tag"] = Remark(
            "validator-mutable-tag", _RECORDED["validator-mutable-tag"], {"images": _joined(mutable)}
        )
    if not run.hardware_matched:
        found["mismatched-hardware"] = Remark(
            "mismatched-hardware",
            f"{_RECORDED['mismatched-hardware']}; counts for no current state",
            {
                row.dimension: f"{row.requires} required, {row.provides} found"
                for row in run.dimensions
                if row.match == "mismatched"
            },
        )
    if not run.public and not seen_public:
        found["not-public"] = Remark("not-public", _RECORDED["not-public"])
    if is_personal_address(run.signer.identity):
        found["personal-address"] = Remark("personal-address", _RECORDED["personal-address"])
    if missed := list(below_floors(run, floors or {})):
        found["below-floor"] = Remark(
            "below-floor",
            _RECORDED["below-floor"],
            {name: f"{measured}, asked {asked}" for name, measured, asked in missed[:_LISTED]},
        )
    return tuple(found[code] for code in sorted(found))


def is_mutable(image: str) -> bool:
    """Whether an image reference has neither a digest nor a release's tag."""
    if "@sha256:" in image:
        return False
    name = image.rpartition("/")[2]
    _, colon, tag = name.partition(":")
    return not (colon and is_release(tag))


def same_party(slugs: Sequence[str]) -> Remark:
    """Two or more signers behind which one account stands."""
    return Remark(
        SAME_PARTY,
        f"of one party with {_sources(slugs)}: two results, perhaps one interest",
        {"sources": _joined(slugs)},
    )


def one_party(slugs: Sequence[str]) -> Remark:
    """The same, said about the recipe."""
    return Remark(
        SAME_PARTY,
        f"{_sources(slugs)} are of one party: {len(slugs)} results, perhaps one interest",
        {"sources": _joined(slugs)},
    )


def copy_of(original: Original, copier: str = "") -> Remark:
    """A run that is not counted, and the one that is counted instead; with the copier's slug, said about the recipe."""
    subject = f"the run of source {copier[:_SHORT]}… " if copier else ""
    shared = _PRINTS.get(original.kind, original.kind)
    return Remark(
        COPY_OF,
        f"{subject}shares {shared} with the run {original.digest.hex[:_SHORT]}… of source"
        f" {original.source_id[:_SHORT]}…, which was logged first; its passes are not counted",
        {
            "digest": str(original.digest),
            "source": original.source_id[:32],
            "kind": original.kind,
            **({"copier": copier} if copier else {}),
        },
    )


def branch_failure(run: Run, failed: Sequence[str]) -> Remark:
    """A run of a workflow's other ref that failed; it is shown and replaces nothing."""
    return Remark(
        BRANCH_FAILURE,
        f"failed {_count(failed, 'check')} on a ref that does not speak for its workflow",
        {"digest": str(run.digest), "checks": _joined(failed)},
    )


def failure_of_removed_signer(run: Run, failed: Sequence[str]) -> Remark:
    """A failure that counted until its signer was taken off the allowlist."""
    return Remark(
        FAILURE_OF_REMOVED_SIGNER,
        f"source {run.source[:_SHORT]}… failed {_count(failed, 'check')} and was taken off the allowlist since",
        {"source": run.source, "digest": str(run.digest), "checks": _joined(failed)},
    )


def stale_digest(state: str, current: str, digests: int) -> Remark:
    """The state rests on other digests than today's."""
    rests = "one attested digest" if digests == 1 else f"{digests} attested digests"
    return Remark(
        STALE_DIGEST,
        f"{state} rests on {rests}; for today's recipe it is {current}",
        {"state": state, "currentState": current, "digests": str(digests)},
    )


def _sources(slugs: Sequence[str]) -> str:
    return ("source " if len(slugs) == 1 else "sources ") + ", ".join(f"{slug[:_SHORT]}…" for slug in slugs[:_LISTED])


def _count(items: Sequence[str], noun: str) -> str:
    return f"one {noun}" if len(items) == 1 else f"{len(items)} {noun}s"


def _joined(items: Iterable[str]) -> str:
    """A bounded list in one text; strangers write the items."""
    every = list(items)
    shown = ", ".join(item[:_MAX_NAME_CHARS] for item in every[:_LISTED])
    return f"{shown} and {len(every) - _LISTED} more" if len(every) > _LISTED else shown
