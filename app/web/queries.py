"""Query parameters as models, one a list: JSON and page of a resource read the same one.

What a query may hold at all, and that an empty parameter is absent, is decided in `app.web.addresses`.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.core.identity import SourceClass
from app.core.refs import Digest
from app.core.verdict import ConfirmBy, Staleness, State
from app.ports import RecordFilter
from app.services.report import Lens, RecipeFilter
from app.web.cursors import DEFAULT_LIMIT, MAX_CURSOR_CHARS, MAX_LIMIT
from app.web.instants import Instant
from app.web.naming import camel

_MAX = 512


class Parameters(BaseModel):
    """camelCase parameters; hashable, so that a remembered tag can be kept under them."""

    model_config = ConfigDict(alias_generator=camel, frozen=True)

    def parameters(self) -> dict[str, str]:
        """What is asked for, as it stands in a link; where a list starts and how long it is stay out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"cursor", "limit"})


class ListQuery(Parameters):
    """Where a page of a list starts and how long it is."""

    cursor: str | None = Field(None, max_length=MAX_CURSOR_CHARS, description="`next` of the page before")
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="how many items a page has at most")


class EvidenceQuery(ListQuery):
    """The filters of `GET /evidence`."""

    digest: str | None = Field(None, max_length=80)
    recipe: str | None = Field(None, max_length=_MAX)
    source: str | None = Field(None, max_length=64, description="slug or canonical id")
    party: str | None = Field(None, max_length=_MAX, description="as records show it, masked or by its label")
    source_class: SourceClass | None = Field(None, alias="class")
    predicate_type: str | None = Field(None, max_length=_MAX)
    aicr_version: str | None = Field(None, max_length=_MAX)
    k8s: str | None = Field(
        None, max_length=128, description="the observed Kubernetes version, compared by its minor one"
    )
    staleness: Staleness | Literal["current"] | None = Field(None, description="a reason, or `current` for none")
    outcome: Literal["passed", "failed"] | None = None
    since: Instant | None = Field(None, description="received at or after")
    until: Instant | None = Field(None, description="received before")

    def where(self) -> RecordFilter:
        """What the store filters by; raises `ReferenceInvalid` for a digest that is none."""
        return RecordFilter(
            digest=None if self.digest is None else str(Digest.parse(self.digest)),
            recipe=self.recipe,
            source=self.source,
            party=self.party,
            source_class=None if self.source_class is None else self.source_class.value,
            predicate_type=self.predicate_type,
            aicr_version=self.aicr_version,
            k8s=self.k8s,
            outcome=self.outcome,
            since=self.since,
            until=self.until,
        )

    @property
    def reason(self) -> str | None:
        """The staleness that is asked for."""
        return None if self.staleness is None else str(self.staleness)


class RecipesQuery(ListQuery):
    """The filters of `GET /recipes`."""

    service: str | None = Field(None, max_length=_MAX)
    accelerator: str | None = Field(None, max_length=_MAX)
    os: str | None = Field(None, max_length=_MAX)
    intent: str | None = Field(None, max_length=_MAX)
    platform: str | None = Field(None, max_length=_MAX)
    profile: str | None = Field(None, max_length=_MAX, description="`name=value`, or the segment in the name")
    state: State | None = None
    staleness: Staleness | None = None
    source_class: SourceClass | None = Field(None, alias="class", description="has evidence of this class that counts")
    q: str | None = Field(None, max_length=200, description="part of the name")

    def where(self) -> RecipeFilter:
        """What the catalogue filters by."""
        return RecipeFilter(
            service=self.service,
            accelerator=self.accelerator,
            os=self.os,
            intent=self.intent,
            platform=self.platform,
            profile=self.profile,
            state=None if self.state is None else self.state.value,
            staleness=None if self.staleness is None else self.staleness.value,
            source_class=None if self.source_class is None else self.source_class.value,
            q=self.q,
        )


class LensQuery(Parameters):
    """Through what one recipe is looked at."""

    aicr_version: str | None = Field(None, max_length=_MAX, description="the strict grid of one AICR version")
    aicr_commit: str | None = Field(None, max_length=64, description="of builds that are no releases")
    k8s: str | None = Field(None, max_length=128, description="dims results on another Kubernetes; no state changes")
    as_of: Instant | None = Field(None, description="what was known here then")
    confirm_by: ConfirmBy | None = Field(None, description="count signers or parties, instead of what the setting says")

    def lens(self) -> Lens:
        """The same as the service takes it."""
        return Lens(self.aicr_version, self.aicr_commit, self.k8s, self.as_of, self.confirm_by)


class AttemptsQuery(ListQuery):
    """The filters of `GET /attempts`."""

    outcome: Literal["accepted", "refused", "no-verdict"] | None = None
    digest: str | None = Field(None, max_length=80)


class AnswerQuery(Parameters):
    """What somebody asks about; what is not said is open."""

    service: str | None = Field(None, max_length=120)
    accelerator: str | None = Field(None, max_length=120)
    gpu: str | None = Field(None, max_length=120, description="the same as `accelerator`")
    os: str | None = Field(None, max_length=120)
    intent: str | None = Field(None, max_length=120)
    platform: str | None = Field(None, max_length=120)
    profile: str | None = Field(None, max_length=256, description="`name=value`")

    def named(self) -> dict[str, str]:
        """The dimensions that were said."""
        said = self.model_dump(exclude_none=True, exclude={"gpu"})
        return said if self.gpu is None else {"accelerator": self.gpu, **said}
