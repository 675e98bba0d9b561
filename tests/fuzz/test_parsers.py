"""Whatever a stranger sends ends in an answer or in an error of the service, never in anything else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutation import inputs_for
from tests.fuzz.targets import CORPUS, TARGETS

EXAMPLES = 120
by_name = pytest.mark.parametrize("name", sorted(TARGETS))


@by_name
def test_every_input_of_the_corpus_is_answered(name: str) -> None:
    """Seeds, and inputs that once were a fault."""
    seeds = TARGETS[name].seeds()
    assert seeds
    for data in seeds:
        TARGETS[name].run(data)


@by_name
def test_a_seed_gets_through(name: str) -> None:
    """A corpus that is refused at the door would test the door alone."""
    passed = 0
    for data in TARGETS[name].seeds():
        try:
            TARGETS[name].call(data)
        except Exception:  # noqa: BLE001, S112 - refused seeds are fine as long as one is not
            continue
        passed += 1
    assert passed >= 1


@by_name
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_nothing_but_errors_of_the_service_comes_out(name: str, data: st.DataObject) -> None:
    TARGETS[name].run(data.draw(inputs_for(TARGETS[name])))


def test_every_corpus_directory_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)


def test_no_bytes_at_all_are_answered_everywhere() -> None:
    for target in TARGETS.values():
        target.run(b"")
