"""`submit`, `status`, `why`, `answer`, `catalogue push`: what the service says, and the exit that follows."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.client import ApiClient
from app.core.bundle import DimensionMatch
from app.core.errors import FetchError, JudgeCrashed, JudgeUnavailable, RegistryNotTrusted
from app.core.report import CauseClass, Exit, FailureCause, InputKind, Report, StepName
from app.services.ingest_types import Refused
from app.web.app import create_app
from tests.support.bundles import NAME
from tests.support.bundles import RECIPE as RECIPE_TEXT
from tests.support.endtoend import Run, StatusRegistry, cli
from tests.support.runs import CHECK, OLDER, RECIPE, TODAY, allowlist_text, make_run, person, version, workflow
from tests.support.webapp import REGISTRY, FakeContainer, make_container, serving

REFERENCE = f"{REGISTRY}@sha256:{'ab' * 32}"
ESCAPE = "\x1b[2J\u202e"


@pytest.fixture
def container() -> FakeContainer:
    made = make_container(catalogue_token="push-me")
    made.allowlist.put(allowlist_text(person("dev-one"), person("dev-two"), labels={person("dev-one").slug: "lab-one"}))
    return made


@pytest.fixture(autouse=True)
def api(container: FakeContainer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(create_app(container)) as base:
        monkeypatch.setenv("AICR_EVIDENCE_API", base)
        yield base


def refuse(container: FakeContainer, reference: str = REFERENCE) -> None:
    cause = FailureCause(CauseClass.SIGNATURE, "the signature is nobody's", hint="sign it")
    report = Report(InputKind.OCI, (), Exit.INVALID, failure_cause=cause)
    container.ingest.results[reference] = Refused(StepName.SIGNATURE, "S13_LEAF", cause, report)


def submitted(container: FakeContainer, *words: str, results: str = "passed", created: bool = True) -> Run:
    reference = container.script(make_run(person("dev-one"), results), created=created)
    return cli("submit", reference, *words)


# --- submit --------------------------------------------------------------------------------------------


def test_submit_says_what_changed(container: FakeContainer) -> None:
    run = submitted(container)
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines() == [
        f"{RECIPE}: stored; community, counts; unknown -> SINGLE",
        "  remark personal-address: the signature put an e-mail address into a public log",
    ]
    body = submitted(container, "--format", "json").json
    assert list(body) == [
        "digest",
        "recipe",
        "source",
        "class",
        "allowlisted",
        "exit",
        "state",
        "remarks",
        "links",
    ]


def test_a_bundle_that_was_there_is_told_with_the_state_of_now(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one")))
    container.keep(make_run(person("dev-two")))
    run = submitted(container, created=False)
    assert (run.code, run.err, run.out.splitlines()[0]) == (
        0,
        "",
        f"{RECIPE}: was already there; community, counts; the recipe is CONFIRMED now",
    )
    assert submitted(container, "--format", "json", created=False).json["state"] == {"before": None, "after": "SINGLE"}


def test_a_state_that_can_not_be_asked_for_fails_no_submission(
    container: FakeContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> object:
        raise FetchError("too many requests", http_status=429)

    monkeypatch.setattr(ApiClient, "recipe", busy)
    run = submitted(container, created=False)
    assert (run.code, run.out.splitlines()[0].rpartition("; ")[2]) == (0, "the recipe was SINGLE then")


def test_a_submission_counts_though_what_changed_can_not_be_printed(
    container: FakeContainer, api: str, tmp_path: Path
) -> None:
    reference = container.script(make_run(person("dev-one")))
    command = [sys.executable, "-m", "app", "submit", reference, "--api", api]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr.decode()) == (
        0,
        "warning: stdout can not be written, so its text is lost: No space left on device\n",
    )


def test_a_stranger_is_told_that_it_does_not_count(container: FakeContainer) -> None:
    run = cli("submit", container.script(make_run(person("nobody"))))
    assert (run.code, "is shown, its signer is not on the allowlist" in run.out) == (0, True)


@pytest.mark.parametrize(
    ("fail_on", "refused", "phases"), [("refused", 2, 0), ("phases", 2, 2), ("never", 0, 0), (None, 2, 0)]
)
def test_fail_on_says_which_verdict_is_a_failure(
    container: FakeContainer, fail_on: str | None, refused: int, phases: int
) -> None:
    words = ["--fail-on", fail_on] if fail_on else []
    assert submitted(container, *words).code == 0
    recorded = submitted(container, *words, results="failed")
    assert recorded.code == phases
    assert "recorded phase failures" in recorded.err
    refuse(container)
    run = cli("submit", REFERENCE, *words)
    assert (run.code, run.out) == (refused, "")
    assert run.err == "refused at signature-verify: S13_LEAF: the signature is nobody's\nhint: sign it\n"


@pytest.mark.parametrize("fail_on", ["refused", "never"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(FetchError("the registry is slow"), 5, id="registry"),
        pytest.param(JudgeUnavailable("busy"), 5, id="judge"),
        pytest.param(ValueError("a defect"), 5, id="internal"),
    ],
)
def test_no_verdict_is_exit_5_whatever_fails(
    container: FakeContainer, error: Exception, code: int, fail_on: str
) -> None:
    container.ingest.results[REFERENCE] = error
    run = cli("submit", REFERENCE, "--fail-on", fail_on)
    assert (run.code, run.out) == (code, "")
    assert run.err.startswith("error: ")


@pytest.mark.parametrize(
    "error",
    [RegistryNotTrusted("not here", hint="SETTING=x"), JudgeCrashed("it fell over twice")],
    ids=["gate", "crash"],
)
def test_what_the_service_will_not_take_is_exit_2(container: FakeContainer, error: Exception) -> None:
    container.ingest.results[REFERENCE] = error
    assert cli("submit", REFERENCE).code == 2
    assert cli("submit", REFERENCE, "--fail-on", "never").code == 0


def test_nobody_there_is_exit_6() -> None:
    run = cli("submit", REFERENCE, "--api", "http://127.0.0.1:9", "--fail-on", "never")
    assert (run.code, run.out) == (6, "")
    assert "aicr evidence serve" in run.err


def test_a_service_that_stays_silent_gave_no_verdict() -> None:
    with StatusRegistry() as silent:
        for words in (("submit", REFERENCE, "--fail-on", "never"), ("status",)):
            run = cli(*words, "--api", f"http://{silent.host}/silent", "--timeout", "0.2")
            assert (run.code, run.out) == (5, "")
            assert run.err == (
                f"error: the service at http://{silent.host}/silent did not answer within 0.2 seconds\n"
                "hint: it may still be at work: ask again, or wait longer with --timeout\n"
            )


def test_what_is_no_file_and_no_reference_is_not_sent(container: FakeContainer, tmp_path: Path) -> None:
    for name, said in (
        ("nofile.yaml", "'nofile.yaml' does not exist here, and is no reference: "),
        ("", "'' does not exist here, and is no reference: "),
        (str(tmp_path), f"{tmp_path} is no file, and the service can not see it\n"),
    ):
        run = cli("submit", name, "--fail-on", "never")
        assert (run.code, run.out) == (2, "")
        assert run.err.startswith(f"error: {said}")
    assert container.ingest.asked == []


def test_a_tag_is_a_usage_error(api: str) -> None:
    run = cli("submit", f"{REGISTRY}:v1", "--api", api)
    assert (run.code, run.out) == (2, "")
    assert "expected a reference with a digest" in run.err


def test_a_refusal_as_json_is_the_answer_of_the_api(container: FakeContainer) -> None:
    refuse(container)
    run = cli("submit", REFERENCE, "--format", "json")
    body = run.json
    assert (run.code, sorted(body)) == (2, ["code", "details", "message", "requestId", "retryable", "timestamp"])
    assert (body["code"], body["retryable"]) == ("EVIDENCE_REFUSED", False)
    assert (body["details"]["step"], body["details"]["code"]) == ("signature-verify", "S13_LEAF")
    assert body["details"]["cause"] == {"class": "signature", "detail": "the signature is nobody's", "hint": "sign it"}


def test_a_pointer_file_is_sent_as_it_is(container: FakeContainer, tmp_path: Path) -> None:
    pointer = tmp_path / "pointer.yaml"
    text = (
        f"attestations:\n  - bundle:\n      digest: sha256:{'ab' * 32}\n      oci: {REGISTRY}\n"
        f"      predicateType: https://aicr.run/recipe-evidence/v3\nrecipe: {RECIPE}\nschemaVersion: 1.0.0\n"
    )
    pointer.write_text(text)
    refuse(container)
    assert cli("submit", str(pointer), "--dry-run").code == 2
    (asked,) = container.ingest.asked
    assert (asked.pointer, asked.dry_run, str(asked.reference)) == (text.encode(), True, REFERENCE)
    pointer.write_bytes(b"x" * ((1 << 20) + 1))
    assert cli("submit", str(pointer)).code == 2


# --- status, why ---------------------------------------------------------------------------------------


def filled(container: FakeContainer) -> None:
    """One signer passed on an older digest, another failed a check and skipped one; the catalogue moved on."""
    container.keep(make_run(person("dev-one"), recipe_digest=OLDER, days=41))
    second = {CHECK: "failed", ("conformance", "dra-support"): "skipped"}
    container.keep(make_run(person("dev-two"), second, skip_reason="no nodes"))
    container.keep(make_run(person("nobody")))
    container.store.put_catalogue(
        [version(OLDER), version(TODAY, declared=[CHECK, ("performance", "nccl-all-reduce-bw")])],
        replace=False,
        project=container.allowlist.project,
    )


def test_status_lists_every_recipe(container: FakeContainer) -> None:
    assert cli("status").out == "no recipe is known yet\n"
    filled(container)
    run = cli("status")
    assert (run.code, run.err) == (0, "")
    heading, line = run.out.splitlines()
    assert heading.split("  ")[0] == "RECIPE"
    assert line.split() == [RECIPE, "CONTESTED", "FAILING", "0", "of", "2", "1", "DRIFTED,", "AGED"]
    body = cli("status", "--format", "json").json
    assert ([item["recipe"] for item in body["items"]], body["next"]) == ([RECIPE], None)


def test_status_of_one_recipe_shows_who_said_what(container: FakeContainer) -> None:
    filled(container)
    run = cli("status", RECIPE)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0] == f"{RECIPE}: CONTESTED; for today's recipe FAILING"
    row = next(line for line in lines if " operator-health " in line)
    assert "CONTESTED" in row
    assert "1 of 2" in row
    assert "lab-one passed" in row
    assert "d…o@example.org failed" in row
    assert "n…y@example.org passed [reported]" in row
    skipped = next(line for line in lines if " dra-support " in line)
    assert "skipped (no nodes)" in skipped
    assert "not current:" in lines
    assert any("DRIFTED: stale (" in line for line in lines)
    assert lines[-2].startswith("not proven:") or any(line.startswith("not proven:") for line in lines)
    assert "dev-two@example.org" not in run.out


def test_status_at_one_version_is_the_strict_grid(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one"), version="v1.0.0"))
    container.keep(make_run(person("dev-two"), version="v2.0.0"))
    assert cli("status", RECIPE).out.startswith(f"{RECIPE}: CONFIRMED")
    strict = cli("status", RECIPE, "--aicr-version", "v2.0.0", "--format", "json")
    assert (strict.json["view"]["aicrVersion"], [row["consensus"] for row in strict.json["rows"]]) == (
        "v2.0.0",
        ["SINGLE"],
    )
    assert "with AICR v2.0.0 alone" in cli("status", RECIPE, "--aicr-version", "v2.0.0").out
    alone = cli("status", "--aicr-version", "v2.0.0")
    assert (alone.code, alone.out) == (2, "")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../ready", "/"])
def test_what_is_no_name_asks_nobody(name: str) -> None:
    for verb in ("status", "why"):
        run = cli(verb, name, "--api", "http://127.0.0.1:9")
        assert (run.code, run.out) == (2, "")
        assert run.err == f"error: expected a name, got {name!r}\nhint: `aicr evidence status` lists every recipe\n"


def test_why_names_what_is_missing_and_what_is_stale(container: FakeContainer) -> None:
    filled(container)
    run = cli("why", RECIPE)
    assert (run.code, run.err) == (0, "")
    assert "what is missing:\n- " in run.out
    assert "`performance/nccl-all-reduce-bw`" in run.out
    assert "- lab-one: AGED: attested 41 days ago, more than 30" in run.out
    assert "    cleared by: a new run by this source" in run.out
    assert all(len(line) <= 110 for line in run.out.splitlines())
    body = cli("why", RECIPE, "--format", "json").json
    assert {item["name"] for item in body["missing"]} >= {"nccl-all-reduce-bw"}


def test_why_of_a_confirmed_recipe_misses_nothing(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one")))
    container.keep(make_run(person("dev-two")))
    run = cli("why", RECIPE)
    assert "nothing is missing: every check that counts is confirmed" in run.out


def test_an_unknown_recipe_is_exit_3() -> None:
    for verb in ("status", "why"):
        run = cli(verb, "no-such-recipe")
        assert (run.code, run.out) == (3, "")
        assert run.err.startswith("error: no recipe 'no-such-recipe' is known")


def test_nobody_there_is_exit_6_for_questions_too() -> None:
    for words in (("status",), ("why", RECIPE), ("answer", "--service", "eks")):
        run = cli(*words, "--api", "http://127.0.0.1:9")
        assert (run.code, run.out) == (6, "")


def test_what_strangers_wrote_moves_no_terminal(container: FakeContainer) -> None:
    run = make_run(person("dev-one"), {("deployment", f"check{ESCAPE}"): "skipped"}, skip_reason=f"because{ESCAPE}")
    container.keep(run)
    for words in (("status", RECIPE), ("why", RECIPE), ("status",)):
        shown = cli(*words)
        assert shown.code == 0
        assert "\x1b" not in shown.out
        assert "\u202e" not in shown.out


def test_every_part_of_a_recipe_can_be_printed(container: FakeContainer) -> None:
    """Weightless and mismatched runs, copies, branches: nothing that the API says breaks the words."""
    shared = [("snapshot", "12" * 32)]
    container.keep(make_run(person("dev-one"), prints=shared))
    container.keep(make_run(person("dev-two"), prints=shared))
    container.keep(replace(make_run(workflow()), weightless="S18: another repository called this workflow"))
    mismatched = DimensionMatch("accelerator", "mismatched", requires="h100", provides="a100")
    container.keep(replace(make_run(person("nobody")), hardware_matched=False, dimensions=(mismatched,)))
    run = cli("status", RECIPE)
    assert run.code == 0
    assert "copy-of" in run.out
    assert "no: S18: another repository called this workflow" in run.out


# --- answer --------------------------------------------------------------------------------------------


def test_answer_names_the_recipe_and_its_command(container: FakeContainer, tmp_path: Path) -> None:
    filled(container)
    words = ("--service", "eks", "--accelerator", "h100", "--os", "ubuntu", "--intent", "training")
    run = cli("answer", *words, "--platform", "kubeflow")
    assert (run.code, run.err) == (0, "")
    assert f"  {RECIPE}: CONTESTED; for today's recipe FAILING" in run.out
    assert "    use it: aicr recipe --service eks --accelerator h100" in run.out
    assert "    mind: DRIFTED, AGED" in run.out
    other = cli("answer", "--service", "eks", "--accelerator", "gb200", "--os", "ubuntu", "--intent", "training")
    assert "nearest:" in other.out
    assert "    accelerator: asked gb200, the recipe is for h100" in other.out
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_text("fingerprint: {service: {value: eks}, accelerator: {value: h100}, os: {value: ubuntu}}\n")
    asked = cli("answer", "-s", str(snapshot), "--intent", "training", "--format", "json")
    assert (asked.code, asked.json["asked"]["criteria"]["accelerator"]) == (0, "h100")


def test_answer_needs_a_question(tmp_path: Path) -> None:
    assert cli("answer").code == 2
    assert cli("answer", "-s", str(tmp_path / "none.yaml")).code == 3
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    run = cli("answer", "-s", str(broken))
    assert (run.code, run.out) == (2, "")


# --- catalogue -----------------------------------------------------------------------------------------


def test_a_catalogue_is_pushed_whole_or_not_at_all(
    container: FakeContainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_CATALOGUE_TOKEN", "push-me")
    tree = tmp_path / "recipes"
    (tree / "deeper").mkdir(parents=True)
    (tree / "one.yaml").write_bytes(RECIPE_TEXT)
    (tree / "deeper" / "two.yml").write_bytes(RECIPE_TEXT.replace(b"h100", b"b200"))
    words = ("catalogue", "push", str(tree), "--commit", "0123abc")
    run = cli(*words)
    assert (run.code, sorted(run.out.split()), run.err) == (
        0,
        sorted([NAME, "b200-eks-ubuntu-training"]),
        "2 recipes sent, 2 changed, 0 retired\n",
    )
    assert cli(*words, "--format", "json").json == {"received": 2, "changed": [], "retired": []}
    (tree / "deeper" / "two.yml").unlink()
    replaced = cli(*words, "--replace")
    assert (replaced.code, replaced.out, replaced.err) == (
        0,
        "",
        "retired: b200-eks-ubuntu-training (no recipe of this push)\n1 recipes sent, 0 changed, 1 retired\n",
    )
    (tree / "deeper" / "two.yml").write_bytes(RECIPE_TEXT.replace(b"h100", b"b200"))
    cli(*words)
    (tree / "deeper" / "two.yml").unlink()
    assert cli(*words, "--replace", "--format", "json").json["retired"] == ["b200-eks-ubuntu-training"]
    (tree / "three.yaml").write_text("kind: other\n")
    broken = cli(*words)
    assert (broken.code, broken.out) == (2, "")
    assert "three.yaml" in broken.err


def test_a_catalogue_needs_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.yaml").write_bytes(RECIPE_TEXT)
    words = ("catalogue", "push", str(tmp_path), "--commit", "0123abc")
    monkeypatch.delenv("AICR_EVIDENCE_CATALOGUE_TOKEN", raising=False)
    assert cli(*words).code == 4
    monkeypatch.setenv("AICR_EVIDENCE_CATALOGUE_TOKEN", "wrong")
    assert cli(*words).code == 4
    monkeypatch.setenv("AICR_EVIDENCE_CATALOGUE_TOKEN", "push-me")
    assert cli("catalogue", "push", str(tmp_path / "none"), "--commit", "0123abc").code == 3
    (tmp_path / "empty").mkdir()
    assert cli("catalogue", "push", str(tmp_path / "empty"), "--commit", "0123abc").code == 2
