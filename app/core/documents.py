"""The recipe-evidence predicate as typed models that keep unknown fields (evidence-format 1).

One model serves v1, v2 and v3: they differ in when a profile block is due, which `core.statement` checks, as it
checks that no known key comes in another case. A producer may leave out or null whatever it has nothing to say about,
as Go's decoder allows; a wrong type is refused.

This is the one module of the core that imports pydantic; import it only where a bundle is judged.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from app.core.bundle import PHASES, DimensionMatch, PhaseSummary
from app.core.errors import DocumentInvalid

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})", re.ASCII)
MAX_TEXT_CHARS = 4096
"""One text of a predicate; what is honest is far shorter, and all of them are stored and shown."""

MAX_ITEMS = 1000
"""Items of one list or map of a predicate: each becomes a model of about a kilobyte; six rows, three phases and some
dozens of images are honest."""

_MAX_COUNT = 1 << 53  # integers travel as IEEE doubles


def parse_time(text: str) -> datetime:
    """An RFC 3339 time in UTC; raises `ValueError` for anything else."""
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"expected an RFC 3339 time, got {text[:40]!r}")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except OverflowError as err:
        raise ValueError(f"expected a time of this era, got {text[:40]!r}") from err


def _time(value: object) -> object:
    return parse_time(value) if isinstance(value, str) else value


def _whole(value: object) -> object:
    """Accept `3.0` for `3`; everything else is left to the strict check."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_COUNT:
        return int(value)
    return value


def _few(value: object) -> object:
    """Refuse more items than `MAX_ITEMS` before any of them is modelled."""
    if isinstance(value, list | dict) and len(value) > MAX_ITEMS:
        raise ValueError(f"expected at most {MAX_ITEMS} items, got {len(value)}")
    return value


_Few = BeforeValidator(_few)
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=0, lt=_MAX_COUNT)]
Time = Annotated[datetime, BeforeValidator(_time)]


class _Foreign(BaseModel):
    """An object that a stranger wrote: camelCase keys, nulls read as absent, unknown keys kept."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None}


class RecipeReference(_Foreign):
    """Name and bare-hex digest of the recipe; the very first producers left both out."""

    name: Text = ""
    digest: Text = ""


class ValidatorImage(_Foreign):
    """One validator image; `digest` is normally empty."""

    image: Text = ""
    digest: Text = ""


class TextDimension(_Foreign):
    """A captured text (D, or O with a version); an empty value was not captured."""

    value: Text = ""
    version: Text = ""
    source: Text = ""
    note: Text = ""


class CountDimension(_Foreign):
    """A captured number; 0 was not captured."""

    value: Count = 0
    source: Text = ""


class Fingerprint(_Foreign):
    """What the cluster looked like (1.3)."""

    service: TextDimension = TextDimension()
    accelerator: TextDimension = TextDimension()
    gpu_model: TextDimension = TextDimension()
    os: TextDimension = TextDimension()
    k8s_version: TextDimension = Field(default=TextDimension(), alias="k8sVersion")
    region: TextDimension = TextDimension()
    node_count: CountDimension = CountDimension()
    gpu_node_count: CountDimension = CountDimension()


class DimensionRow(_Foreign):
    """One row of criteriaMatch (1.4)."""

    dimension: Text = ""
    recipe_requires: Text = ""
    fingerprint_provides: Text = ""
    match: Text = ""


class CriteriaMatch(_Foreign):
    """How the cluster fits the recipe, as the producer recorded it."""

    matched: bool = False
    per_dimension: Annotated[list[DimensionRow], _Few] = []


class PhaseCounts(_Foreign):
    """One phase's counts and the prefixed digest of its report (1.5)."""

    passed: Count = 0
    failed: Count = 0
    skipped: Count = 0
    ctrf_digest: Text = ""


class BomReference(_Foreign):
    """The bill of materials: format, version, prefixed digest, number of components."""

    format: Text = ""
    version: Text = ""
    digest: Text = ""
    image_count: Count = 0


class ManifestReference(_Foreign):
    """The manifest's prefixed digest and its number of files."""

    digest: Text = ""
    file_count: Count = 0


class Redaction(_Foreign):
    """What a minimal bundle leaves out (1.6)."""

    policy: Text = ""
    version: Text = ""
    applied: Annotated[list[Text], _Few] = []


class Profile(_Foreign):
    """The profile block of a profiled recipe (1.7)."""

    selection: Text = ""
    advertiser: Text = ""
    policy_descriptor_identity: Text = ""


class Predicate(_Foreign):
    """The predicate; `attested_at` is None when the producer wrote none."""

    schema_version: Text = ""
    attested_at: Time | None = None
    aicr_version: Text = ""
    aicr_commit: Text = ""
    validator_catalog_version: Text = ""
    validator_images: Annotated[list[ValidatorImage], _Few] = []
    recipe: RecipeReference = RecipeReference()
    fingerprint: Fingerprint = Fingerprint()
    criteria_match: CriteriaMatch = CriteriaMatch()
    phases: Annotated[dict[Text, PhaseCounts], _Few] = {}
    bom: BomReference = BomReference()
    manifest: ManifestReference = ManifestReference()
    redaction: Redaction | None = None
    profile: Profile | None = None

    @classmethod
    def read(cls, body: Mapping[str, object]) -> Self:
        """Model a predicate that was parsed already; raises `DocumentInvalid` naming the first bad place."""
        _refuse_nul(body)
        try:
            return cls.model_validate(dict(body))
        except ValidationError as err:
            raise DocumentInvalid(f"predicate: {_first_error(err)}") from err

    @property
    def phase_summaries(self) -> tuple[PhaseSummary, ...]:
        """Known phases in canonical order, then unknown ones by name."""
        known = [phase for phase in PHASES if phase in self.phases]
        unknown = sorted(phase for phase in self.phases if phase not in PHASES)
        return tuple(self._summary(phase) for phase in (*known, *unknown))

    def _summary(self, phase: str) -> PhaseSummary:
        counts = self.phases[phase]
        return PhaseSummary(phase, counts.passed, counts.failed, counts.skipped, counts.ctrf_digest)

    @property
    def dimensions(self) -> tuple[DimensionMatch, ...]:
        """The criteria match, row by row, as recorded."""
        return tuple(
            DimensionMatch(row.dimension, row.match, row.recipe_requires, row.fingerprint_provides)
            for row in self.criteria_match.per_dimension
        )


def _refuse_nul(body: Mapping[str, object]) -> None:
    """Refuse U+0000 anywhere, in unknown fields too: no text of a database can hold it."""
    pending: list[object] = [body]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise DocumentInvalid("predicate: expected texts without U+0000")
        elif isinstance(item, Mapping):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item


def _first_error(err: ValidationError) -> str:
    first = err.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part)[:80] for part in first["loc"]) or "document"
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message[:1].lower()}{message[1:]}"
