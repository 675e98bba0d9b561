"""`aicr evidence rebuild` changes no answer of the API: every projection follows from signed bytes and events."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.sandbox.demo.allowlists import allowlist
from app.sandbox.demo.recipes import EARLIER
from app.sandbox.demo.samples import NEWCOMER, OCTOCAT_WORKFLOW
from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, STRANGER, UAT_AWS, UAT_AWS_BRANCH, UAT_GCP
from tests.support.service import (
    Published,
    Service,
    Stage,
    answers,
    eventually,
    new_database,
    open_stage,
    recipe_texts,
)

pytestmark = [pytest.mark.proof, pytest.mark.postgres]

DATABASES = ["sqlite", "postgres"]


def fill(stage: Stage, service: Service) -> dict[str, Published]:
    """Several recipes, signers and outcomes, with lists and catalogues changing in between; the stored bundles."""
    service.push_catalogue(recipe_texts() | {"drifted": EARLIER["drifted"].text}, "1" * 40)
    stored = {
        "aws": stage.publish("aws", "agreed", UAT_AWS, days_ago=2),
        "octocat": stage.publish("octocat", "agreed", OCTOCAT, days_ago=3),
        "partner": stage.publish("partner", "disputed", PARTNER, results={"nccl-all-reduce-bw": "failed"}),
        "gcp": stage.publish("gcp", "disputed", UAT_GCP, days_ago=1.5),
        "older": stage.publish("older", "agreed", UAT_AWS, days_ago=40),
        "failing": stage.publish("failing", "failing", OCTOCAT, results={"driver-version": "failed"}),
        "branch": stage.publish("branch", "branch", UAT_AWS_BRANCH, days_ago=0.5),
        "drifted": stage.publish("drifted", "drifted", DEV_TWO, days_ago=5, earlier=True),
        "stranger": stage.publish("stranger", "unlisted", STRANGER),
        "profiled": stage.publish("profiled", "profiled", DEV_TWO),
        "newcomer": stage.publish("newcomer", "waiting", NEWCOMER),
        "skipped": stage.publish("skipped", "waiting", UAT_GCP, results={"gang-scheduling": "skipped"}),
    }
    for published in stored.values():
        assert service.submit(published).status_code == 201
    # The same digest signed by somebody else, and the same signature seen in a second place.
    stored["copied"] = stage.sign_again(stored["aws"], STRANGER, repository="aicr/copies")
    assert service.submit(stored["copied"]).status_code == 201
    moved = stage.registry.seed("aicr/mirror", stored["gcp"].artifact, (stage.signature_of(stored["gcp"]),))
    assert service.client.post("/evidence", json={"bundle": str(moved)}).status_code == 200
    before = service.get("/allowlist")["sha256"]
    stage.allowlist.write_text(allowlist(with_newcomer=True), encoding="utf-8")
    eventually(lambda: bool(service.get("/allowlist")["sha256"] != before))
    service.push_catalogue(recipe_texts(), "2" * 40)
    unsigned = stage.publish_unsigned("unsigned", "agreed")
    assert service.client.post("/evidence", json={"bundle": str(unsigned)}).status_code == 422
    stored["late"] = stage.publish("late", "one-party", OCTOCAT_WORKFLOW, days_ago=0.25)
    assert service.submit(stored["late"]).status_code == 201
    return stored


@pytest.mark.parametrize("kind", DATABASES)
def test_every_answer_is_the_same_before_and_after(kind: str, tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        files = tmp_path / "service"
        with Service(stage, files, new_database(kind, tmp_path)) as service:
            stored = fill(stage, service)
            before = answers(service)
            assert sum(path.endswith("/bundle") for path in before) == len(stored)
            service.stop()
            done = service.rebuild("--format", "json")
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) == {"records": len(stored), "lost": []}
            service.start()
            assert _differences(before, answers(service)) == {}
            # And what comes in afterwards meets the rebuilt state as it would have met the old one.
            assert [service.submit(published).status_code for published in stored.values()] == [200] * len(stored)
            assert _differences(before, answers(service)) == {}


@pytest.mark.parametrize("kind", DATABASES)
def test_a_lost_bundle_stops_the_rebuild_until_it_is_allowed_or_ingested_again(kind: str, tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        files = tmp_path / "service"
        with Service(stage, files, new_database(kind, tmp_path)) as service:
            kept = stage.publish("kept", "agreed", UAT_AWS)
            lost = stage.publish("lost", "agreed", OCTOCAT, days_ago=2)
            service.accepted(kept)
            service.accepted(lost)
            before = answers(service)
            service.stop()
            digest = lost.artifact.digest.hex
            shutil.rmtree(files / "archive" / digest[:2] / digest)

            refused = service.rebuild()
            assert refused.returncode == 6
            assert lost.digest in refused.stderr
            service.start()
            assert service.get("/recipes/h100-eks-ubuntu-training")["state"] == "CONFIRMED"
            assert service.submit(lost).status_code == 200  # the record stayed, and this brings its bytes back
            assert _differences(before, answers(service)) == {}
            service.stop()
            assert service.rebuild().returncode == 0

            shutil.rmtree(files / "archive" / digest[:2] / digest)
            allowed = service.rebuild("--allow-missing", "--format", "json")
            assert allowed.returncode == 0, allowed.stderr
            told: dict[str, Any] = json.loads(allowed.stdout)
            assert told["records"] == 1
            assert [(each["digest"], each["code"]) for each in told["lost"]] == [(lost.digest, "NOT_FOUND")]
            service.start()
            assert service.get("/recipes/h100-eks-ubuntu-training")["state"] == "SINGLE"
            assert service.client.get(f"/evidence/{lost.digest}").status_code == 404
            assert service.submit(lost).status_code == 201
            after = answers(service)
            service.stop()
            assert service.rebuild().returncode == 0
            service.start()
            assert _differences(after, answers(service)) == {}


def test_a_rebuild_beside_a_running_service_names_who_has_the_database(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage, Service(stage, tmp_path / "service") as service:
        refused = service.rebuild()
        assert refused.returncode == 2
        assert f"serve (pid {service.pid})" in refused.stderr


def test_an_archive_is_not_shared_between_two_sqlite_databases(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage, Service(stage, tmp_path / "service") as service:
        published = stage.publish("mine", "agreed", UAT_AWS)
        service.accepted(published)
        other = Service(
            stage,
            tmp_path / "other",
            settings={"ARCHIVE": tmp_path / "service" / "archive"},
        )
        refused = other.rebuild()
        assert refused.returncode == 2
        assert "the archive is in use by another service" in refused.stderr
        assert service.client.get(f"/evidence/{published.digest}/archive").status_code == 200


def _differences(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Paths whose answers are not byte for byte the same."""
    paths = before.keys() | after.keys()
    return {path: (before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)}
