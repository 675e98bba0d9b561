"""How pairs are interleaved and what is made of them; no test looks at how long anything took."""

from app.bench.timing import Pairs, interleave, profiled, rotating
from app.core.refs import OciRef

REFERENCE = f"registry.example.org/aicr/evidence@sha256:{'ab' * 32}"


def test_the_sides_take_turns_in_going_first() -> None:
    seen: list[str] = []
    pairs = interleave(lambda index: seen.append(f"a{index}"), lambda index: seen.append(f"b{index}"), rounds=3, warm=1)
    assert seen == ["a0", "b0", "a0", "b0", "b1", "a1", "a2", "b2"]
    assert len(pairs.wall) == len(pairs.cpu) == 3


def test_the_ratio_is_the_median_of_the_pairs() -> None:
    pairs = Pairs(wall=((2.0, 1.0), (9.0, 3.0), (100.0, 1.0)), cpu=((2.0, 2.0), (3.0, 1.0), (4.0, 1.0)))
    assert pairs.ratio == 3.0
    assert pairs.cpu_ratio == 3.0
    assert pairs.seconds == (9.0, 1.0)
    assert pairs.details("judge", "bare") == {
        "judgeMs": 9000.0,
        "bareMs": 1000.0,
        "cpuRatio": 3.0,
        "quartileLow": 2.0,
        "quartileHigh": 100.0,
        "pairs": 3,
    }


def test_a_rotating_side_takes_the_next_step_each_round() -> None:
    side = rotating([lambda: "first", lambda: "second"])
    assert [side(index) for index in range(3)] == ["first", "second", "first"]


def test_a_profile_names_functions_and_not_the_machine() -> None:
    profile = profiled("parse", lambda: [OciRef.parse(REFERENCE) for _ in range(6)], seconds=0.5, times=2, each=3)
    assert (profile.step, profile.seconds) == ("parse", 0.5)
    calls = {line.function: line.calls for line in profile.lines if line.function.startswith("app/core/refs.py:")}
    assert set(calls.values()) == {2}
    assert not [line.function for line in profile.lines if line.function.startswith("/")]
