"""Confirmed on hardware like mine? Criteria against the catalogue's lines (service 3, corroboration 6.6).

Never an empty answer: where no recipe fits, the nearest ones say exactly what differs. Strangers can make up recipes
and a catalogue retires its own, so recipes are offered that today's catalogue or a listed source backs; the others
only where nothing else is known. What was asked comes from `core.asked`; a line is what `core.summary` makes of a
verdict.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest

from app.core.asked import Asked
from app.core.coordinate import ANY, KNOWN_VALUES, Criteria, normalized
from app.core.verdict import Staleness, State

MAX_MATCHES = 20
MAX_NEAREST = 5
PROFILE = "profile"

_FAR: Mapping[str, int] = {"accelerator": 16, "service": 8, "intent": 6, "os": 3, "platform": 2, PROFILE: 1}
"""How far apart two recipes are that differ in a dimension: hardware says most about whether a result carries over."""

_BEST_FIRST = (State.CONFIRMED, State.SINGLE, State.PARTIAL, State.CONTESTED, State.UNTESTED, State.FAILING)
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Backing(StrEnum):
    """Who says that a recipe is one to use."""

    CATALOGUE = "catalogue"  # today's catalogue has it
    EVIDENCE = "evidence"  # a listed source attested it; no catalogue ever had it
    RETIRED = "retired"  # the catalogue had it and has it no longer
    NONE = "none"  # strangers alone


_BACKED_FIRST: Mapping[Backing, int] = {Backing.CATALOGUE: 0, Backing.EVIDENCE: 0, Backing.RETIRED: 1, Backing.NONE: 2}
_CAVEATS: Mapping[Backing, str] = {
    Backing.EVIDENCE: "no catalogue says what today's recipe is",
    Backing.RETIRED: "the catalogue retired it",
    Backing.NONE: "neither the catalogue nor a listed source backs it",
}


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
    backing: Backing
    staleness: tuple[str, ...] = ()  # codes that hold for some of what counts

    @property
    def standing(self) -> State:
        """What counts for a user of today's recipe."""
        return self.state if self.current_state is None else self.current_state

    @property
    def offered(self) -> bool:
        """Whether somebody who counts says that this recipe is in use."""
        return self.backing in {Backing.CATALOGUE, Backing.EVIDENCE}


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

    @property
    def fits(self) -> bool:
        """Nothing differs."""
        return not self.differs

    @property
    def command(self) -> str:
        """See `command_of`."""
        return command_of(self.candidate)

    @property
    def config(self) -> str:
        """See `config_of`."""
        return config_of(self.candidate)


@dataclass(frozen=True, slots=True)
class Answer:
    """`matches` fit, `nearest` do not; one of them is there if any recipe is.

    `state` is None when no recipe fits that is in use. `more` counts what fits beyond `MAX_MATCHES`; `retired` names
    recipes that fit and are left out because the catalogue retired them, `unbacked` counts those that fit and are
    left out because strangers alone attest them.
    """

    state: State | None
    sentence: str
    matches: tuple[Match, ...] = ()
    nearest: tuple[Match, ...] = ()
    more: int = 0
    retired: tuple[str, ...] = ()
    unbacked: int = 0


def candidate_of(line: Mapping[str, object]) -> Candidate | None:
    """Read a catalogue line; None for a recipe whose criteria nobody knows."""
    criteria = line.get("criteria")
    if not isinstance(criteria, Mapping):
        return None
    service, accelerator, os, intent, platform = (str(criteria.get(name) or "") for name in KNOWN_VALUES)
    current = line.get("currentState")
    passes = line.get("passes") if current is None else line.get("currentPasses")
    threshold, staleness = line.get("threshold"), line.get("staleness")
    return Candidate(
        recipe=str(line["recipe"]),
        criteria=Criteria(service, accelerator, os, intent, platform),
        profile_selection=str(line.get("profileSelection") or ""),
        state=State(str(line["state"])),
        current_state=None if current is None else State(str(current)),
        passes=passes if isinstance(passes, int) else 0,
        threshold=threshold if isinstance(threshold, int) else 0,
        backing=_backing(line),
        staleness=tuple(str(code) for code in staleness) if isinstance(staleness, list | tuple) else (),
    )


def _backing(line: Mapping[str, object]) -> Backing:
    if line.get("published"):
        return Backing.CATALOGUE
    if line.get("retired"):
        return Backing.RETIRED
    return Backing.EVIDENCE if line.get("classes") else Backing.NONE


def answer(asked: Asked, candidates: Iterable[Candidate]) -> Answer:
    """Compare what was asked with every recipe; ties are broken by name, so the same question has one answer."""
    found = [_match(asked, candidate) for candidate in candidates]
    if not found:
        return Answer(None, "no recipe is known here by its criteria yet: push the resolved recipes or submit evidence")
    shown = [match for match in found if match.candidate.offered] or found
    fitting = [match for match in shown if match.fits]
    matches = nsmallest(MAX_MATCHES, fitting, key=_fit)
    nearest = nsmallest(MAX_NEAREST, (match for match in shown if not match.fits), key=_distance)
    aside = [match for match in found if match.fits and not match.candidate.offered] if shown is not found else []
    gone = [match for match in aside if match.candidate.backing is Backing.RETIRED]
    retired = tuple(match.candidate.recipe for match in nsmallest(MAX_NEAREST, gone, key=_fit))
    best = matches[0].candidate if matches else None
    return Answer(
        state=None if best is None or best.backing is Backing.RETIRED else best.standing,
        sentence=_sentence_of_fit(matches[0], len(fitting)) if matches else _sentence_of_nearest(nearest[0], retired),
        matches=tuple(matches),
        nearest=tuple(nearest),
        more=len(fitting) - len(matches),
        retired=retired,
        unbacked=len(aside) - len(gone),
    )


def _match(asked: Asked, candidate: Candidate) -> Match:
    """Compare by what a person would have written: a recipe may spell a value in capitals or by an alias."""
    differs: list[Difference] = []
    unsaid: list[str] = []
    general: list[str] = []
    pairs = [
        (dimension, asked.criteria.value(dimension), normalized(dimension, candidate.criteria.value(dimension)))
        for dimension in KNOWN_VALUES
    ]
    pairs.append((PROFILE, asked.profile_selection.lower(), candidate.profile_selection.lower()))
    for dimension, wanted, has in pairs:
        if wanted and has and wanted != has:
            differs.append(_difference(dimension, asked, candidate))
        elif has and not wanted:
            unsaid.append(dimension)
        elif wanted and not has:
            general.append(dimension)
    return Match(candidate, tuple(differs), tuple(unsaid), tuple(general))


def _difference(dimension: str, asked: Asked, candidate: Candidate) -> Difference:
    if dimension == PROFILE:
        return Difference(dimension, asked.profile_selection, candidate.profile_selection)
    return Difference(dimension, asked.criteria.value(dimension), candidate.criteria.value(dimension))


def _fit(match: Match) -> tuple[int, int, int, int, str]:
    """Exact before general, fewer open questions first, then the better state."""
    candidate = match.candidate
    return (
        _BACKED_FIRST[candidate.backing],
        len(match.general),
        len(match.unsaid),
        _BEST_FIRST.index(candidate.standing),
        candidate.recipe,
    )


def _distance(match: Match) -> tuple[int, int, int, int, str]:
    candidate = match.candidate
    return (
        _BACKED_FIRST[candidate.backing],
        sum(_FAR[difference.dimension] for difference in match.differs),
        len(match.general),
        _BEST_FIRST.index(candidate.standing),
        candidate.recipe,
    )


def _sentence_of_fit(best: Match, fitting: int) -> str:
    candidate = best.candidate
    verb = "was" if candidate.backing is Backing.RETIRED else "is"
    sentence = f"{candidate.recipe} {verb} {candidate.standing.value}, {candidate.passes} of {candidate.threshold}"
    if candidate.current_state is not None and candidate.current_state is not candidate.state:
        sentence += f" for today's recipe ({candidate.state.value} for whatever was attested)"
    parts = [sentence, *_caveats(candidate)]
    if best.unsaid:
        recipes = "recipes fit" if fitting > 1 else "recipe fits"
        parts.append(f"{fitting} {recipes}, say {_and(best.unsaid)} to be exact")
    return "; ".join(parts)


def _sentence_of_nearest(match: Match, retired: Sequence[str]) -> str:
    candidate = match.candidate
    differing = ", ".join(f"{one.dimension} is {one.recipe} instead of {one.asked}" for one in match.differs)
    none = "no recipe is for exactly this"
    if retired:
        none += f" any more (the catalogue retired {retired[0]})"
    nearest = (
        f"the nearest is {candidate.recipe} ({candidate.standing.value}, {candidate.passes} of {candidate.threshold}),"
        f" where {differing}"
    )
    return "; ".join((none, nearest, *_caveats(candidate)))


def _caveats(candidate: Candidate) -> list[str]:
    """What a reader of the state alone would not see: nobody says that this is today's recipe, or its runs are old."""
    parts = [caveat] if (caveat := _CAVEATS.get(candidate.backing)) else []
    stale = [code for code in candidate.staleness if code != Staleness.UNKNOWN_CURRENT.value]  # said by the backing
    if stale:
        parts.append(f"not all of its evidence is current: {_and(stale)}")
    return parts


def _and(words: Sequence[str]) -> str:
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
