"""The main job over HTTP, against registries with and without the referrers API: publish, submit, read, verify."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.core.produce import ProducedBundle
from app.sandbox.identities import OCTOCAT, STRANGER, UAT_AWS
from app.services.publish import Published
from tests.support.bundles import write
from tests.support.endtoend import (
    RECIPE,
    Service,
    Signing,
    bundle_of,
    cli,
    pointer_of,
    publisher,
    service,
    watch_connections,
)
from tests.support.registries import RunningRegistry, debian_plain, sandbox
from tests.support.runs import allowlist_text

REGISTRIES = {
    "sandbox": sandbox,
    "sandbox-without-referrers": lambda: sandbox(referrers_api=False),
    "debian": debian_plain,
}


@dataclass(frozen=True)
class Flow:
    """A registry, a service that trusts it, and two published bundles."""

    registry: RunningRegistry
    service: Service
    sigstore: Signing
    bundle: ProducedBundle
    octocat: Published
    workflow: Published

    def verify(self, *words: str) -> Any:
        return cli("verify", *words, "--trusted-root", self.sigstore.trusted_root, "--format", "json")


@pytest.fixture(scope="module", params=REGISTRIES)
def flow(request: pytest.FixtureRequest, sigstore: Signing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """Two signers' runs of one recipe, pushed and submitted."""
    with (
        REGISTRIES[request.param]() as registry,
        service(tmp_path_factory.mktemp("service"), sigstore.trusted_root, [registry.host], [OCTOCAT, UAT_AWS]) as up,
    ):
        bundle = bundle_of("octocat")
        octocat = sigstore.publish(bundle, registry.host, OCTOCAT, tag="octocat")
        workflow = sigstore.publish(bundle_of("aws"), registry.host, UAT_AWS, tag="aws", rekor="v1")
        first = up.submit(octocat.ref)
        assert first.status_code == 201, first.text
        assert first.json() == {
            "digest": str(octocat.digest),
            "recipe": RECIPE,
            "source": OCTOCAT.signer.slug,
            "class": "community",
            "allowlisted": True,
            "exit": 0,
            "state": {"before": None, "after": "SINGLE"},
            "remarks": first.json()["remarks"],
            "links": first.json()["links"],
        }
        repeat = up.submit(octocat.ref)
        assert (repeat.status_code, repeat.content) == (200, first.content)
        second = up.submit(workflow.ref)
        assert (second.status_code, second.json()["state"]) == (201, {"before": "SINGLE", "after": "CONFIRMED"})
        yield Flow(registry, up, sigstore, bundle, octocat, workflow)


def test_two_signers_make_a_recipe_confirmed(flow: Flow) -> None:
    body = flow.service.recipe()
    assert body["state"] == "CONFIRMED"
    assert body["phaseStates"] == {"deployment": "CONFIRMED", "conformance": "CONFIRMED", "performance": "CONFIRMED"}
    assert {source["sourceId"][:32] for source in body["sources"]} == {OCTOCAT.signer.slug, UAT_AWS.signer.slug}
    assert [(row["phase"], row["name"], row["passes"]) for row in body["rows"]] == [
        ("deployment", "driver-version", 2),
        ("deployment", "expected-resources", 2),
        ("deployment", "operator-health", 2),
        ("conformance", "dra-support", 2),
        ("conformance", "gang-scheduling", 2),
        ("performance", "nccl-all-reduce-bw", 2),
    ]


def test_the_signature_is_found_as_the_registry_lists_it(flow: Flow) -> None:
    host, digest = flow.registry.host, flow.octocat.digest
    base = f"http://{host}/v2/aicr/evidence"
    listing = httpx.get(f"{base}/referrers/{digest}", trust_env=False)
    tag = httpx.get(
        f"{base}/manifests/sha256-{digest.hex}",
        headers={"Accept": "application/vnd.oci.image.index.v1+json"},
        trust_env=False,
    )
    with_api = listing.status_code == 200
    assert (listing.status_code, tag.status_code) in {(200, 404), (404, 200)}
    index = json.loads((listing if with_api else tag).content)
    assert [entry["digest"] for entry in index["manifests"]] == [str(flow.octocat.referrer)]


def test_signed_bytes_are_served_exactly(flow: Flow) -> None:
    base = f"/evidence/{flow.octocat.digest}/{OCTOCAT.signer.slug}"
    bundle = flow.service.http.get(f"{base}/bundle")
    assert bundle.content == flow.octocat.signature
    assert bundle.headers["cache-control"] == "public, max-age=31536000, immutable"
    predicate = flow.service.http.get(f"{base}/predicate")
    envelope = json.loads(flow.octocat.signature)["dsseEnvelope"]
    assert predicate.content == base64.b64decode(envelope["payload"], validate=True)


def test_every_file_of_the_bundle_is_served_as_it_was_made(flow: Flow) -> None:
    for path, data in flow.bundle.files.items():
        answer = flow.service.http.get(f"/evidence/{flow.octocat.digest}/files/{path}")
        assert (answer.status_code, hashlib.sha256(answer.content).hexdigest()) == (
            200,
            hashlib.sha256(data).hexdigest(),
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith("attachment")


def test_the_served_archive_verifies_without_any_connection(
    flow: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tar = tmp_path / "evidence.tar"
    tar.write_bytes(flow.service.http.get(f"/evidence/{flow.octocat.digest}/archive").content)
    seen = watch_connections(monkeypatch)
    run = flow.verify(str(tar), "--strict")
    assert (run.code, run.json["exit"], run.json["bundleDigest"]) == (0, 0, str(flow.octocat.digest))
    assert run.json["signer"]["identity"] == OCTOCAT.signer.identity
    assert seen == []


def test_a_bundle_directory_is_valid_and_pending_without_a_signature(
    flow: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write(tmp_path / "bundle", flow.bundle.files)
    seen = watch_connections(monkeypatch)
    run = flow.verify(str(directory))
    assert (run.code, run.json["exit"], run.json["pending"]) == (0, 0, True)
    assert "signer" not in run.json
    assert "bundleDigest" not in run.json
    (directory / "attestation.intoto.jsonl").write_bytes(flow.octocat.signature)
    signed = flow.verify(str(directory))
    assert (signed.code, signed.json["signer"]["issuer"]) == (0, OCTOCAT.signer.issuer)
    assert "pending" not in signed.json
    assert seen == []


def test_the_reference_and_its_pointer_verify_from_the_registry(
    flow: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_PRIVATE_REGISTRIES", flow.registry.host)
    run = flow.verify(str(flow.octocat.ref), "--registry-plain-http", "--strict")
    assert (run.code, run.json["input"], run.json["bundleDigest"]) == (0, "oci", str(flow.octocat.digest))
    pointer = tmp_path / "pointer.yaml"
    pointer.write_bytes(pointer_of(flow.bundle, flow.octocat, OCTOCAT))
    run = flow.verify(str(pointer), "--registry-plain-http")
    assert (run.code, run.json["input"], run.json["pointer"]["recipe"]) == (0, "pointer", RECIPE)
    pointer.write_bytes(pointer_of(flow.bundle, flow.octocat, STRANGER))
    run = flow.verify(str(pointer), "--registry-plain-http")
    assert (run.code, run.json["failureCause"]["class"]) == (2, "signature")
    assert "identity mismatch" in run.json["failureCause"]["detail"]


def test_a_pointer_is_accepted_as_a_file_as_text_and_as_an_object(flow: Flow) -> None:
    text = pointer_of(flow.bundle, flow.octocat, OCTOCAT)
    as_object = {
        "schemaVersion": "1.0.0",
        "recipe": RECIPE,
        "attestations": [
            {
                "bundle": {
                    "oci": f"{flow.registry.host}/aicr/evidence",
                    "digest": str(flow.octocat.digest),
                    "predicateType": flow.bundle.predicate_type,
                },
                "attestedAt": flow.bundle.predicate["attestedAt"],
            }
        ],
    }
    answers = [
        flow.service.submit_pointer(text),
        flow.service.http.post("/evidence", json={"pointer": text.decode()}),
        flow.service.http.post("/evidence", json={"pointer": as_object}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len({answer.content for answer in answers}) == 1


def test_a_digest_inside_the_pointers_reference_is_ignored(flow: Flow) -> None:
    other = f"{flow.registry.host}/aicr/evidence@{flow.workflow.digest}"
    answer = flow.service.submit_pointer(pointer_of(flow.bundle, flow.octocat, OCTOCAT, oci=other))
    assert (answer.status_code, answer.json()["digest"]) == (200, str(flow.octocat.digest))


def test_a_dry_run_and_a_verification_store_nothing(flow: Flow) -> None:
    bundle = bundle_of("not-kept")
    published = flow.sigstore.publish(bundle, flow.registry.host, STRANGER, tag="not-kept")
    dry = flow.service.http.post("/evidence", params={"dryRun": "true"}, json={"bundle": str(published.ref)})
    assert (dry.status_code, dry.json()["class"], dry.json()["allowlisted"]) == (200, "community", False)
    verified = flow.service.http.post("/verify", json={"bundle": str(published.ref)})
    assert (verified.status_code, verified.json()["exit"]) == (200, 0)
    assert flow.service.http.get(f"/evidence/{published.digest}").status_code == 404
    assert flow.service.attempts(published.digest) == []


def test_recorded_failures_are_stored_and_counted(flow: Flow) -> None:
    bundle = bundle_of("failing", recipe="failing", results={"driver-version": "failed"})
    published = flow.sigstore.publish(bundle, flow.registry.host, OCTOCAT, tag="failing")
    answer = flow.service.submit(published.ref)
    assert (answer.status_code, answer.json()["exit"]) == (201, 1)
    assert answer.json()["state"] == {"before": None, "after": "FAILING"}


def test_publishing_twice_is_publishing_once(flow: Flow) -> None:
    packed = publisher(flow.registry.host).pack(
        flow.bundle.files, predicate_type=flow.bundle.predicate_type, version="v0.42.0"
    )
    assert packed.digest == flow.octocat.digest


def test_a_change_of_the_list_is_foretold_for_every_recipe(flow: Flow, tmp_path: Path) -> None:
    """`allowlist diff` reads the stored evidence and changes nothing."""
    old, new = flow.service.allowlist, tmp_path / "new.yaml"
    new.write_text(allowlist_text(OCTOCAT.signer))
    words = ("allowlist", "diff", str(old), str(new))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AICR_EVIDENCE_DATABASE_URL", flow.service.container.settings.database_url)
        patch.setenv("AICR_EVIDENCE_SANDBOX", "true")
        run = cli(*words)
        body = cli(*words, "--format", "json").json
    assert (run.code, run.err) == (0, "")
    assert re.search(rf"^{RECIPE} +CONFIRMED -> SINGLE ", run.out, re.MULTILINE)
    (change,) = [each for each in body["recipes"] if each["recipe"] == RECIPE]
    assert change["state"] == {"before": "CONFIRMED", "after": "SINGLE"}
    assert change["sources"] == [{"source": UAT_AWS.signer.slug, "before": True, "after": False}]
    assert len(change["rows"]) == 6
    assert [entry["source"] for entry in body["removed"]] == [UAT_AWS.signer.slug]
    assert flow.service.recipe()["state"] == "CONFIRMED"
