"""Writes the pages that are made from tables in the code; `--check` says whether they are up to date.

Usage: .venv/bin/python tools/generate_docs.py [--check]
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.core.rules import RULES, Rule, RuleKind  # noqa: E402  the path above comes first
from app.web.apidoc import render_api_page  # noqa: E402
from app.web.app import bare_app  # noqa: E402
from app.web.openapi import contract, reference  # noqa: E402

VERIFICATION = ROOT / "docs" / "verification.md"
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
| signature | stricter than the Sigstore library | fails step 2 for everybody; S18 takes the weight instead |
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
- A bundle or a payload with far more brackets, colons and commas than any real one is refused before it is parsed (S1).

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


def api_page() -> str:
    """`docs/api.md`."""
    return render_api_page(reference(contract(bare_app())))


def openapi_snapshot() -> str:
    """The contract that a test holds the routes against."""
    return contract(bare_app()).decode() + "\n"


PAGES: Mapping[Path, Callable[[], str]] = {VERIFICATION: verification_page, API: api_page, OPENAPI: openapi_snapshot}


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
