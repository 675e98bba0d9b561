"""`verify`: from what a person named to a report and a process exit (evidence-format 5.4, 8)."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.adapters.files import DirectoryReader, PointerFiles
from app.core.bundle import Pins, RawSignature, VerifiedSignature
from app.core.cross_check import SignerClaim
from app.core.documents import parse_time
from app.core.errors import Category, FetchError, InputError, JudgeUnavailable, NotFoundError, PointerInvalid
from app.core.pointer import Pointer, dump_pointer
from app.core.refs import Digest, OciRef
from app.core.report import CauseClass, InputKind, StepName
from app.core.verdict_steps import process_exit
from app.ports import Artifact, JudgeJob, Pulled, PullOptions
from app.services.judge import JudgeService
from app.services.verify import VerifyOptions, VerifyService
from tests.support.bundles import ATTESTED_AT, NAME, V3, Sample, check, ctrf, write
from tests.support.verifiers import DIGEST, OCTOCAT, RECEIVED_AT, FakeVerifier, signed

REFERENCE = f"ghcr.io/octocat/aicr-evidence@{DIGEST}"


@dataclass
class FakeRegistry:
    """One artifact in a directory; notes what was asked of it, or raises."""

    directory: str
    signatures: tuple[RawSignature, ...] = ()
    error: BaseException | None = None
    asked: list[tuple[OciRef, PullOptions]] = field(default_factory=list)

    def resolve(self, ref: OciRef, options: PullOptions, /) -> Artifact:
        self.asked.append((ref, options))
        if self.error is not None:
            raise self.error
        return Artifact(ref.at(DIGEST), DIGEST, b"{}", b"{}", Digest("0" * 64), 0, self.signatures)

    @contextmanager
    def pull(self, artifact: Artifact, options: PullOptions, /) -> Iterator[Pulled]:
        yield Pulled(artifact, self.directory, "")


def signature_of(sample: Sample) -> VerifiedSignature:
    return signed(json.loads(sample.files()["statement.intoto.json"])["predicate"], sample.predicate_type)


def service(tmp_path: Path, *, sample: Sample | None = None, error: BaseException | None = None) -> VerifyService:
    """A service over one signed artifact, which lies in `artifact`."""
    sample = sample or Sample()
    registry = FakeRegistry(str(write(tmp_path / "artifact", sample.files())), (RawSignature(b"sig"),), error)

    @contextmanager
    def open_archive(path: str) -> Iterator[Pulled]:
        with registry.pull(registry.resolve(OciRef.parse(REFERENCE), PullOptions(1)), PullOptions(1)) as pulled:
            yield pulled

    return VerifyService(
        files=PointerFiles(),
        source=registry,
        open_archive=open_archive,
        judge=JudgeService(DirectoryReader(), FakeVerifier({b"sig": signature_of(sample)})),
        clock=lambda: RECEIVED_AT,
    )


def asked(verify: VerifyService) -> list[tuple[OciRef, PullOptions]]:
    assert isinstance(verify.source, FakeRegistry)
    return verify.source.asked


def pointer_file(tmp_path: Path, **changes: object) -> str:
    base = Pointer(
        NAME,
        V3,
        oci="ghcr.io/octocat/aicr-evidence:v1",
        digest=str(DIGEST),
        signer=SignerClaim(OCTOCAT.identity, OCTOCAT.issuer, 42),
        attested_at=parse_time(ATTESTED_AT),
    )
    path = tmp_path / "pointer.yaml"
    path.write_bytes(dump_pointer(replace(base, **changes)))  # type: ignore[arg-type]
    return str(path)


def test_a_directory_needs_no_registry(tmp_path: Path) -> None:
    verify = service(tmp_path)
    report = verify.verify(str(write(tmp_path / "mine", Sample().files())), VerifyOptions())
    assert (report.input, report.exit, report.pending, report.bundle_digest) == (InputKind.DIRECTORY, 0, True, None)
    assert asked(verify) == []
    assert process_exit(report) == 0


def test_the_layer_gets_the_time_that_the_manifest_left(tmp_path: Path) -> None:
    verify = service(tmp_path)
    registry, given, times = verify.source, [], iter([100.0, 104.5])

    class Timed:
        resolve = registry.resolve

        def pull(self, artifact: Artifact, options: PullOptions, /) -> AbstractContextManager[Pulled]:
            given.append(options.timeout_seconds)
            return registry.pull(artifact, options)

    replace(verify, source=Timed(), monotonic=lambda: next(times)).verify(REFERENCE, VerifyOptions(timeout_seconds=7))
    assert (asked(verify)[0][1].timeout_seconds, given) == (7, [2.5])


def test_recorded_failures_are_process_exit_2(tmp_path: Path) -> None:
    sample = Sample(reports={"deployment": ctrf([check("a", "failed")])})
    report = service(tmp_path, sample=sample).verify(REFERENCE, VerifyOptions())
    assert (report.exit, process_exit(report)) == (1, 2)


def test_a_reference_is_pulled_as_the_options_say(tmp_path: Path) -> None:
    verify = service(tmp_path)
    options = VerifyOptions(plain_http=True, insecure_tls=True, timeout_seconds=7)
    report = verify.verify(f"oci://{REFERENCE}", options)
    assert (report.input, report.exit, report.bundle_digest) == (InputKind.OCI, 0, str(DIGEST))
    assert report.signer is not None
    assert asked(verify) == [
        (OciRef.parse(REFERENCE), PullOptions(timeout_seconds=7, plain_http=True, insecure_tls=True))
    ]


def test_o10_a_tag_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    verify = service(tmp_path)
    report = verify.verify("ghcr.io/octocat/aicr-evidence:v1", VerifyOptions())
    assert [step.name for step in report.steps] == [StepName.MATERIALIZE]
    assert report.failure_cause is not None
    assert (report.exit, report.failure_cause.cause) == (2, CauseClass.UNKNOWN)
    assert "tag-only" in report.failure_cause.detail
    assert asked(verify) == []
    allowed = verify.verify("ghcr.io/octocat/aicr-evidence:v1", VerifyOptions(allow_unpinned_tag=True))
    assert allowed.exit == 0


def test_a_pointer_leads_to_its_bundle_by_digest(tmp_path: Path) -> None:
    verify = service(tmp_path)
    report = verify.verify(pointer_file(tmp_path), VerifyOptions())
    assert (report.input, report.exit) == (InputKind.POINTER, 0)
    assert str(asked(verify)[0][0]) == REFERENCE
    document = report.to_json()
    assert document["pointer"]["recipe"] == NAME  # type: ignore[index]
    assert document["bundleDigest"] == str(DIGEST)


def test_a_pointer_that_claims_another_signer_fails(tmp_path: Path) -> None:
    claim = SignerClaim("mallory@example.org", OCTOCAT.issuer)
    report = service(tmp_path).verify(pointer_file(tmp_path, signer=claim), VerifyOptions())
    assert report.failure_cause is not None
    assert (report.exit, report.failure_cause.cause) == (2, CauseClass.SIGNATURE)
    assert "identity mismatch" in report.failure_cause.detail


def test_a_pointer_without_reference_uses_the_one_that_is_given(tmp_path: Path) -> None:
    verify = service(tmp_path)
    path = pointer_file(tmp_path, oci="")
    report = verify.verify(path, VerifyOptions())
    assert report.failure_cause is not None
    assert "no reference was given" in report.failure_cause.detail
    assert verify.verify(path, VerifyOptions(bundle="ghcr.io/octocat/aicr-evidence:v1")).exit == 0
    assert str(asked(verify)[0][0]) == REFERENCE


def test_the_pointers_file_name_is_held_against_the_digest_strictly(tmp_path: Path) -> None:
    wrong = tmp_path / f"sha256-{'0' * 64}.yaml"
    Path(pointer_file(tmp_path)).rename(wrong)
    report = service(tmp_path).verify(str(wrong), VerifyOptions(strict=True))
    assert [finding.rule for finding in report.findings] == ["E5"]
    assert report.exit == 2


def test_an_archive_reads_as_oci(tmp_path: Path) -> None:
    (tmp_path / "bundle.tar").write_bytes(b"")
    report = service(tmp_path).verify(str(tmp_path / "bundle.tar"), VerifyOptions())
    assert (report.input, report.exit, report.bundle_digest) == (InputKind.OCI, 0, str(DIGEST))


@pytest.mark.parametrize(
    ("text", "error"),
    [("", InputError), ("https://ghcr.io/a/b", InputError), ("no such thing", InputError)],
)
def test_v9_an_input_of_no_form_gives_no_report(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        service(tmp_path).verify(text, VerifyOptions())


def test_an_invalid_pointer_gives_no_report(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"schemaVersion: 2.0.0\n")
    with pytest.raises(PointerInvalid):
        service(tmp_path).verify(str(tmp_path / "bad.yaml"), VerifyOptions())
    (tmp_path / "link.yaml").symlink_to(pointer_file(tmp_path))
    with pytest.raises(PointerInvalid):
        service(tmp_path).verify(str(tmp_path / "link.yaml"), VerifyOptions())


def test_a_pin_that_is_no_regular_expression_gives_no_report(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="RE2"):
        service(tmp_path).verify(REFERENCE, VerifyOptions(pins=Pins(identity_regexp="(")))


@pytest.mark.parametrize(
    ("error", "cause", "exit_value", "process"),
    [
        pytest.param(FetchError("x", http_status=401), CauseClass.REGISTRY_FORBIDDEN, 2, 2, id="V10"),
        pytest.param(FetchError("x", http_status=404), CauseClass.NOT_FOUND, 2, 2, id="V11"),
        pytest.param(FetchError("x", http_status=400), CauseClass.REGISTRY, 2, 2, id="V12"),
        pytest.param(FetchError("x", http_status=503), CauseClass.TRANSIENT, 3, 5, id="V13"),
        pytest.param(FetchError("x", category=Category.INVALID_REQUEST), CauseClass.UNKNOWN, 2, 2, id="V15"),
        pytest.param(FetchError("x", category=Category.TIMEOUT), CauseClass.TRANSIENT, 3, 5, id="V16"),
        pytest.param(KeyboardInterrupt(), CauseClass.CANCELED, 3, 9, id="V17"),
    ],
)
def test_what_could_not_be_fetched_is_a_report_that_ends_with_step_1(
    tmp_path: Path, error: BaseException, cause: CauseClass, exit_value: int, process: int
) -> None:
    report = service(tmp_path, error=error).verify(pointer_file(tmp_path), VerifyOptions())
    assert report.failure_cause is not None
    assert (report.failure_cause.cause, report.exit, process_exit(report)) == (cause, exit_value, process)
    assert [step.name for step in report.steps] == [StepName.MATERIALIZE]
    assert report.pointer is not None


def test_pins_reach_the_verifier(tmp_path: Path) -> None:
    report = service(tmp_path).verify(REFERENCE, VerifyOptions(pins=Pins(issuer="https://i.example.org")))
    assert report.failure_cause is not None
    assert report.failure_cause.cause is CauseClass.SIGNATURE


def test_a_judge_that_does_not_answer_is_no_verdict_about_the_bundle(tmp_path: Path) -> None:
    class Absent:
        def judge(self, job: JudgeJob, /) -> None:
            raise JudgeUnavailable("no worker")

    verify = replace(service(tmp_path), judge=Absent())  # type: ignore[arg-type]
    with pytest.raises(JudgeUnavailable):
        verify.verify(REFERENCE, VerifyOptions())


def test_a_directory_that_vanished_is_a_report(tmp_path: Path) -> None:
    class Vanished:
        def read(self, directory: str, /) -> None:
            raise NotFoundError("gone")

    judge = JudgeService(Vanished(), FakeVerifier())  # type: ignore[arg-type]
    report = replace(service(tmp_path), judge=judge).verify(str(tmp_path), VerifyOptions())
    assert (report.exit, [step.status.value for step in report.steps]) == (2, ["failed"])
