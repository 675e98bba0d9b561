"""Confirmed on hardware like mine? Criteria against the catalogue's lines (service 3, corroboration 6.6).

Never an empty answer: where no recipe fits, the nearest ones say exactly what differs. What was asked comes from
`core.asked`; a line is what `core.summary` makes of a verdict.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.asked import Asked
from app.core.coordinate import ANY, KNOWN_VALUES, Criteria
from app.core.verdict import State

MAX_NEAREST = 5
PROFILE = "profile"

_FAR: Mapping[str, int] = {"accelerator": 16, "service": 8, "intent": 6, "os": 3, "platform": 2, PROFILE: 1}
"""How far apart two recipes are that differ in a dimension: hardware says most about whether a result carries over."""

_BEST_FIRST = (State.CONFIRMED, State.SINGLE, State.PARTIAL, State.CONTESTED, State.UNTESTED, State.FAILING)
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One recipe that could be the answer; `passes` of `threshold` is its k of n, for today's recipe where known."""

    recipe: str
    criteria: Criteria
    profile_selection: str
    state: State
    current_state: State | None
    passes: int
    threshold: int

    @property
    def standing(self) -> State:
        """What counts for a user of today's recipe."""
        return self.state if self.current_state is None else self.current_state


@dataclass(frozen=True, slots=True)
class Difference:
    """One dimension in which a recipe is not what was asked for."""

    dimension: str
    asked: str
    recipe: str


@dataclass(frozen=True, slots=True)
class Match:
    """A recipe beside what was asked: what differs, what was not said, and how to use it."""

    candidate: Candidate
    differs: tuple[Difference, ...]
    unsaid: tuple[str, ...]  # dimensions that the recipe fixes and nobody named
    general: tuple[str, ...]  # dimensions that were named and the recipe leaves open
    command: str
    config: str

    @property
    def fits(self) -> bool:
        """Nothing differs."""
        return not self.differs


@dataclass(frozen=True, slots=True)
class Answer:
    """`state` is None when no recipe fits; `matches` fit, `nearest` do not; one of them is there if any recipe is."""

    state: State | None
    sentence: str
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]


def candidate_of(line: Mapping[str, object]) -> Candidate | None:
    """Read a catalogue line; None for a recipe whose criteria nobody knows."""
    criteria = line.get("criteria")
    if not isinstance(criteria, Mapping):
        return None
    service, accelerator, os, intent, platform = (str(criteria.get(name) or "") for name in KNOWN_VALUES)
    current = line.get("currentState")
    passes = line.get("passes") if current is None else line.get("currentPasses")
    threshold = line.get("threshold")
    return Candidate(
        recipe=str(line["recipe"]),
        criteria=Criteria(service, accelerator, os, intent, platform),
        profile_selection=str(line.get("profileSelection") or ""),
        state=State(str(line["state"])),
        current_state=None if current is None else State(str(current)),
        passes=passes if isinstance(passes, int) else 0,
        threshold=threshold if isinstance(threshold, int) else 0,
    )


def answer(asked: Asked, candidates: Iterable[Candidate]) -> Answer:
    """Compare what was asked with every recipe; ties are broken by name, so the same question has one answer."""
    found = [_match(asked, candidate) for candidate in candidates]
    fitting = sorted((match for match in found if match.fits), key=_fit)
    nearest = sorted((match for match in found if not match.fits), key=_distance)[:MAX_NEAREST]
    if not found:
        return Answer(None, "no recipe is known here yet: push the catalogue or submit evidence", (), ())
    if not fitting:
        return Answer(None, _sentence_of_nearest(nearest[0]), (), tuple(nearest))
    return Answer(fitting[0].candidate.standing, _sentence_of_fit(fitting), tuple(fitting), tuple(nearest))


def _match(asked: Asked, candidate: Candidate) -> Match:
    differs: list[Difference] = []
    unsaid: list[str] = []
    general: list[str] = []
    pairs = [
        (dimension, asked.criteria.value(dimension), candidate.criteria.value(dimension)) for dimension in KNOWN_VALUES
    ]
    pairs.append((PROFILE, asked.profile_selection, candidate.profile_selection))
    for dimension, wanted, has in pairs:
        if wanted and has and wanted != has:
            differs.append(Difference(dimension, wanted, has))
        elif has and not wanted:
            unsaid.append(dimension)
        elif wanted and not has:
            general.append(dimension)
    return Match(candidate, tuple(differs), tuple(unsaid), tuple(general), command_of(candidate), config_of(candidate))


def _fit(match: Match) -> tuple[int, int, int, str]:
    """Exact before general, fewer open questions first, then the better state."""
    candidate = match.candidate
    return (len(match.general), len(match.unsaid), _BEST_FIRST.index(candidate.standing), candidate.recipe)


def _distance(match: Match) -> tuple[int, int, int, str]:
    candidate = match.candidate
    return (
        sum(_FAR[difference.dimension] for difference in match.differs),
        len(match.general),
        _BEST_FIRST.index(candidate.standing),
        candidate.recipe,
    )


def _sentence_of_fit(fitting: Sequence[Match]) -> str:
    best = fitting[0]
    candidate = best.candidate
    sentence = f"{candidate.recipe} is {candidate.standing.value}, {candidate.passes} of {candidate.threshold}"
    if candidate.current_state is not None and candidate.current_state is not candidate.state:
        sentence += f" for today's recipe ({candidate.state.value} for whatever was attested)"
    if best.unsaid:
        sentence += f"; {len(fitting)} {'recipes fit' if len(fitting) > 1 else 'recipe fits'}, say {_or(best.unsaid)}"
        sentence += " to be exact"
    return sentence


def _sentence_of_nearest(match: Match) -> str:
    candidate = match.candidate
    differing = ", ".join(f"{one.dimension} is {one.recipe} instead of {one.asked}" for one in match.differs)
    return (
        f"no recipe is for exactly this; the nearest is {candidate.recipe} ({candidate.standing.value},"
        f" {candidate.passes} of {candidate.threshold}), where {differing}"
    )


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def command_of(candidate: Candidate) -> str:
    """The command that makes this recipe (corroboration 6.6), ready for a shell; an os-agnostic one prints `any`."""
    criteria = candidate.criteria
    words = ["aicr", "recipe"]
    for dimension in ("service", "accelerator", "os", "intent"):
        words += [f"--{dimension}", criteria.value(dimension) or ANY]
    if platform := criteria.value("platform"):
        words += ["--platform", platform]
    if candidate.profile_selection:
        words += ["--profile", candidate.profile_selection]
    return shlex.join(words)


def config_of(candidate: Candidate) -> str:
    """The same as an AICRConfig file."""
    criteria = candidate.criteria
    lines = [
        "kind: AICRConfig",
        "apiVersion: aicr.run/v1alpha2",
        "metadata:",
        f"  name: {_scalar(candidate.recipe)}",
        "spec:",
        "  recipe:",
        "    criteria:",
        *(
            f"      {name}: {_scalar(criteria.value(name) or ANY)}"
            for name in ("service", "accelerator", "os", "intent")
        ),
    ]
    if platform := criteria.value("platform"):
        lines.append(f"      platform: {_scalar(platform)}")
    if candidate.profile_selection:
        lines.append(f"    profile: {_scalar(candidate.profile_selection)}")
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """Plain where YAML reads it as text whatever stands there, else double-quoted."""
    if _PLAIN.fullmatch(text.replace("=", "-")) and not text[0].isdigit() and text.lower() not in _YAML_WORDS:
        return text
    return json.dumps(text)
