"""What is measured with is what service 7 names: sizes, forms, and bundles that the judge accepts or refuses."""

from collections.abc import Iterator

import pytest

from app.bench.memory import NODES, TESTS
from app.bench.samples import Workbench, sample_recipe, swollen, workbench
from app.core.bundle import Accepted, Rejected
from app.core.canonical import ParsedRecipe
from app.core.report import StepName
from app.sandbox.identities import OCTOCAT
from app.sandbox.sigstore import Curve, LogVersion


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    with workbench(Curve.P256) as made:
        yield made


def test_the_sample_recipe_has_twenty_kilobytes_when_it_ships(bench: Workbench) -> None:
    shipped = bench.sign(1).bundle.files["recipe.yaml"]
    assert 19_000 < len(shipped) < 22_000
    assert ParsedRecipe.parse(shipped).settled is not None


def test_the_other_sample_is_read_by_libyaml(bench: Workbench) -> None:
    shipped = bench.sign(1, recipe=sample_recipe(outside_form=True)).bundle.files["recipe.yaml"]
    assert ParsedRecipe.parse(shipped).settled is None


def test_both_ways_of_reading_the_sample_give_the_same_digests(bench: Workbench) -> None:
    shipped = bench.sign(1).bundle.files["recipe.yaml"]
    short, long = ParsedRecipe.parse(shipped), ParsedRecipe.parse(b"# comment\n" + shipped)
    assert long.settled is None
    assert (short.legacy_digest(), short.content_digest()) == (long.legacy_digest(), long.content_digest())


@pytest.mark.parametrize("log", [LogVersion.V1, LogVersion.V2])
def test_a_sample_is_accepted(bench: Workbench, log: LogVersion) -> None:
    assert isinstance(bench.judge_factory()().judge(bench.sign(3, log=log).job()), Accepted)


def test_samples_differ_in_what_they_measured(bench: Workbench) -> None:
    assert len({bench.sign(number).digest for number in range(4)}) == 4


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        pytest.param("recipe.yaml", NODES, "RECIPE_IDENTITY_MISMATCH", id="recipe"),
        pytest.param("ctrf/deployment.json", TESTS, "PHASE_DIGEST_MISMATCH", id="report"),
    ],
)
def test_a_swollen_sample_reaches_the_judge_and_is_refused_there(
    bench: Workbench, path: str, data: bytes, code: str
) -> None:
    signed = bench.sign_as(OCTOCAT, swollen(5, {path: data}))
    verdict = bench.judge_factory()().judge(signed.job())
    assert isinstance(verdict, Rejected)
    assert (verdict.step, verdict.code) == (StepName.MANIFEST, code)
