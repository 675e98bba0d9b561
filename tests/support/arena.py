"""A running service to attack: bundles that are written by hand, signed by anybody and pushed to a sandbox registry.

Everything that a test changes is changed before it is signed, so that only the rule in question can speak.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from app.adapters.oci.pack import BundleArtifact, describe_bundle, describe_signature
from app.core.refs import OciRef
from app.sandbox.identities import DEV_TWO, OCTOCAT, UAT_AWS, SandboxIdentity
from app.sandbox.registry import SandboxRegistry
from app.sandbox.sigstore import PrivateSigstore
from tests.support.bundles import RECIPE, Sample, check, ctrf, statement_of
from tests.support.endtoend import Service, service

NOW = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251 - certificates are of now, so the runs must be
REPOSITORY = "aicr/evidence"
LISTED = (OCTOCAT, DEV_TWO, UAT_AWS)


def time_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def in_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def recipe_named(platform: str) -> bytes:
    """A recipe of its own for each platform, so that tests do not meet in one verdict."""
    return RECIPE.replace(b"    os: ubuntu\n", f"    os: ubuntu\n    platform: {platform}\n".encode())


def report_of(*tests: dict[str, object], attested: datetime, **summary: object) -> dict[str, object]:
    """A phase report that ended a minute before the attestation."""
    ended = in_ms(attested) - 60_000
    return ctrf(list(tests), **{"start": ended - 60_000, "stop": ended, **summary})


def sample_of(platform: str, *, days: float = 1.0, salt: int = 0, **changes: Any) -> Sample:
    """A good bundle about the recipe of `platform`; another `salt` measured other durations."""
    attested = NOW - timedelta(days=days)
    measured = 1000 + salt * 7
    sample = Sample(
        recipe=recipe_named(platform),
        name=f"h100-eks-ubuntu-training-{platform}",
        reports={
            "deployment": report_of(
                check("operator-health", duration=measured + 1),
                check("expected-resources", duration=measured + 2),
                check("driver-version", duration=measured + 3),
                attested=attested,
            ),
            "performance": report_of(check("nccl-all-reduce-bw", duration=61_000 + salt), attested=attested),
        },
        snapshot=f"kind: Snapshot\nmeasurements: []\nsalt: {platform}-{salt}\n".encode(),
        predicate={
            "attestedAt": time_text(attested),
            "criteriaMatch": _matching(platform),
        },
    )
    for name, value in changes.items():
        setattr(sample, name, value if name != "predicate" else {**sample.predicate, **value})
    return sample


def _matching(platform: str) -> dict[str, object]:
    rows = [
        ("service", "eks", "eks", "matched"),
        ("accelerator", "h100", "h100", "matched"),
        ("os", "ubuntu", "ubuntu", "matched"),
        ("intent", "training", "", "unknown"),
        ("platform", platform, "", "unknown"),
        ("nodes", "", "4", "matched"),
    ]
    keys = ("dimension", "recipeRequires", "fingerprintProvides", "match")
    per_dimension = [
        {key: value for key, value in zip(keys, row, strict=True) if value or key in {"dimension", "match"}}
        for row in rows
    ]
    return {"matched": True, "perDimension": per_dimension}


@dataclass(frozen=True)
class Pushed:
    """A bundle in the registry, and what was signed about it."""

    ref: OciRef
    artifact: BundleArtifact
    signature: bytes
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        return str(self.artifact.digest)


@dataclass(frozen=True)
class Arena:
    """The service with its registry and Sigstore."""

    registry: SandboxRegistry
    sigstore: PrivateSigstore
    service: Service

    def push(
        self,
        sample: Sample,
        signer: SandboxIdentity = OCTOCAT,
        *,
        edit: Callable[[dict[str, bytes]], object] | None = None,
        statement: Callable[[dict[str, Any]], object] | None = None,
        signature: bytes | None = None,
        repository: str = REPOSITORY,
    ) -> Pushed:
        """Build, sign and hold a bundle.

        `edit` changes the files after the manifest was made, `statement` the statement before it is signed,
        `signature` stands in for one of this bundle's own.
        """
        files = sample.files()
        predicate = json.loads(files["statement.intoto.json"])["predicate"]
        if edit is not None:
            edit(files)
        artifact = describe_bundle(files, predicate_type=sample.predicate_type, version="v1")
        if signature is None:
            payload = json.loads(
                statement_of(predicate, sample.predicate_type, f"{REPOSITORY}:v1", artifact.digest.hex)
            )
            if statement is not None:
                statement(payload)
            signature = self.sigstore.mint(json.dumps(payload).encode(), signer)
        ref = self.registry.seed(repository, artifact, (describe_signature(artifact.descriptor, signature),))
        return Pushed(ref, artifact, signature, files)

    def submit(self, pushed: Pushed | OciRef | str) -> httpx.Response:
        return self.service.submit(pushed.ref if isinstance(pushed, Pushed) else pushed)

    def accepted(self, pushed: Pushed) -> dict[str, Any]:
        answer = self.submit(pushed)
        assert answer.status_code in {200, 201}, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def push_and_keep(self, sample: Sample) -> str:
        """The digest of a bundle that was accepted."""
        return str(self.accepted(self.push(sample))["digest"])

    def refused(self, pushed: Pushed) -> dict[str, Any]:
        """The `details` of a 422."""
        answer = self.submit(pushed)
        assert answer.status_code == 422, answer.text
        assert answer.json()["code"] == "EVIDENCE_REFUSED", answer.text
        details: dict[str, Any] = answer.json()["details"]
        return details

    def code(self, pushed: Pushed) -> str:
        """The code that refused a bundle."""
        return str(self.refused(pushed)["code"])

    def recipe(self, platform: str) -> dict[str, Any]:
        return self.service.recipe(f"h100-eks-ubuntu-training-{platform}")

    def get(self, path: str) -> httpx.Response:
        return self.service.http.get(path)


@contextmanager
def arena(directory: Path, **settings: object) -> Iterator[Arena]:
    """A service that lists three signers and trusts one repository tree of one registry."""
    sigstore = PrivateSigstore()
    directory.mkdir(parents=True, exist_ok=True)
    root = directory / "trusted_root.json"
    root.write_bytes(sigstore.trusted_root_json())
    with (
        SandboxRegistry() as registry,
        service(directory, str(root), [registry.host], LISTED, **settings) as running,
    ):
        yield Arena(registry, sigstore, running)
