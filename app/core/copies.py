"""Copied runs: of runs of different signers that share a print, only the one logged first counts (trust 6).

A print is the digest of a phase report with a result, of a snapshot, or of all durations (`Run.prints`). A careful
forger changes all of them and is not caught by this.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.core.allowlist import Allowlist
from app.core.bundle import LogPlace, Run
from app.core.identity import canonical_source_id
from app.core.latest import sightings_of
from app.core.refs import Digest
from app.core.verdict import PrintSighting, RecipeInputs

RunKey = tuple[Digest, str]
"""(bundle digest, source id)."""


@dataclass(frozen=True, slots=True)
class Original:
    """The run that another one copies; `kind` is what they share."""

    digest: Digest
    source_id: str
    signer_key: str
    kind: str
    place: LogPlace


def copies_of(inputs: RecipeInputs, runs: Iterable[Run], allowlist: Allowlist) -> Mapping[RunKey, Original]:
    """Which of `runs` are copies, and of what; looks at every run of the recipe and every sighting elsewhere.

    Only allowlisted records of full weight are looked at: a stranger that republishes somebody's report takes
    nothing from anybody. Runs of one signer never copy one another, and who has shown a print first keeps it: somebody
    else's copy in between does not make a copy of the next run that its owner publishes.
    """
    listed: dict[tuple[str, str], bool] = {}

    def counts(issuer: str, identity: str) -> bool:
        key = (issuer, identity)
        if key not in listed:
            listed[key] = allowlist.classify(issuer, identity).allowlisted
        return listed[key]

    first: dict[tuple[str, str], Original] = {}
    for seen in _sightings(inputs):
        if seen.weightless or not counts(seen.issuer, seen.identity):
            continue
        original = Original(
            seen.digest,
            canonical_source_id(seen.issuer, seen.identity),
            allowlist.signer_key(seen.issuer, seen.identity),
            seen.kind,
            seen.place,
        )
        if _order(original) < _order(first.setdefault((seen.kind, seen.value), original)):
            first[seen.kind, seen.value] = original
    found: dict[RunKey, Original] = {}
    for run in runs:
        if run.weightless or not counts(run.signer.issuer, run.signer.identity):
            continue
        key = allowlist.signer_key(run.signer.issuer, run.signer.identity)
        mine = (run.place, run.digest.hex, run.source_id)
        earlier = [
            held
            for one in run.prints
            if (held := first.get(one)) is not None and held.signer_key != key and _order(held) < mine
        ]
        if earlier:
            found[(run.digest, run.source_id)] = min(earlier, key=lambda o: (*_order(o), o.kind))
    return found


def _sightings(inputs: RecipeInputs) -> Iterable[PrintSighting]:
    yield from inputs.sightings
    for run in inputs.runs:
        yield from sightings_of(run)


def _order(original: Original) -> tuple[LogPlace, str, str]:
    return (original.place, original.digest.hex, original.source_id)
