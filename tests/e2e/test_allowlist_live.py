"""The allowlist under a running service: an edit of the file changes every verdict at once, and asks no registry."""

import hashlib
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.adapters.db.migrate import upgrade
from app.adapters.db.session import Database
from app.sandbox.identities import DEV_TWO, OCTOCAT, STRANGER, UAT_AWS, SandboxIdentity, email_identity
from tests.support.endtoend import cli
from tests.support.live import Evidence, Live, living, name_of, on_stage, recipe
from tests.support.postgres import shared_cluster
from tests.support.runs import allowlist_text
from tests.support.service import open_stage

FAILED = {"deployment": {"operator-health": "failed"}}
NEW = email_identity("newcomer@example.org")
AGREED, ALONE, STRANGE = recipe("h100"), recipe("h200"), recipe("gb200")
EDIT_SECONDS = 10.0  # the watcher looks five times a second; this is only how long a slow machine may take


def listing(*people: SandboxIdentity) -> str:
    pattern = r"^https://github\.com/NVIDIA/aicr/\.github/workflows/uat-aws\.yaml@refs/.+$"
    signers = [person.signer for person in people]
    return allowlist_text(*signers, patterns=[pattern], labels={OCTOCAT.signer.slug: "octocat"})


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Two agree on one recipe, one is alone on another, a third recipe has strangers only."""
    with living(tmp_path, listing(OCTOCAT)) as it:
        for sample, signer in ((AGREED, OCTOCAT), (AGREED, UAT_AWS), (ALONE, OCTOCAT), (ALONE, NEW), (STRANGE, NEW)):
            it.submit(Evidence(sample, signer))
        yield it


def sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def edit(live: Live, text: str) -> None:
    """Replace the file as an editor does."""
    draft = live.service.allowlist.with_suffix(".new")
    draft.write_text(text)
    draft.replace(live.service.allowlist)


def soon(look: Callable[[], Any], wanted: object) -> None:
    """Wait until a read says what is wanted."""
    deadline = time.monotonic() + EDIT_SECONDS
    while (seen := look()) != wanted:
        assert time.monotonic() < deadline, f"expected {wanted}, still {seen}"
        time.sleep(0.02)


def states(live: Live) -> list[str]:
    return [live.line(sample)["state"] for sample in (AGREED, ALONE, STRANGE)]


def test_an_edit_classifies_everything_anew_without_any_request_to_a_registry(live: Live) -> None:
    assert states(live) == ["CONFIRMED", "SINGLE", "UNTESTED"]
    asked = len(live.stage.registry.log)
    edit(live, listing(OCTOCAT, NEW))
    soon(lambda: states(live), ["CONFIRMED", "CONFIRMED", "SINGLE"])
    assert live.recipe(ALONE)["state"] == "CONFIRMED"
    assert live.get("/evidence", source=NEW.signer.slug)["items"][0]["signer"]["allowlisted"] is True
    edit(live, listing())
    soon(lambda: states(live), ["SINGLE", "UNTESTED", "UNTESTED"])
    assert len(live.stage.registry.log) == asked
    assert live.reasons(AGREED, OCTOCAT).keys() >= {"SIGNER_REMOVED"}
    assert "SIGNER_REMOVED" in live.line(AGREED)["staleness"]
    edit(live, listing(OCTOCAT))
    soon(lambda: states(live), ["CONFIRMED", "SINGLE", "UNTESTED"])
    assert "SIGNER_REMOVED" not in live.reasons(AGREED, OCTOCAT)
    assert live.reasons(STRANGE, NEW).keys() >= {"SIGNER_REMOVED"}, "listed between two edits, and no longer"


def test_versions_say_which_list_since_when_and_what_it_changed(live: Live) -> None:
    texts = [listing(OCTOCAT), listing(OCTOCAT, NEW), listing(NEW)]
    for text in texts[1:]:
        edit(live, text)
        soon(lambda: live.get("/allowlist")["sha256"], sha256(text))
    versions = live.get("/allowlist/versions")["items"]
    assert [one["sha256"] for one in versions] == [sha256(text) for text in texts[::-1]]
    since = [datetime.fromisoformat(one["since"]) for one in versions]
    assert since == sorted(since, reverse=True)
    added, removed = ([[entry["source"] for entry in one[key]] for one in versions] for key in ("added", "removed"))
    assert added[:2] == [[], [NEW.signer.slug]]
    assert removed == [[OCTOCAT.signer.slug], [], []]
    assert live.get("/allowlist")["since"] == versions[0]["since"]


def test_as_of_counts_by_the_list_that_was_in_force(live: Live) -> None:
    edit(live, listing(OCTOCAT, NEW))
    soon(lambda: live.recipe(ALONE)["state"], "CONFIRMED")
    changed = live.get("/allowlist")["since"]
    assert live.recipe(ALONE, asOf=changed)["state"] == "CONFIRMED"
    before = datetime.fromisoformat(live.get("/allowlist/versions")["items"][0]["since"]).timestamp() - 0.001
    then = datetime.fromtimestamp(before).astimezone().isoformat()
    assert live.recipe(ALONE, asOf=then)["state"] == "SINGLE"


def test_a_broken_file_keeps_the_last_good_list_and_says_so(live: Live) -> None:
    good = live.get("/allowlist")["sha256"]
    edit(live, "schemaVersion: 2.0.0\n")
    soon(lambda: live.get("/ready")["status"], "degraded")
    shown = live.get("/allowlist")
    assert (shown["sha256"], shown["status"]) == (good, "degraded")
    assert "schemaVersion" in shown["problem"]
    assert states(live) == ["CONFIRMED", "SINGLE", "UNTESTED"]
    edit(live, listing(OCTOCAT, NEW))
    soon(lambda: live.get("/ready")["status"], "ready")
    soon(lambda: live.recipe(ALONE)["state"], "CONFIRMED")


def test_delisting_a_failing_signer_leaves_a_trace(live: Live) -> None:
    it = recipe("b200")
    live.submit(Evidence(it, UAT_AWS))
    live.submit(Evidence(it, OCTOCAT, FAILED))
    assert live.recipe(it)["state"] == "CONTESTED"
    edit(live, listing())
    soon(lambda: live.recipe(it)["state"], "SINGLE")
    remarks = {remark["code"]: remark for remark in live.recipe(it)["remarks"]}
    assert remarks["failure-of-removed-signer"]["data"]["source"] == OCTOCAT.signer.slug
    assert remarks["failure-of-removed-signer"]["data"]["checks"] == "deployment/operator-health"


def test_sources_are_listed_with_who_counts_and_why(live: Live) -> None:
    sources = {one["source"]: one for one in live.get("/sources")["items"]}
    assert {slug: one["allowlisted"] for slug, one in sources.items()} == {
        OCTOCAT.signer.slug: True,
        UAT_AWS.signer.slug: True,
        NEW.signer.slug: False,
    }
    octocat = live.get(f"/sources/{OCTOCAT.signer.slug}")
    assert (octocat["class"], octocat["label"], octocat["records"]) == ("community", "octocat", 2)
    assert sorted(octocat["recipes"]) == sorted([name_of(AGREED), name_of(ALONE)])
    newcomer = live.get(f"/sources/{NEW.signer.canonical_id}")
    assert newcomer["identity"] == "n…r@example.org"
    assert live.service.http.get(f"/sources/{DEV_TWO.signer.slug}").status_code == 404


def test_a_diff_says_what_a_change_would_do_and_changes_nothing(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_DATABASE_URL", live.service.container.settings.database_url)
    monkeypatch.setenv("AICR_EVIDENCE_SANDBOX", "true")
    old, new = tmp_path / "old.yaml", tmp_path / "proposed.yaml"
    old.write_text(listing(OCTOCAT))
    new.write_text(listing(NEW))
    body = cli("allowlist", "diff", str(old), str(new), "--format", "json").json
    assert {one["recipe"]: (one["state"]["before"], one["state"]["after"]) for one in body["recipes"]} == {
        name_of(AGREED): ("CONFIRMED", "SINGLE"),
        name_of(ALONE): ("SINGLE", "SINGLE"),
        name_of(STRANGE): ("UNTESTED", "SINGLE"),
    }
    alone = next(one for one in body["recipes"] if one["recipe"] == name_of(ALONE))
    assert {one["source"]: one["after"] for one in alone["sources"]} == {
        OCTOCAT.signer.slug: False,
        NEW.signer.slug: True,
    }
    assert {one["recipe"]: (one["ifPassed"], one["ifFailed"]) for one in body["reach"]} == {
        name_of(sample): ("CONFIRMED", "CONTESTED") for sample in (AGREED, ALONE, STRANGE)
    }
    text = cli("allowlist", "diff", str(old), str(new)).out
    assert f"a new signer's next run could confirm: {name_of(STRANGE)}, {name_of(AGREED)}, {name_of(ALONE)}" in text
    assert states(live) == ["CONFIRMED", "SINGLE", "UNTESTED"]


def test_a_list_that_changed_while_the_service_was_down_is_in_force_at_its_start(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        with on_stage(stage, tmp_path / "service", listing(OCTOCAT)) as live:
            live.submit(Evidence(ALONE, OCTOCAT))
            live.submit(Evidence(ALONE, NEW))
            assert live.recipe(ALONE)["state"] == "SINGLE"
        with on_stage(stage, tmp_path / "service", listing(OCTOCAT, NEW)) as live:
            assert live.line(ALONE)["state"] == "CONFIRMED"
            assert len(live.get("/allowlist/versions")["items"]) == 2
        with on_stage(stage, tmp_path / "service", listing(OCTOCAT, NEW), confirm_threshold=3) as live:
            assert live.line(ALONE)["state"] == "SINGLE"
            assert live.recipe(ALONE)["view"]["confirmThreshold"] == 3


def test_a_stranger_has_a_quota_and_a_listing_lifts_it(tmp_path: Path) -> None:
    with living(tmp_path, listing(OCTOCAT), unlisted_quota=2) as live:
        kept = [Evidence(recipe(f"x{n}"), STRANGER) for n in (1, 2)]
        for one in kept:
            live.submit(one)
        refs = [live.publish(Evidence(recipe(f"x{n}"), STRANGER)) for n in (3, 4)]
        answer = live.service.submit(refs[0])
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "3600")
        body = answer.json()
        assert (body["code"], body["retryable"]) == ("RATE_LIMIT_EXCEEDED", True)
        assert {key: body["details"][key] for key in ("reason", "limit", "held", "source")} == {
            "reason": "UNLISTED_QUOTA",
            "limit": 2,
            "held": 2,
            "source": STRANGER.signer.slug,
        }
        (attempt,) = live.service.attempts(refs[0].digest)
        assert (attempt["outcome"], attempt["code"]) == ("refused", "UNLISTED_QUOTA")
        assert live.service.http.get(f"/evidence/{refs[0].digest}").status_code == 404
        assert live.service.submit(live.publish(kept[0])).status_code == 200
        for n in range(3):
            live.submit(Evidence(recipe(f"y{n}"), OCTOCAT))
        text = listing(OCTOCAT, STRANGER)
        edit(live, text)
        soon(lambda: live.get("/allowlist")["sha256"], sha256(text))
        assert live.service.submit(refs[0]).status_code == 201
        assert live.service.submit(refs[1]).status_code == 201


@pytest.mark.postgres
def test_on_a_server_database_an_activation_and_an_edit_count_and_a_start_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = shared_cluster().database()
    database = Database(url)
    upgrade(database, sandbox=True)
    database.close()
    proposed = tmp_path / "proposed.yaml"
    proposed.write_text(listing(OCTOCAT, NEW))
    with living(tmp_path, listing(OCTOCAT), database_url=url) as live:
        for signer in (OCTOCAT, NEW):
            live.submit(Evidence(ALONE, signer))
        assert live.recipe(ALONE)["state"] == "SINGLE"
        monkeypatch.setenv("AICR_EVIDENCE_DATABASE_URL", url)
        monkeypatch.setenv("AICR_EVIDENCE_SANDBOX", "true")
        run = cli("allowlist", "activate", str(proposed))
        assert run.code == 0, run.err
        soon(lambda: live.recipe(ALONE)["state"], "CONFIRMED")
        soon(lambda: live.get("/allowlist")["sha256"], sha256(proposed.read_text()))
        soon(lambda: live.get("/ready")["status"], "degraded")
        assert live.get("/ready")["reason"] == (
            "the file differs from the list in force; `aicr evidence allowlist activate FILE` puts one into force"
        )
        edit(live, proposed.read_text())
        soon(lambda: live.get("/ready")["status"], "ready")
        edit(live, listing())
        soon(lambda: live.recipe(ALONE)["state"], "UNTESTED")
        assert live.get("/ready")["status"] == "ready"
        edit(live, proposed.read_text())
        soon(lambda: live.recipe(ALONE)["state"], "CONFIRMED")
        broken = tmp_path / "broken.yaml"
        broken.write_text("nonsense: 1\n")
        assert cli("allowlist", "activate", str(broken)).code == 2
    with living(tmp_path, listing(), database_url=url) as live:
        assert (live.recipe(ALONE)["state"], live.get("/ready")["status"]) == ("CONFIRMED", "degraded")
        assert live.get("/allowlist")["sha256"] == sha256(listing(OCTOCAT, NEW))
        live.service.allowlist.touch()
        activated = cli("allowlist", "activate", str(live.service.allowlist))
        assert activated.code == 0, activated.err
        soon(lambda: live.recipe(ALONE)["state"], "UNTESTED")
        assert live.get("/ready")["status"] == "ready"
