"""`allowlist check|classify|diff|activate`."""

import argparse

from app.bootstrap.offline import activate_allowlist, effects, load_allowlist
from app.cli.exits import OK
from app.cli.output import say, table, write, write_block, write_json
from app.config import WEIGHING, load_settings
from app.core.allowlist import AllowlistEntry
from app.core.allowlist_diff import AllowlistDiff, Reach, VerdictDiff, diff_allowlists
from app.core.errors import ServiceError
from app.core.identity import source_slug

_NAMED = 20  # recipes that a line names


def check(options: argparse.Namespace) -> int:
    """Load a file; a broken one ends with exit 2 and the rule that it breaks, which is an answer too."""
    try:
        listed = load_allowlist(options.file)
    except ServiceError as err:
        if options.format == "json":
            rule = err.details.get("rule")
            write_json({"valid": False, "rule": rule, "message": err.message, "hint": err.hint})
        raise
    counts: dict[str, int] = {}
    for entry in listed.entries:
        counts[entry.source_class.value] = counts.get(entry.source_class.value, 0) + 1
    if options.format == "json":
        write_json({"valid": True, "sha256": listed.sha256, "entries": counts})
    else:
        summary = ", ".join(f"{n} {name}" for name, n in counts.items()) or "no entries: nobody is listed"
        write(f"valid: {summary} (sha256 {listed.sha256[:12]})")
    return OK


def classify(options: argparse.Namespace) -> int:
    """Say what class a signer has under a file."""
    listed = load_allowlist(options.file)
    found = listed.classify(options.issuer, options.identity)
    body = {
        "class": found.source_class.value,
        "allowlisted": found.allowlisted,
        "source": source_slug(options.issuer, options.identity),
        **({"label": found.label} if found.label else {}),
    }
    if options.format == "json":
        write_json(body)
    else:
        counts = "counts" if found.allowlisted else "is not listed: shown, never counted"
        label = f" ({found.label})" if found.label else ""
        write(f"{body['source']}  {body['class']}{label}  {counts}")
    return OK


def diff(options: argparse.Namespace) -> int:
    """Compare two files and say what the change does to every stored recipe."""
    old, new = load_allowlist(options.old), load_allowlist(options.new)
    entries = diff_allowlists(old, new)
    found = effects(load_settings(uses=WEIGHING), old, new)
    recipes = None if found is None else found.changes
    reach = found.reach if found and (entries.added or entries.changed) else ()
    if recipes is None:
        say("note: there is no database here, so only entries were compared (AICR_EVIDENCE_DATABASE_URL names one)")
    if options.format == "json":
        write_json({**_json(entries, recipes), "reach": None if found is None else [_reach(each) for each in reach]})
        return OK
    for sign, listed in (("-", entries.removed), ("+", entries.added)):
        for entry in listed:
            write(f"{sign} {entry.source_class.value}  {entry.name}  {entry.issuer}")
    for change in entries.changed:
        write(f"~ {change.after.source_class.value}  {change.after.name}  {', '.join(change.what)}")
    if entries.empty:
        write("both files list the same signers")
    if recipes:
        write("")
        write_block(table(("RECIPE", "STATE", "TODAY'S DIGEST", "ROWS", "SOURCES"), [_line(each) for each in recipes]))
    elif recipes is not None and not entries.empty:
        write("no stored recipe changes")
    for does, named in (
        ("confirm", [each.recipe for each in reach if each.confirms]),
        ("contest", [each.recipe for each in reach if each.contests]),
    ):
        if named:
            shown = ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")
            write(f"a new signer's next run could {does}: {shown}")
    return OK


def activate(options: argparse.Namespace) -> int:
    """Put a file into force on a server database."""
    version = activate_allowlist(load_settings(uses=WEIGHING), options.file)
    if options.format == "json":
        write_json({"sha256": version.sha256, "since": version.since.strftime("%Y-%m-%dT%H:%M:%SZ")})
    else:
        write(f"in force: {version.sha256[:12]} since {version.since:%Y-%m-%dT%H:%M:%SZ}")
    return OK


def _line(change: VerdictDiff) -> tuple[str, str, str, str, str]:
    rows = ", ".join(
        f"{row.phase}/{row.name} {row.before.value if row.before else '-'} -> {row.after.value if row.after else '-'}"
        for row in change.rows
    )
    sources = ", ".join(f"{'+' if each.counted_after else '-'}{each.source}" for each in change.sources)
    current_before, current_after = (s.value if s else "-" for s in (change.current_before, change.current_after))
    return (
        change.recipe,
        f"{change.before.value} -> {change.after.value}",
        f"{current_before} -> {current_after}",
        rows,
        sources,
    )


def _json(entries: AllowlistDiff, recipes: tuple[VerdictDiff, ...] | None) -> dict[str, object]:
    """Keys as in the API: camelCase, entries as `/allowlist` shows them."""
    return {
        "added": [_entry(entry) for entry in entries.added],
        "removed": [_entry(entry) for entry in entries.removed],
        "changed": [{"entry": _entry(change.after), "what": list(change.what)} for change in entries.changed],
        "recipes": None if recipes is None else [_recipe(change) for change in recipes],
    }


def _entry(entry: AllowlistEntry) -> dict[str, str]:
    return {
        "class": entry.source_class.value,
        "label": entry.label,
        "issuer": entry.issuer,
        "source": entry.source,
        "identityPattern": entry.pattern.text if entry.pattern else "",
    }


def _reach(reach: Reach) -> dict[str, object]:
    return {"recipe": reach.recipe, "state": reach.state, "ifPassed": reach.if_passed, "ifFailed": reach.if_failed}


def _recipe(change: VerdictDiff) -> dict[str, object]:
    return {
        "recipe": change.recipe,
        "state": {"before": change.before, "after": change.after},
        "currentState": {"before": change.current_before, "after": change.current_after},
        "rows": [
            {"phase": row.phase, "name": row.name, "before": row.before, "after": row.after} for row in change.rows
        ],
        "sources": [
            {"source": each.source, "before": each.counted_before, "after": each.counted_after}
            for each in change.sources
        ],
        "setAside": list(change.set_aside),
        "reinstated": list(change.reinstated),
    }
