"""Writes the pages that are made from tables in the code; `--check` says whether they are up to date.

Usage: .venv/bin/python tools/generate_docs.py [--check]
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.adapters.oci.codes import FETCH_CODES  # noqa: E402  the path above comes first
from app.core.canonical.refusals import Refusal  # noqa: E402
from app.core.error_codes import (  # noqa: E402
    ALLOWLIST_RULES,
    OPERATION,
    RECIPE_CURES,
    REFUSALS,
    SET_ASIDE,
    STALENESS,
    ErrorCode,
)
from app.core.rules import RULES, Rule, RuleKind  # noqa: E402
from app.web.apidoc import render_api_page  # noqa: E402
from app.web.app import bare_app  # noqa: E402
from app.web.openapi import contract, reference  # noqa: E402
from app.web.problems import PROBLEMS  # noqa: E402
from tools.cli_pages import CLI, OPERATING, cli_page, operating_page  # noqa: E402
from tools.module_pages import ARCHITECTURE, architecture_page  # noqa: E402

VERIFICATION = ROOT / "docs" / "verification.md"
ERRORS = ROOT / "docs" / "errors.md"
API = ROOT / "docs" / "api.md"
OPENAPI = ROOT / "tests" / "assets" / "openapi.json"

_HEAD = """\
# What is verified

<!-- Made by tools/generate_docs.py from app/core/rules.py; change the table there. -->

A report has five steps. Every refusal and every finding names the rule that spoke and its code; codes never change
their meaning. Rules are of three kinds:

| kind | where it comes from | what it changes |
|---|---|---|
| upstream | the checks that NVIDIA's own verifier makes | fails its step for everybody |
| signature | stricter than the Sigstore library | fails step 2 for everybody; S18 is a finding and takes the weight |
| finding | stricter than upstream | a finding in the report; fails with `--strict` and on ingest |
"""

_CHOICES = """\
## Where two readings were possible

- A payload that is base64 inside base64 is refused (S5): the signature covers what one decoding gives, and that is no
  statement.
- A log index of 0 is a real index (S17).
- A known key in another spelling is refused in bundles and in recipe evidence (S2): decoders that ignore case would
  read another document than decoders that do not.
- A Rekor v2 entry with an integrated time is refused (S9): nothing signs that time.
- The SCT of a certificate is held against the period of the CT log at the SCT's own time; the log's key and the
  certificate authority are held against every time that a timestamp authority or the log vouched for (S11).
- An unlimited public-good root speaks for the issuers that public Fulcio certifies; beside it no private root may be
  given one of them. An issuer that is given to a private root is that root's alone.
- The identity pin searches, as upstream's does: anchor it with `^` and `$` to mean the whole identity.
- A bundle or a payload with far more strings, brackets, colons and commas than any real one is refused before it is
  parsed (S1). The same holds for every other JSON document of a bundle: the unsigned statement fails step 3 then, a
  report is a finding E3, the bill of materials E2.
- The unsigned statement, which is read when no signature holds, is asked for neither a subject nor its type in step 3.
  Without exactly one subject it is a finding E9, with another `_type` than in-toto's a finding S16.
- A pointer that leaves `attestedAt` out says another time than the statement (E5). A pointer file is named after its
  digest, or as producers name it before it has its place: `pointer.yaml`, or `<recipe>.yaml` (E5).
- Evidence from before `not-inferable` was known may say `mismatched` in its place; every other difference from the six
  rows that recipe and fingerprint give is a finding (E8).
- An empty `signer` in a pointer is none.

## What is not proven

That the hardware exists, that the figures were measured on it, and that two signers ran independently of one another.
A signature proves who published a result and since when, not that the result is true.
"""

_TITLES = {
    RuleKind.UPSTREAM: "Upstream's checks",
    RuleKind.SIGNATURE: "Signature rules",
    RuleKind.FINDING: "Findings",
}


def verification_page() -> str:
    """`docs/verification.md`."""
    parts = [_HEAD]
    for kind, title in _TITLES.items():
        rules = [rule for rule in RULES.values() if rule.kind is kind]
        parts.append(f"## {title}\n\n{_table(rules)}")
    parts.append(_CHOICES)
    return "\n".join(parts)


def _table(rules: list[Rule]) -> str:
    lines = ["| rule | step | code | holds when | if not |", "|---|---|---|---|---|"]
    for rule in rules:
        codes = "<br>".join(f"`{code}`" for code in (rule.code, *rule.subcodes))
        cells = (rule.id, f"{rule.step.number} `{rule.step.value}`", codes, rule.title, rule.cure)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


_ERRORS_HEAD = """\
# Errors

<!-- Made by tools/generate_docs.py from the code tables; change them there. -->

Every error carries a stable code; its meaning never changes. Over HTTP an error is the envelope `{code, message,
details, requestId, timestamp, retryable}`: `code` is one of the first table, a finer code stands in
`details.cause`, `details.code` or `details.reason`. Commands print the code and its cure on stderr. A message says
what was expected and what was found.
"""

_EXITS = """\
## Exit codes of the commands

| exit | meaning | what to do |
|---|---|---|
| 0 | done; for `verify`: valid, or valid and waiting for a signature | |
| 1 | differences were found (`check-tree`, `index --check`) | correct what the lines name |
| 2 | refused: bad input, an invalid bundle, one with recorded phase failures, or an output that can not be written | \
read the code and its cure |
| 3 | not found | check the name |
| 4 | not authorised | check the token |
| 5 | no verdict was reached: a registry, the storage or the service did not answer in time | try again |
| 6 | the service can not be reached, or answers that it is unavailable | start it, or try again |
| 7 | too many requests | wait, then try again |
| 8 | a fault of the program | report it |
| 9 | stopped by the user | |
"""


def errors_page() -> str:
    """`docs/errors.md`."""
    http = "\n".join(
        f"| `{code}` | {problem.status} | {'yes' if problem.retryable else 'no'} | {problem.meaning} | {problem.cure} |"
        for code, problem in PROBLEMS.items()
    )
    rules = "\n".join(
        f"| `{code}` | {rule.id} | {rule.title} | {rule.cure} |"
        for rule in RULES.values()
        for code in (rule.code, *rule.subcodes)
    )
    parts = (
        _ERRORS_HEAD,
        "## Answers of the service",
        f"| code | status | again later | meaning | cure |\n|---|---|---|---|---|\n{http}",
        _EXITS.rstrip("\n"),
        "## Rules of a verdict",
        "What each rule asks for is told in [verification.md](verification.md).",
        f"| code | rule | what did not hold | cure |\n|---|---|---|---|\n{rules}",
        "## Other refusals of a bundle",
        _codes(REFUSALS.values()),
        "## Reading a registry",
        _codes(ErrorCode(entry.code, entry.cause, entry.cure) for entry in FETCH_CODES.values()),
        "## Recipes that get no digest",
        "Named in `details.refusal`; [digest.md](digest.md) says more.",
        _codes(ErrorCode(refusal.name, f"{refusal.value}.", RECIPE_CURES[refusal]) for refusal in Refusal),
        "## Allowlist files",
        "Named in `details.rule`.",
        _codes(ALLOWLIST_RULES.values()),
        "## Records that count nowhere",
        "Shown beside a recipe as `setAside`.",
        _codes(SET_ASIDE.values()),
        "## Records that are not current",
        _codes(STALENESS.values()),
        "## Running the service and the commands",
        _codes(OPERATION.values()),
    )
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _codes(entries: Iterable[ErrorCode]) -> str:
    lines = [f"| `{entry.code}` | {entry.cause} | {entry.cure} |" for entry in entries]
    return "\n".join(["| code | cause | cure |", "|---|---|---|", *lines])


def api_page() -> str:
    """`docs/api.md`."""
    return render_api_page(reference(contract(bare_app())))


def openapi_snapshot() -> str:
    """The contract that a test holds the routes against."""
    return contract(bare_app()).decode() + "\n"


PAGES: Mapping[Path, Callable[[], str]] = {
    VERIFICATION: verification_page,
    ERRORS: errors_page,
    API: api_page,
    OPENAPI: openapi_snapshot,
    CLI: cli_page,
    OPERATING: operating_page,
    ARCHITECTURE: architecture_page,
}


def main(arguments: list[str]) -> int:
    """Write every page, or with `--check` name those that differ; exit 1 when one does."""
    check = arguments == ["--check"]
    stale = [path for path, make in PAGES.items() if not path.exists() or path.read_text(encoding="utf-8") != make()]
    for path in stale:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is not what the code says; run tools/generate_docs.py")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(PAGES[path](), encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
