"""The manifest does not contain the signature: whoever signs a copy of somebody's artifact takes nothing away.

Bundle digest and signer together are a record's identity (service 1), so both stand, and only the owner's counts.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.adapters.oci.writer import Writer
from app.core.produce import ProducedBundle, artifact_statement
from app.core.refs import OciRef
from app.sandbox.demo.samples import AICR_VERSION
from app.sandbox.identities import DEV_TWO, OCTOCAT, STRANGER, SandboxIdentity
from app.services.publish import Published, publish
from tests.support.endtoend import (
    RECIPE,
    Service,
    Signing,
    bundle_of,
    cli,
    pointer_of,
    publisher,
    service,
)
from tests.support.registries import RunningRegistry, debian_plain, sandbox

OWNER = OCTOCAT


@dataclass(frozen=True)
class Stage:
    """One registry, one service that lists the owner alone, one bundle."""

    registry: RunningRegistry
    service: Service
    sigstore: Signing
    bundle: ProducedBundle

    def signed_by(self, identity: SandboxIdentity, repository: str) -> Published:
        """The bundle pushed to a repository under that signature; every signer pushes the same bytes."""
        return publish(
            self.bundle,
            OciRef.parse(f"{self.registry.host}/aicr/{repository}:one"),
            version=AICR_VERSION,
            registry=publisher(self.registry.host),
            sign=lambda statement: self.sigstore.sign(statement, identity),
        )


@pytest.fixture(params=["sandbox", "debian"])
def stage(request: pytest.FixtureRequest, sigstore: Signing, tmp_path: Path) -> Iterator[Stage]:
    opened = {"sandbox": sandbox, "debian": debian_plain}[request.param]()
    with opened as registry, service(tmp_path, sigstore.trusted_root, [registry.host], [OWNER]) as up:
        yield Stage(registry, up, sigstore, bundle_of("owned"))


def test_a_stranger_who_submits_first_takes_nothing_away(stage: Stage) -> None:
    copied, owned = stage.signed_by(STRANGER, "stranger"), stage.signed_by(OWNER, "owner")
    assert copied.digest == owned.digest
    first = stage.service.submit(copied.ref)
    assert (first.status_code, first.json()["allowlisted"]) == (201, False)
    assert first.json()["state"] == {"before": None, "after": "UNTESTED"}
    second = stage.service.submit(owned.ref)
    assert (second.status_code, second.json()["source"]) == (201, OWNER.signer.slug)
    assert second.json()["allowlisted"] is True
    assert second.json()["state"] == {"before": "UNTESTED", "after": "SINGLE"}
    _owner_counts_alone(stage, owned)


def test_a_stranger_who_submits_second_takes_nothing_away(stage: Stage) -> None:
    owned, copied = stage.signed_by(OWNER, "owner"), stage.signed_by(STRANGER, "stranger")
    assert stage.service.submit(owned.ref).json()["state"] == {"before": None, "after": "SINGLE"}
    second = stage.service.submit(copied.ref)
    assert (second.status_code, second.json()["source"]) == (201, STRANGER.signer.slug)
    assert second.json()["state"] == {"before": "SINGLE", "after": "SINGLE"}
    _owner_counts_alone(stage, owned)


def _owner_counts_alone(stage: Stage, owned: Published) -> None:
    """Two records of one digest; the roll-up, the signatures and the answers are the owner's."""
    records = stage.service.http.get(f"/evidence/{owned.digest}").json()["records"]
    assert {record["source"]: record["allowlisted"] for record in records} == {
        OWNER.signer.slug: True,
        STRANGER.signer.slug: False,
    }
    body = stage.service.recipe()
    assert body["state"] == "SINGLE"
    assert {(row["consensus"], row["passes"], row["reported"]) for row in body["rows"]} == {("SINGLE", 1, 1)}
    weights = {result["source"]: result["weight"] for row in body["rows"] for result in row["signers"]}
    assert weights == {OWNER.signer.slug: "counted", STRANGER.signer.slug: "reported"}
    bundle = stage.service.http.get(f"/evidence/{owned.digest}/{OWNER.signer.slug}/bundle")
    assert bundle.content == owned.signature
    repeat = stage.service.submit(owned.ref)
    assert (repeat.status_code, repeat.json()["source"]) == (200, OWNER.signer.slug)


def test_two_signers_at_one_repository_need_a_pointer_that_names_one(stage: Stage) -> None:
    copied, owned = stage.signed_by(STRANGER, "shared"), stage.signed_by(OWNER, "shared")
    assert copied.ref == owned.ref
    refused = stage.service.submit(owned.ref)
    assert (refused.status_code, refused.json()["code"]) == (422, "EVIDENCE_REFUSED")
    details = refused.json()["details"]
    assert (details["step"], details["code"]) == ("manifest-hash-check", "E7_SIGNATURE_AMBIGUOUS")
    assert details["cause"]["class"] == "integrity"
    assert {entry["source"] for entry in details["signatures"]} == {OWNER.signer.slug, STRANGER.signer.slug}
    assert OWNER.signer.identity not in json.dumps(details)
    for published, identity, counts in ((copied, STRANGER, False), (owned, OWNER, True)):
        answer = stage.service.submit_pointer(pointer_of(stage.bundle, published, identity))
        assert (answer.status_code, answer.json()["source"], answer.json()["allowlisted"]) == (
            201,
            identity.signer.slug,
            counts,
        )
    assert stage.service.recipe(RECIPE)["state"] == "SINGLE"


def test_verify_finds_the_signature_that_the_pointer_names(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_PRIVATE_REGISTRIES", stage.registry.host)
    copied, owned = stage.signed_by(STRANGER, "shared"), stage.signed_by(OWNER, "shared")
    options = ("--registry-plain-http", "--trusted-root", stage.sigstore.trusted_root, "--format", "json")
    for published, identity in ((copied, STRANGER), (owned, OWNER)):
        pointer = tmp_path / "pointer.yaml"
        pointer.write_bytes(pointer_of(stage.bundle, published, identity))
        run = cli("verify", str(pointer), *options)
        assert (run.code, run.json["signer"]["identity"]) == (0, identity.signer.identity)
    ambiguous = cli("verify", str(owned.ref), *options)
    assert (ambiguous.code, [finding["rule"] for finding in ambiguous.json["findings"]]) == (0, ["E7"])
    strict = cli("verify", str(owned.ref), *options, "--strict")
    assert (strict.code, strict.json["failureCause"]["class"]) == (2, "integrity")
    assert "code: E7_SIGNATURE_AMBIGUOUS" in strict.err


def test_two_signatures_of_one_signer_are_no_choice(stage: Stage) -> None:
    first, _ = stage.signed_by(OWNER, "again"), stage.signed_by(OWNER, "again")
    answer = stage.service.submit(first.ref)
    assert (answer.status_code, answer.json()["source"]) == (201, OWNER.signer.slug)
    bundle = stage.service.http.get(f"/evidence/{first.digest}/{OWNER.signer.slug}/bundle")
    assert bundle.content == first.signature


def test_somebody_elses_signature_over_another_artifact_does_not_help(stage: Stage) -> None:
    """A referrer that is attached to an artifact but signs another one is refused by its subject."""
    other = bundle_of("another", recipe="alone")
    writer = Writer(plain_http_hosts=(stage.registry.host,))
    packed = publisher(stage.registry.host).pack(other.files, predicate_type=other.predicate_type, version=AICR_VERSION)
    ref = OciRef.parse(f"{stage.registry.host}/aicr/moved:one")
    elsewhere = artifact_statement(stage.bundle.predicate_type, stage.bundle.predicate, str(ref), "ab" * 32)
    writer.push_artifact(packed, ref)
    writer.attach_signature(ref, packed.descriptor, stage.sigstore.sign(elsewhere, DEV_TWO))
    answer = stage.service.submit(ref.at(packed.digest))
    assert (answer.status_code, answer.json()["details"]["code"]) == (422, "S16_SUBJECT_MISMATCH")
