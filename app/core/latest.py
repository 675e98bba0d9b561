"""Which run of a source is its newest, and how far a store may thin runs without changing a verdict.

Who speaks for a signer of several refs is decided in `core.corroborate`; nothing here knows the allowlist.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from app.core.bundle import Run
from app.core.verdict import NameClaim, PrintSighting, RecipeInputs
from app.core.versions import is_release


def precedence(run: Run) -> tuple[datetime, datetime, str]:
    """The order of a source's runs: attestation time, then log time, then digest; the greatest is the latest."""
    return (run.attested_at, run.logged_at, run.digest.hex)


def version_group(run: Run) -> tuple[str, str]:
    """(AICR version, commit) of the strict grid; the commit splits only versions that are no releases (service 5)."""
    return (run.aicr_version, "" if is_release(run.aicr_version) else run.aicr_commit)


def retention_key(run: Run) -> tuple[str, ...]:
    """Of the runs of one recipe that share this key, only the one of greatest `precedence` can matter.

    The key holds everything by which a verdict ever selects runs: the source and whether its record has weight, the
    version group, what was attested (digest, predicate type), whether the hardware matched, and the identity under
    the recipe's name.
    """
    criteria = run.criteria
    return (
        run.source_id,
        "weightless" if run.weightless else "",
        *version_group(run),
        run.predicate_type,
        run.recipe_digest,
        "matched" if run.hardware_matched else "mismatched",
        *(criteria.service, criteria.accelerator, criteria.os, criteria.intent, criteria.platform),
        run.profile_selection,
        run.profile,
        run.coordinate.path,
    )


def distinct(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Each (digest, source) once, in an order that does not depend on the order of `runs`."""
    found: dict[tuple[str, str], Run] = {}
    for run in runs:
        found.setdefault((run.digest.hex, run.source_id), run)
    return tuple(found[key] for key in sorted(found))


def latest_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The newest run of each `retention_key`, sorted."""
    newest: dict[tuple[str, ...], Run] = {}
    for run in distinct(runs):
        key = retention_key(run)
        held = newest.get(key)
        if held is None or precedence(run) > precedence(held):
            newest[key] = run
    return tuple(newest[key] for key in sorted(newest))


def sightings_of(run: Run) -> tuple[PrintSighting, ...]:
    """A run's prints in the form in which other verdicts see them."""
    return tuple(
        PrintSighting(
            kind=kind,
            value=value,
            digest=run.digest,
            issuer=run.signer.issuer,
            identity=run.signer.identity,
            source_repository_owner=run.signer.claims.source_owner,
            place=run.place,
            weightless=run.weightless,
        )
        for kind, value in run.prints
    )


def earliest_sightings(sightings: Iterable[PrintSighting]) -> tuple[PrintSighting, ...]:
    """The earliest sighting of each (print, signer, weightless or not), sorted."""
    found: dict[tuple[str, ...], PrintSighting] = {}
    for seen in sightings:
        key = (seen.kind, seen.value, seen.issuer, seen.identity, "weightless" if seen.weightless else "")
        held = found.get(key)
        if held is None or (seen.place, seen.digest.hex) < (held.place, held.digest.hex):
            found[key] = seen
    return tuple(found[key] for key in sorted(found))


def claim_of(run: Run) -> NameClaim:
    """What a run says about the identity behind its recipe's name."""
    return NameClaim(
        criteria=run.criteria,
        profile_selection=run.profile_selection,
        issuer=run.signer.issuer,
        identity=run.signer.identity,
        digest=run.digest,
        place=run.place,
        weightless=run.weightless,
    )


def earliest_claims(claims: Iterable[NameClaim]) -> tuple[NameClaim, ...]:
    """The earliest claim of each (signer, weightless or not, criteria, selection), sorted."""
    found: dict[tuple[str, ...], NameClaim] = {}
    for claim in claims:
        c = claim.criteria
        key = (
            claim.issuer,
            claim.identity,
            "weightless" if claim.weightless else "",
            *(c.service, c.accelerator, c.os, c.intent, c.platform),
            claim.profile_selection,
        )
        held = found.get(key)
        if held is None or (claim.place, claim.digest.hex) < (held.place, held.digest.hex):
            found[key] = claim
    return tuple(found[key] for key in sorted(found))


def reduced(inputs: RecipeInputs) -> RecipeInputs:
    """The same inputs with only the runs that can matter: what a store that keeps `latest` rows hands over.

    `corroborate` gives the same verdict for both.
    """
    everything = distinct(inputs.runs)
    kept = latest_runs(everything)
    prints = {one for run in kept for one in run.prints}
    sightings = [*inputs.sightings, *(seen for run in everything for seen in sightings_of(run))]
    claims = [claim_of(run) for run in everything if run.recipe == inputs.recipe]
    counts = Counter(run.source_id for run in everything)
    return replace(
        inputs,
        runs=kept,
        sightings=earliest_sightings(seen for seen in sightings if (seen.kind, seen.value) in prints),
        claims=earliest_claims([*inputs.claims, *claims]),
        run_counts={**counts, **inputs.run_counts},
    )
