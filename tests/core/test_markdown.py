"""The report for people: its parts in order, and strangers' text stays text (evidence-format 8.7, trust 5)."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from app.core.markdown import NOT_PROVEN, certified, code, escape, render_markdown
from app.core.report import Fault, Finding, InputKind, Report, ReportSigner, StepName, SubRow
from app.core.verdict_steps import StepLog
from tests.support.bundles import NAME, criteria_match


def predicate(**changes: object) -> dict[str, object]:
    """A predicate with everything that is shown."""
    return {
        "schemaVersion": "1.0.0",
        "aicrVersion": "v0.42.0",
        "criteriaMatch": criteria_match(),
        "phases": {
            "conformance": {"passed": 0, "failed": 0, "skipped": 0},
            "deployment": {"passed": 2, "failed": 0, "skipped": 1},
            "performance": {"passed": 1, "failed": 1, "skipped": 0},
        },
        "bom": {"format": "CycloneDX", "version": "1.6", "imageCount": 2, "digest": "sha256:ab"},
        "redaction": {"policy": "minimal", "version": "v4", "applied": ["ctrf.tests.omit:stdout"]},
        **changes,
    }


def full_report(**changes: object) -> Report:
    """A valid signed report with recorded failures."""
    log = StepLog(
        InputKind.OCI,
        bundle_digest=f"sha256:{'ab' * 32}",
        signer=ReportSigner("1234567+octocat@users.noreply.github.com", "https://github.com/login/oauth", 42),
        predicate=predicate(),
        recipe_name=NAME,
        failed_phases=True,
    )
    for name, value in changes.items():
        setattr(log, name, value)
    log.passed(StepName.MATERIALIZE)
    log.passed(StepName.SIGNATURE, "verified under sandbox")
    log.passed(StepName.PREDICATE)
    log.passed(StepName.MANIFEST, "6 files")
    log.informational(StepName.SUMMARY)
    return log.report()


def test_the_whole_report_of_a_signed_bundle() -> None:
    assert render_markdown(full_report()) == (
        "## Evidence verification — h100-eks-ubuntu-training\n"
        "\n"
        "**Signer:** 1234567+octocat@users.noreply.github.com (issuer https://github.com/login/oauth)"
        " • **Rekor:** index 42  \n"
        "**AICR:** v0.42.0  \n"
        "**Schema:** 1.0.0  \n"
        f"**Bundle digest:** `sha256:{'ab' * 32}`\n"
        "\n"
        "### Cluster fingerprint\n"
        "\n"
        "All of the recipe's criteria that were captured are satisfied.\n"
        "\n"
        "| Dimension | Outcome |\n"
        "|---|---|\n"
        "| service | matched recipe=eks snapshot=eks |\n"
        "| accelerator | matched recipe=h100 snapshot=h100 |\n"
        "| os | matched recipe=ubuntu snapshot=ubuntu |\n"
        "| intent | unknown recipe=training snapshot=(not captured) |\n"
        "| platform | matched recipe=(any) snapshot=(not captured) |\n"
        "| nodes | matched recipe=(any) snapshot=4 |\n"
        "\n"
        "### Phase results\n"
        "\n"
        "- ✅ **deployment** passed=2 failed=0 skipped=1\n"
        "- ❌ **performance** passed=1 failed=1 skipped=0\n"
        "- ⚪ **conformance** passed=0 failed=0 skipped=0 (nothing recorded)\n"
        "\n"
        "### BOM\n"
        "\n"
        "- CycloneDX 1.6, 2 components\n"
        "- digest `sha256:ab`\n"
        "\n"
        "### Redaction\n"
        "\n"
        "Policy minimal v4\n"
        "\n"
        "- `ctrf.tests.omit:stdout`\n"
        "\n"
        "### Verification steps\n"
        "\n"
        "| # | Step | Status | Detail |\n"
        "|---|---|---|---|\n"
        "| 1 | materialize-bundle | passed |  |\n"
        "| 2 | signature-verify | passed | verified under sandbox |\n"
        "| 3 | predicate-parse | passed |  |\n"
        "| 4 | manifest-hash-check | passed | 6 files |\n"
        "| 5 | render-summary | informational |  |\n"
        "\n"
        "---\n"
        "\n"
        "**Verdict:** valid; recorded phases have failures (1)\n"
        "\n"
        "### What this proves\n"
        "\n"
        "Verified here:\n"
        "\n"
        "- the signature, its certificate and its transparency-log entry hold under a trusted root\n"
        "- the statement is recipe evidence of a known type\n"
        "- every file is the one that was signed, and the recipe is the one that is named\n"
        "\n"
        "Not proven by any of it:\n"
        "\n"
        f"- {NOT_PROVEN[0]}\n"
        f"- {NOT_PROVEN[1]}\n"
        f"- {NOT_PROVEN[2]}\n"
    )


def test_a_pending_report_says_pending_signature() -> None:
    log = StepLog(InputKind.DIRECTORY, unsigned=True, predicate=predicate(), recipe_name=NAME)
    log.passed(StepName.MATERIALIZE)
    log.skipped(StepName.SIGNATURE, "unsigned")
    text = render_markdown(log.report())
    assert "*unsigned bundle; nothing below is vouched for by anybody*" in text
    assert "**Verdict:** valid, pending signature (0)" in text
    assert "the signature, its certificate" not in text


@pytest.mark.parametrize("attested", [None, Fault("SIGSTORE", "sigstore verification failed")], ids=["none", "bad"])
def test_without_a_signature_that_holds_nothing_is_said_to_be_signed(attested: Fault | None) -> None:
    log = StepLog(InputKind.DIRECTORY, unsigned=attested is None, predicate=predicate(), recipe_name=NAME)
    log.passed(StepName.MATERIALIZE)
    if attested is None:
        log.skipped(StepName.SIGNATURE, "unsigned")
    else:
        log.failed(StepName.SIGNATURE, attested)
    log.passed(StepName.PREDICATE)
    log.passed(StepName.MANIFEST, "6 files")
    assert render_markdown(log.report()).partition("Verified here:\n\n")[2].partition("\n\n")[0] == (
        "- the statement, which no verified signature covers, is recipe evidence of a known type\n"
        "- every file is one that this statement's manifest lists, and the recipe is the one it names"
    )


def test_a_refused_report_shows_cause_hint_details_and_findings() -> None:
    log = StepLog(
        InputKind.OCI, findings=(Finding("E4", "E4_DUPLICATE_TEST", "deployment: the test 'a' appears twice"),)
    )
    log.failed(StepName.SIGNATURE, Fault("S5", "not canonical", sub_rows=(SubRow("key", "value"),)))
    text = render_markdown(log.report())
    assert "*signature verification failed; nothing below is vouched for by anybody*" in text
    assert "### Failed check details\n\n**signature-verify**\n\n- `key` value" in text
    assert "- **E4** `E4_DUPLICATE_TEST` deployment: the test 'a' appears twice" in text
    assert "**Verdict:** invalid (2)\n\n**Cause:** signature  \n\n> not canonical" in text
    assert "Verified here:\n\n- nothing" in text


def test_a_registrys_status_and_hint_are_shown() -> None:
    log = StepLog(InputKind.OCI)
    log.failed(StepName.MATERIALIZE, Fault("X", "busy", http_status=503))
    text = render_markdown(log.report())
    assert "**Verdict:** no verdict was reached (3)" in text
    assert "**Cause:** transient (HTTP 503)" in text
    assert "**Hint:** the registry reported a server error; retry later" in text
    assert text.startswith("## Evidence verification\n")


@pytest.mark.parametrize(
    ("match", "line"),
    [
        ({"accelerator": "mismatched"}, "does not satisfy some"),
        ({"service": "not-inferable"}, "some can not be inferred"),
        ({}, "All of the recipe's criteria"),
    ],
)
def test_the_fingerprint_has_one_summary_line(match: dict[str, str], line: str) -> None:
    assert line in render_markdown(full_report(predicate=predicate(criteriaMatch=criteria_match(**match))))


HOSTILE = (
    "<img src=x onerror=alert(1)> [x](javascript:alert(1)) | a\n"
    "# head `c` **b** _i_ ~~s~~ \u202eevil \x1b[31m &lt; @team"
)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(full_report(recipe_name=HOSTILE), id="recipe-name"),
        pytest.param(full_report(signer=ReportSigner(HOSTILE, HOSTILE, 1)), id="signer"),
        pytest.param(full_report(bundle_digest=HOSTILE), id="digest"),
        pytest.param(full_report(predicate=predicate(aicrVersion=HOSTILE, schemaVersion=HOSTILE)), id="versions"),
        pytest.param(
            full_report(
                predicate=predicate(
                    criteriaMatch={
                        "perDimension": [
                            {
                                "dimension": HOSTILE,
                                "match": HOSTILE,
                                "recipeRequires": HOSTILE,
                                "fingerprintProvides": HOSTILE,
                            }
                        ]
                    }
                )
            ),
            id="fingerprint",
        ),
        pytest.param(
            full_report(predicate=predicate(bom={"format": HOSTILE, "version": HOSTILE, "digest": HOSTILE})), id="bom"
        ),
        pytest.param(
            full_report(predicate=predicate(redaction={"policy": HOSTILE, "version": HOSTILE, "applied": [HOSTILE]})),
            id="redaction",
        ),
        pytest.param(full_report(findings=(Finding("E1", HOSTILE, HOSTILE),)), id="finding"),
    ],
)
def test_what_a_stranger_wrote_stays_text(report: Report) -> None:
    plain = render_markdown(full_report())
    assert structure(render_markdown(report)) <= structure(plain) | {"bullet_list_open", "code_inline"}
    text = render_markdown(report)
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "onerror" in text


def structure(markdown: str) -> set[str]:
    """What a Markdown reader makes of the text, apart from text."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown)
    kinds = {token.type for token in tokens}
    for token in tokens:
        kinds |= {child.type for child in token.children or []}
    kinds |= {f"{token.type}-{token.tag}" for token in tokens if token.type == "heading_open"}
    return kinds


def test_a_failed_steps_detail_stays_in_its_cell_and_its_quote() -> None:
    log = StepLog(InputKind.OCI)
    log.failed(StepName.MANIFEST, Fault("X", HOSTILE, sub_rows=(SubRow(HOSTILE, HOSTILE),)))
    text = render_markdown(log.report())
    row = next(line for line in text.splitlines() if line.startswith("| 4 |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert not structure(text) & {"html_block", "html_inline", "link_open", "image", "s_open", "em_open"}


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_becomes_markup(text: str) -> None:
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(f"x {escape(text)} y")
    assert [token.type for token in rendered] == ["paragraph_open", "inline", "paragraph_close"]
    inline = rendered[1].children or []
    assert {child.type for child in inline} <= {"text", "text_special", "softbreak"}


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_leaves_its_code_span(text: str) -> None:
    shown = code(text)
    assert "\n" not in shown
    assert shown == "(empty)" or (shown.count("`"), shown[0], shown[-1]) == (2, "`", "`")


def test_endless_text_is_cut() -> None:
    assert len(escape("a" * 100_000)) == 2001


def test_an_identity_with_underscores_stays_readable() -> None:
    assert escape("my_repo/a_b@refs/heads/main") == "my_repo/a_b@refs/heads/main"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://evil.example/login", "see https:&#8288;//evil.example/login"),
        ("FTP://evil.example", "FTP:&#8288;//evil.example"),
        ("www.evil.example, WWW.evil.example", "www&#8288;.evil.example, WWW&#8288;.evil.example"),
        ("mailto:me@evil.example", "mailto:me@&#8288;evil.example"),
        ("me@_evil.example", "me@&#8288;\\_evil.example"),
        ("@org/team", "@&#8288;org/team"),
        ("NVIDIA/aicr#12", "NVIDIA/aicr\\#&#8288;12"),
        ("release.yml@refs/tags/v1.0", "release.yml@refs/tags/v1.0"),
        ("ghcr.io/a/b@sha256:0123", "ghcr.io/a/b@sha256:0123"),
        ("a: // b", "a: // b"),
        ("a\u2060b", "a\\\\u2060b"),
    ],
)
def test_text_without_markup_becomes_no_link_and_notifies_nobody(text: str, shown: str) -> None:
    """As GitHub's extensions of Markdown would make one: addresses, mail addresses, mentions, issues."""
    assert escape(text) == shown


def test_a_certified_name_can_be_copied_and_notifies_nobody() -> None:
    assert certified("1234567+octocat@users.noreply.github.com") == "1234567+octocat@users.noreply.github.com"
    assert certified("https://github.com/login/oauth") == "https://github.com/login/oauth"
    assert certified("@team <b>") == "@&#8288;team &lt;b&gt;"


def test_a_finding_quotes_no_live_link() -> None:
    text = render_markdown(full_report(findings=(Finding("E4", "E4_DUPLICATE_TEST", "https://evil.example"),)))
    assert "https:&#8288;//evil.example" in text
    assert "https://evil.example" not in text
