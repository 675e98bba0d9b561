"""`status`, `why`, `answer`: what the service says, for a terminal. Nothing is computed here."""

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from app.cli.exits import OK
from app.cli.files import read_file
from app.cli.output import table, write, write_block, write_json
from app.client import ApiClient
from app.config import load_settings
from app.core.errors import InputError

_MAX_SNAPSHOT_BYTES = 8 << 20
_CRITERIA = ("service", "accelerator", "os", "intent", "platform")
_WIDEST = 110
_SHORT = 12
_BACKING = {
    "evidence": "no catalogue has it",
    "retired": "the catalogue retired it",
    "none": "neither the catalogue nor a listed source backs it",
}

Body = Mapping[str, Any]


def status(options: argparse.Namespace) -> int:
    """Every recipe in one table, or one recipe's grid with what each source said."""
    lens = {"aicrVersion": options.aicr_version} if options.aicr_version else {}
    with _api(options) as api:
        if options.recipe is None:
            if lens:
                raise InputError("--aicr-version needs a RECIPE", hint="aicr evidence status RECIPE --aicr-version V")
            lines: list[Body] = [dict(line) for line in api.recipes()]
            if options.format == "json":
                write_json({"items": lines, "next": None})
            else:
                write_block(overview(lines))
            return OK
        body: Body = api.recipe(options.recipe, **lens)
    if options.format == "json":
        write_json(body)
    else:
        write(*_head(body), "", *_grid(body), *_sources(body), *_reasons(body), *_foot(body))
    return OK


def why(options: argparse.Namespace) -> int:
    """What keeps a recipe from CONFIRMED, why its evidence is not current, and what was set aside."""
    with _api(options) as api:
        body: Body = api.recipe(options.recipe)
    if options.format == "json":
        write_json(body)
    else:
        write(*_head(body), "", *_missing(body), *_reasons(body), *_foot(body))
    return OK


def answer(options: argparse.Namespace) -> int:
    """The recipes for this hardware with k of n, or the nearest ones with exactly what differs."""
    asked = {name: value for name in _CRITERIA if (value := getattr(options, name))}
    if options.snapshot is None and not asked:
        raise InputError(
            "expected criteria or a snapshot, found neither",
            hint="e.g. --service eks --accelerator h100 --os ubuntu --intent training, or -s snapshot.yaml",
        )
    document = None
    if options.snapshot is not None:
        document = read_file(options.snapshot, max_bytes=_MAX_SNAPSHOT_BYTES, what="a snapshot")
    with _api(options) as api:
        body: Body = api.answer(**asked) if document is None else api.answer_document(document, **asked)
    if options.format == "json":
        write_json(body)
    else:
        write(*_answered(body))
    return OK


def _api(options: argparse.Namespace) -> ApiClient:
    return ApiClient(options.api or load_settings(uses=()).api, options.timeout)


# --- parts ---------------------------------------------------------------------------------------------


def overview(lines: Iterable[Body]) -> str:
    """The verdict table: one line a recipe, as `GET /recipes` lists them."""
    rows = [
        (
            line["recipe"],
            line["state"],
            line["currentState"] or "-",
            f"{line['passes']} of {line['threshold']}",
            str(line["reported"]),
            ", ".join(line["staleness"]) or ("current" if line["sources"] else "-"),
        )
        for line in lines
    ]
    if not rows:
        return "no recipe is known yet"
    return table(("RECIPE", "STATE", "TODAY'S DIGEST", "SIGNERS", "REPORTED", "EVIDENCE IS"), rows)


def _head(body: Body) -> list[str]:
    view = body["view"]
    lens = f" with AICR {view['aicrVersion']} alone" if view["aicrVersion"] else ""
    counted = "signers" if view["confirmBy"] == "signer" else "parties"
    return [
        f"{body['recipe']}: {body['state']}{lens}{_today(body)}",
        *_wrapped(
            f"a check needs {view['confirmThreshold']} {counted} that passed it; attested digests: {body['digests']}, "
            f"parties: {body['parties']}, newest run: {body['newest'] or 'none'}"
        ),
    ]


def _today(body: Body) -> str:
    """What holds for today's recipe; nothing when no catalogue says what that is."""
    if body["currentState"] is None:
        return ""
    same = body["currentState"] == body["state"]
    return ", also for today's recipe" if same else f"; for today's recipe {body['currentState']}"


def _grid(body: Body) -> list[str]:
    names = {source["sourceId"]: _name(source) for source in body["sources"]}
    rows = [
        (
            row["phase"],
            row["name"],
            row["consensus"] if row["counted"] else f"({row['consensus']})",
            f"{row['passes']} of {body['view']['confirmThreshold']}",
            "; ".join(_said(result, names) for result in row["signers"]) or "nobody ran it",
        )
        for row in body["rows"]
    ]
    if not rows:
        return ["no check has been run"]
    return table(("PHASE", "CHECK", "CONSENSUS", "SIGNERS", "WHO SAID WHAT"), rows).splitlines()


def _said(result: Body, names: Mapping[str, str]) -> str:
    name = names.get(result["sourceId"], result["source"][:_SHORT])
    reason = f" ({result['skipReason']})" if result["skipReason"] else ""
    weight = "" if result["counts"] else f" [{result['weight'] or 'not counted'}]"
    return f"{name} {result['status']}{reason}{weight}"


def _sources(body: Body) -> list[str]:
    rows = [
        (
            source["source"][:_SHORT],
            _name(source),
            source["class"],
            _weight(source),
            source["attestedAt"],
            f"{source['ageDays']} d",
            source["aicrVersion"],
            ", ".join(reason["reason"] for reason in source["staleness"]) or "current",
        )
        for source in body["sources"]
    ]
    if not rows:
        return []
    headings = ("SOURCE", "WHO", "CLASS", "COUNTS", "ATTESTED", "AGE", "AICR", "EVIDENCE IS")
    return ["", *table(headings, rows).splitlines()]


def _name(source: Body) -> str:
    return str(source["label"] or source["identity"])


def _weight(source: Body) -> str:
    if source["weightless"]:
        return f"no: {source['weightless']}"
    return "yes" if source["allowlisted"] else "no: not listed"


def _missing(body: Body) -> list[str]:
    if not body["missing"]:
        return ["nothing is missing: every check that counts is confirmed"]
    return ["what is missing:", *(line for item in body["missing"] for line in _wrapped(f"- {item['message']}"))]


def _reasons(body: Body) -> list[str]:
    """Staleness with its difference and what clears it, remarks, and runs that were set aside."""
    lines: list[str] = []
    for source in body["sources"]:
        for reason in source["staleness"]:
            lines += _wrapped(f"- {_name(source)}: {reason['reason']}: {reason['message']}")
            lines += [line for each in reason["difference"] for line in _wrapped(each, 4)]
            lines += _wrapped(f"cleared by: {reason['clears']}", 4)
    stale = ["", "not current:", *lines] if lines else []
    said = [f"- {remark['code']}: {remark['message']}" for remark in body["remarks"]]
    said += [
        f"- {_name(source)}: {remark['code']}: {remark['message']}"
        for source in body["sources"]
        for remark in source["remarks"]
    ]
    remarks = ["", "remarks:", *(line for each in dict.fromkeys(said) for line in _wrapped(each))] if said else []
    aside = [
        f"- {run['digest']} of {run['source'][:_SHORT]}: {run['code']}: {run['reason']}" for run in body["setAside"]
    ]
    set_aside = ["", "set aside:", *(line for each in aside for line in _wrapped(each))] if aside else []
    return [*stale, *remarks, *set_aside]


def _foot(body: Body) -> list[str]:
    """What was verified and what no signature can show (service 5)."""
    return [
        "",
        *_wrapped("verified here: " + "; ".join(body["verified"]), hang=2),
        *_wrapped("not proven: " + "; ".join(body["notProven"]), hang=2),
    ]


def _answered(body: Body) -> list[str]:
    lines = _wrapped(body["sentence"])
    lines += [line for note in body["asked"]["notes"] for line in _wrapped(f"note: {note}", hang=2)]
    for title, found in (("fits:", body["matches"]), ("nearest:", body["nearest"])):
        if found:
            lines += ["", title, *(line for match in found for line in _match(match))]
    if body["more"]:
        lines += ["", f"and {body['more']} more that fit; say more to see fewer"]
    if body["retired"]:
        lines += ["", f"retired from the catalogue: {', '.join(body['retired'])}"]
    return lines


def _match(match: Body) -> list[str]:
    lines = [f"  {match['recipe']}: {match['state']}{_today(match)}, {match['passes']} of {match['threshold']}"]
    caveats = [_BACKING[match["backing"]]] if match["backing"] in _BACKING else []
    caveats += [code for code in match["staleness"] if code != "UNKNOWN_CURRENT"]
    if caveats:
        lines.append(f"    mind: {', '.join(caveats)}")
    lines += [
        f"    {each['dimension']}: asked {each['asked'] or 'any'}, the recipe is for {each['recipe'] or 'any'}"
        for each in match["differs"]
    ]
    if match["unsaid"]:
        lines.append(f"    you did not say: {', '.join(match['unsaid'])}")
    if match["general"]:
        lines.append(f"    holds for any: {', '.join(match['general'])}")
    return [*lines, f"    use it: {match['command']}"]


def _wrapped(text: str, indent: int = 0, *, hang: int = 0) -> list[str]:
    """Lines no wider than the terminal; following lines stand `hang` further in, those of a bullet below its text."""
    width = max(40, min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST))
    if text.startswith("- "):
        hang = 2
    return textwrap.wrap(
        text,
        width=width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
