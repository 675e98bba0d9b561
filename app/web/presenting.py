"""From read views to schemas: names of fields meet links here, and nothing is decided."""

from collections.abc import Mapping

from app.core.allowlist import Allowlist, AllowlistEntry
from app.core.answer import Answer, Match
from app.core.asked import Asked
from app.core.bundle import Run
from app.core.remarks import run_remarks
from app.core.verdict import Grid, Row
from app.core.versions import kubernetes_minor
from app.ports import Attempt, Record
from app.services.ingest_types import Judged, Refused, Stored
from app.services.masking import MASK, Masking
from app.services.records import BundleView, RecordView, SourceView, shown_report
from app.services.report import NOT_PROVEN, VERIFIED, RecipeView
from app.web import links, schemas


def recipe_line(line: Mapping[str, object]) -> schemas.RecipeLine:
    """One line of the catalogue."""
    return schemas.RecipeLine.model_validate({**line, "links": links.recipe_links(str(line["recipe"]))}, by_alias=True)


def recipe(view: RecipeView) -> schemas.RecipeOut:
    """One recipe through its lens."""
    verdict, lens, grid = view.verdict, view.lens, view.grid
    shared = {
        name: getattr(verdict, name)
        for name in schemas.RecipeOut.model_fields
        if hasattr(verdict, name) and name not in {"state", "versions", "current"}
    }
    return schemas.RecipeOut.model_validate(
        {
            **shared,
            "state": grid.state,
            "phase_states": grid.phase_states,
            "view": schemas.ViewOut(
                aicr_version=grid.aicr_version,
                aicr_commit=grid.aicr_commit,
                k8s=lens.k8s or "",
                as_of=lens.as_of,
                confirm_by=view.rule.by.value,
                confirm_threshold=view.rule.threshold,
            ),
            "rows": rows(grid, lens.k8s),
            "current": None if verdict.current is None else grid_of(verdict.current, lens.k8s),
            "versions": [schemas.VersionOut.model_validate(item) for item in verdict.versions],
            "verified": list(VERIFIED),
            "not_proven": list(NOT_PROVEN),
            "links": links.recipe_links(verdict.recipe),
        },
        by_name=True,
    )


def grid_of(grid: Grid, k8s: str | None) -> schemas.GridOut:
    """A whole grid."""
    return schemas.GridOut(
        aicr_version=grid.aicr_version,
        aicr_commit=grid.aicr_commit,
        state=grid.state.value,
        phase_states={phase: state.value for phase, state in grid.phase_states.items()},
        rows=rows(grid, k8s),
    )


def rows(grid: Grid, k8s: str | None) -> list[schemas.RowOut]:
    """The rows of a grid, results on another Kubernetes dimmed; that changes no consensus."""
    return [_row(row, k8s) for row in grid.rows]


def _row(row: Row, k8s: str | None) -> schemas.RowOut:
    out = schemas.RowOut.model_validate(row)
    if k8s is None:
        return out
    wanted = kubernetes_minor(k8s)
    signers = [item.model_copy(update={"dimmed": kubernetes_minor(item.k8s_version) != wanted}) for item in out.signers]
    return out.model_copy(update={"signers": signers})


def record(view: RecordView) -> schemas.RecordOut:
    """A record in a list."""
    return schemas.RecordOut.model_validate(_record_fields(view), by_name=True)


def record_detail(view: RecordView) -> schemas.RecordDetail:
    """A record with its single results."""
    run = view.record.run
    return schemas.RecordDetail.model_validate(
        {
            **_record_fields(view),
            "results": [schemas.ResultOut.model_validate(item) for item in run.results],
            "dimensions": [schemas.DimensionOut.model_validate(item) for item in run.dimensions],
            "overridden_paths": list(run.overridden_paths),
            "validator_images": list(run.validator_images),
        },
        by_name=True,
    )


def _record_fields(view: RecordView) -> dict[str, object]:
    run = view.record.run
    return {
        **{name: getattr(run, name) for name in _RUN_FIELDS},
        "criteria": schemas.CriteriaOut.model_validate(run.criteria),
        "source_class": view.record.source_class,
        "allowlisted": view.record.allowlisted,
        "outcome": view.outcome,
        "signer": schemas.SignerOut.model_validate(view.signer),
        "root": schemas.RootOut(name=run.root, sha256=run.root_sha256),
        "log": schemas.LogOut(origin=run.log.log, id=run.log.log_id, index=run.log.index, kind=run.log.kind),
        "run_url": run.signer.claims.run_url,
        "phases": [schemas.PhaseOut.model_validate(item) for item in run.phases],
        "remarks": [schemas.RemarkOut.model_validate(item) for item in view.remarks],
        "staleness": schemas.RecordStaleness(
            now=[schemas.StaleReasonOut.model_validate(item) for item in view.staleness],
            at_ingest=dict(view.record.state_at_ingest),
        ),
        "links": links.record_links(run.digest, run.source, run.recipe),
    }


_RUN_FIELDS = (
    "digest",
    "source",
    "recipe",
    "profile",
    "profile_selection",
    "coordinate",
    "exit",
    "predicate_type",
    "recipe_digest",
    "aicr_version",
    "aicr_commit",
    "k8s_version",
    "k8s_constraint",
    "attested_at",
    "logged_at",
    "received_at",
    "hardware_matched",
)


def bundle(view: BundleView) -> schemas.BundleOut:
    """A digest with its records."""
    return schemas.BundleOut(
        digest=str(view.digest),
        records=[record_detail(item) for item in view.records],
        locations=[schemas.LocationOut.model_validate(item) for item in view.locations],
        verified=list(VERIFIED),
        not_proven=list(NOT_PROVEN),
        links=links.bundle_links(view.digest),
    )


def stored(result: Stored) -> schemas.Submission:
    """The answer to an ingest; says what was so when the record came in, so a repeat says the same."""
    item: Record = result.record
    then = item.state_at_ingest
    before, after = then.get("before"), then.get("after")
    return _submission(
        item.run,
        source_class=item.source_class,
        allowlisted=item.allowlisted,
        before=before if isinstance(before, str) else None,
        after=after if isinstance(after, str) else None,
    )


def judged(result: Judged) -> schemas.Submission:
    """The answer to a dry run: what storing would change."""
    return _submission(
        result.run,
        source_class=result.source_class,
        allowlisted=result.allowlisted,
        before=None if result.before is None else result.before.state.value,
        after=None if result.after is None else result.after.state.value,
    )


def _submission(
    run: Run, *, source_class: str, allowlisted: bool, before: str | None, after: str | None
) -> schemas.Submission:
    return schemas.Submission(
        digest=str(run.digest),
        recipe=run.recipe,
        source=run.source,
        source_class=source_class,
        allowlisted=allowlisted,
        exit=run.exit,
        state=schemas.StateChange(before=before, after=after),
        remarks=[schemas.RemarkOut.model_validate(item) for item in run_remarks(run)],
        links=links.record_links(run.digest, run.source, run.recipe),
    )


def refusal_details(result: Refused, masking: Masking) -> dict[str, object]:
    """What a 422 tells: step, code, cause, the report, and where the attempt is on record."""
    report = shown_report(result.report, masking).to_json()
    details: dict[str, object] = {
        "step": result.step.value,
        "code": result.code,
        "cause": report.get("failureCause", MASK.tree(result.cause.to_json())),
        "report": report,
    }
    if result.digest is not None:
        details["digest"] = str(result.digest)
    if result.attempt_id is not None:
        details["attempt"] = links.path("attempts", str(result.attempt_id))
    return {**(MASK.mapping(result.details) or {}), **details}


def answer(asked: Asked, found: Answer) -> schemas.AnswerOut:
    """An answer beside the question as it was understood."""
    return schemas.AnswerOut(
        state=None if found.state is None else found.state.value,
        sentence=found.sentence,
        asked=schemas.AskedOut(
            criteria=schemas.CriteriaOut.model_validate(asked.criteria),
            profile_selection=asked.profile_selection,
            notes=list(asked.notes),
        ),
        matches=[_match(item) for item in found.matches],
        nearest=[_match(item) for item in found.nearest],
        more=found.more,
        retired=list(found.retired),
        unbacked=found.unbacked,
    )


def _match(item: Match) -> schemas.MatchOut:
    candidate = item.candidate
    return schemas.MatchOut(
        recipe=candidate.recipe,
        criteria=schemas.CriteriaOut.model_validate(candidate.criteria),
        profile_selection=candidate.profile_selection,
        state=candidate.state.value,
        current_state=None if candidate.current_state is None else candidate.current_state.value,
        passes=candidate.passes,
        threshold=candidate.threshold,
        backing=candidate.backing.value,
        staleness=list(candidate.staleness),
        differs=[schemas.DifferenceOut.model_validate(one) for one in item.differs],
        unsaid=list(item.unsaid),
        general=list(item.general),
        command=item.command,
        config=item.config,
        links=links.recipe_links(candidate.recipe),
    )


def attempt(item: Attempt) -> schemas.AttemptOut:
    """One attempt."""
    fields = {name: getattr(item, name) for name in schemas.AttemptOut.model_fields if name != "links"}
    found = links.attempt_links(item.id, item.digest, accepted=item.outcome == "accepted")
    return schemas.AttemptOut.model_validate({**fields, "links": found}, by_name=True)


def entry(item: AllowlistEntry) -> schemas.EntryOut:
    """One allowlist entry."""
    return schemas.EntryOut(
        source_class=item.source_class.value,
        label=item.label,
        issuer=item.issuer,
        source=item.source,
        identity_pattern=item.pattern.text if item.pattern else "",
    )


def difference(older: Allowlist, newer: Allowlist) -> tuple[list[schemas.EntryOut], list[schemas.EntryOut]]:
    """(added, removed) entries between two lists."""
    before, after = frozenset(older.entries), frozenset(newer.entries)
    added, removed = newer.entries, older.entries
    return (
        [entry(item) for item in added if item not in before],
        [entry(item) for item in removed if item not in after],
    )


def source(view: SourceView) -> schemas.SourceOut:
    """One source over all recipes."""
    return schemas.SourceOut(
        **{name: getattr(view.signer, name) for name in schemas.SignerOut.model_fields},
        why=view.why,
        records=view.known.records,
        recipes=list(view.known.recipes),
        first_seen=view.known.first_seen,
        last_seen=view.known.last_seen,
        links=links.source_links(view.signer.source),
    )
