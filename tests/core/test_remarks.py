"""Remarks of one run, and the sentences that compare runs: service 5."""

import pytest

from app.core.bundle import Figure, LogPlace
from app.core.copies import Original
from app.core.figures import MAX_FIGURES, below_floors, read_figures
from app.core.identity import SignerIdentity
from app.core.refs import Digest
from app.core.remarks import copy_of, is_mutable, run_remarks, same_party, stale_digest
from app.core.verdict import Remark
from tests.support.runs import GHO, NOW, make_run, person, workflow

ANN = person("ann")


def found(**run: object) -> dict[str, Remark]:
    return {remark.code: remark for remark in run_remarks(make_run(workflow(), **run))}  # type: ignore[arg-type]


def test_a_plain_run_has_no_remarks() -> None:
    assert found() == {}


def test_overridden_values_are_listed() -> None:
    assert found(overridden=["b.c", "a[*]"])["overridden"].data == {"paths": "b.c, a[*]"}
    many = found(overridden=[f"p{index}" for index in range(30)])["overridden"].data["paths"]
    assert many.endswith("p19 and 10 more")


@pytest.mark.parametrize(
    ("image", "mutable"),
    [
        ("ghcr.io/nvidia/aicr-validators/deployment:v0.19.0", False),
        ("ghcr.io/nvidia/v@sha256:" + "a" * 64, False),
        ("ghcr.io/nvidia/v:edge", True),
        ("ghcr.io/nvidia/v:latest", True),
        ("ghcr.io/nvidia/v", True),
        ("localhost:5000/v", True),
        ("localhost:5000/v:1.2.3", False),
        ("ghcr.io/nvidia/v:main@sha256:" + "a" * 64, False),
    ],
)
def test_an_image_without_digest_or_release_can_change(image: str, *, mutable: bool) -> None:
    assert is_mutable(image) is mutable
    assert ("validator-mutable-tag" in found(images=[image])) is mutable


def test_mutable_images_are_named() -> None:
    assert found(images=["a:edge", "b:v1.0.0"])["validator-mutable-tag"].data == {"images": "a:edge"}


def test_mismatched_hardware_says_in_what() -> None:
    remark = found(hardware_matched=False)["mismatched-hardware"]
    assert remark.data == {"accelerator": "h100 required, a100 found"}
    assert "counts for no current state" in remark.message


def test_codes_of_the_judge_get_their_sentence() -> None:
    remarks = found(remarks=["signed-late", "NEW_FINDING"])
    assert remarks["signed-late"].message == "signed more than 7 days after the run says it was attested"
    assert remarks["NEW_FINDING"].message == "noted when the bundle was judged: NEW_FINDING"


def test_a_code_and_its_data_make_one_remark() -> None:
    remarks = run_remarks(make_run(workflow(), remarks=["overridden"], overridden=["a.b"]))
    assert [(one.code, one.data) for one in remarks] == [("overridden", {"paths": "a.b"})]


def test_a_bundle_that_came_in_with_credentials_is_remarked_as_just_that() -> None:
    assert found(public=False)["not-public"].message == "the bundle was only ever pulled with credentials"
    assert "not-public" not in found(public=True)
    run = make_run(person("ann"), public=False)
    assert "not-public" not in [one.code for one in run_remarks(run, seen_public=True)]


def test_weightless_records_say_why() -> None:
    assert found(weightless="trigger is pull_request")["weightless"].message == "has no weight: trigger is pull_request"


def test_a_personal_address_in_a_public_log_is_remarked() -> None:
    assert [one.code for one in run_remarks(make_run(ANN))] == ["personal-address"]
    noreply = SignerIdentity(GHO, "1234567+octocat@users.noreply.github.com")
    assert run_remarks(make_run(noreply)) == ()


def test_sentences_that_compare_runs() -> None:
    original = Original(Digest("a" * 64), "b" * 64, "key", "snapshot", LogPlace(NOW, "c" * 64, 7))
    assert copy_of(original).message == (
        "shares the cluster snapshot with the run aaaaaaaa… of source bbbbbbbb…, which was logged first; its passes"
        " are not counted"
    )
    assert copy_of(original).data == {"digest": f"sha256:{'a' * 64}", "source": "b" * 32, "kind": "snapshot"}
    assert same_party(["c" * 32]).message == "of one party with source cccccccc…: two results, perhaps one interest"
    assert stale_digest("CONFIRMED", "UNTESTED", 1).message == (
        "CONFIRMED rests on one attested digest; for today's recipe it is UNTESTED"
    )


# --- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "figure"),
    [
        ("NCCL All Reduce bandwidth: 488.37 GB/s", ("nccl-all-reduce-bandwidth", 488.37, "GB/s")),
        ("RESULT: Inference throughput: 37961.24 tokens/sec", ("inference-throughput", 37961.24, "tokens/sec")),
        ("RESULT: Inference TTFT p99: 146.30 ms", ("inference-ttft-p99", 146.3, "ms")),
        ("Constraint: >= 100 -> true", None),
        ("no figure here", None),
        ("Name: 12", None),
        ("x" * 400 + ": 1 ms", None),
    ],
)
def test_figures_are_read_from_output_lines(line: str, figure: tuple[str, float, str] | None) -> None:
    read = read_figures("performance", "check", [line, ""])
    assert [(one.name, one.value, one.unit) for one in read] == ([figure] if figure else [])


def test_figures_are_bounded() -> None:
    assert len(read_figures("performance", "check", ["Some rate: 1 ms"] * 1000)) == MAX_FIGURES


def floors(value: float, floor: str, name: str = "nccl-all-reduce-bw") -> list[tuple[str, str, str]]:
    figure = Figure("performance", "nccl-all-reduce-bw", "nccl-all-reduce-bandwidth", value, "GB/s")
    return list(below_floors(make_run(ANN, figures=[figure]), {name: floor}))


@pytest.mark.parametrize(
    ("value", "floor", "below"),
    [
        (99.9, ">= 100", True),
        (100, ">= 100", False),
        (100, "> 100", True),
        (99, "100", True),
        (101, "<= 100", True),
        (100, "< 100", True),
        (100, "== 100", False),
        (99, "== 100", True),
        (99, ">= 100 GB/s", True),
        (99, ">=100GB/s ", True),
        (99.5, ">= 99.75", True),
        (0.5, "1,000 GB/s", False),
        (0.5, "1e3", False),
        (0.5, "1.2.3", False),
        (0.5, "v1", False),
        (0.5, "1 to 3", False),
        (0.5, "1 000", False),
        (0.5, "> 1 TB/s", False),
        (0.5, ">= 1_000", False),
        (1, "ubuntu", False),
        (1, ">= lots", False),
        (1, "", False),
    ],
)
def test_a_figure_is_compared_with_its_floor(value: float, floor: str, *, below: bool) -> None:
    assert bool(floors(value, floor)) is below


def test_a_floor_may_be_named_after_the_figure() -> None:
    assert floors(40, ">= 100", "nccl-all-reduce-bandwidth") == [("nccl-all-reduce-bandwidth", "40 GB/s", ">= 100")]
    assert floors(40, ">= 100", "something-else") == []


def test_a_floor_named_after_a_check_with_several_figures_holds_for_none() -> None:
    figures = [Figure("performance", "perf", name, 1.0, "ms") for name in ("a-rate", "b-rate")]
    assert list(below_floors(make_run(ANN, figures=figures), {"perf": ">= 5"})) == []


@pytest.mark.parametrize(
    ("observed", "floor", "below"),
    [
        ("1.33", ">= 1.34", True),
        ("v1.35.5-eks-a3a0722", ">= 1.34", False),
        ("1.34.2", "<= 1.34", False),
        ("1.9", ">= 1.34", True),
        ("1.33", "v1.34", True),
        ("1.33", ">= 1.34.2", True),
        ("1.33", ">= 1.34-rc.1", False),
        ("1.33", ">= 1.34, < 1.36", False),
        ("1.33", ">= 1.34.2.1", False),
        ("", ">= 1.34", False),
        ("unknown", ">= 1.34", False),
    ],
)
def test_the_kubernetes_version_has_a_floor_too(observed: str, floor: str, *, below: bool) -> None:
    run = make_run(ANN, k8s=observed)
    assert bool(list(below_floors(run, {"K8s.server.version": floor}))) is below


def test_what_is_below_a_floor_is_remarked_with_both_numbers() -> None:
    figure = Figure("performance", "nccl-all-reduce-bw", "nccl-all-reduce-bandwidth", 40.0, "GB/s")
    run = make_run(workflow(), figures=[figure])
    (remark,) = run_remarks(run, {"nccl-all-reduce-bw": ">= 100"})
    assert (remark.code, remark.data) == ("below-floor", {"nccl-all-reduce-bw": "40 GB/s, asked >= 100"})
    assert run_remarks(run) == ()
