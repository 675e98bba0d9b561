"""What every schema stands on, and the values that several resources show."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from app.core.coordinate import Coordinate
from app.core.refs import Digest
from app.web.naming import camel

T = TypeVar("T")


class Schema(BaseModel):
    """Reads a core value by attribute, writes camelCase."""

    model_config = ConfigDict(
        alias_generator=camel, populate_by_name=True, from_attributes=True, frozen=True, use_enum_values=True
    )

    def to_json(self) -> bytes:
        """Compact JSON with every key, in the order of the model."""
        return self.model_dump_json(by_alias=True).encode()


def _digest(value: object) -> object:
    return str(value) if isinstance(value, Digest) else value


def _path(value: object) -> object:
    return value.path if isinstance(value, Coordinate) else value


def _prefixed(value: object) -> object:
    return f"sha256:{value}" if isinstance(value, str) and value and not value.startswith("sha256:") else value


DigestText = Annotated[str, BeforeValidator(_digest)]
"""`sha256:` and 64 hex."""

Sha256 = Annotated[str, BeforeValidator(_prefixed)]
"""Bare hex inside, prefixed outside."""

CoordinatePath = Annotated[str, BeforeValidator(_path)]
"""`group/dashboard/tab`; opaque."""

SourceClassField = Field(validation_alias=AliasChoices("class", "source_class"), serialization_alias="class")


class Page(Schema, Generic[T]):
    """One page of a list; `next` is the opaque `cursor` of the following one, null on the last."""

    items: list[T]
    next: str | None = None


class ProblemOut(Schema):
    """The envelope of every error."""

    code: str
    message: str
    details: dict[str, Any] | None = None
    request_id: str
    timestamp: datetime
    retryable: bool


class CriteriaOut(Schema):
    """A recipe's criteria; empty means any."""

    service: str
    accelerator: str
    os: str
    intent: str
    platform: str


class RemarkOut(Schema):
    """Shown, never silently weighed."""

    code: str
    message: str
    data: Mapping[str, str]


class StaleReasonOut(Schema):
    """Why a record is not current, and what clears it."""

    reason: str
    message: str
    clears: str
    difference: list[str]
