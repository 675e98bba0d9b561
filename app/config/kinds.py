"""The kinds of settings: what each takes, in the words in which a wrong value is answered."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import NoDecode

from app.config.rates import RATE

MOST_BYTES = 1 << 40
MOST_DAYS = 36_500
MOST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Expected:
    """What a value has to be, as it stands behind the word `expected`; bounds are told from the field itself."""

    words: str


class Unfit(ValueError):
    """A value that is not what its field expects; its text is what was found, as it may be shown."""


Bytes = Annotated[int, Field(gt=0, le=MOST_BYTES), Expected("a whole number of bytes")]
Count = Annotated[int, Field(gt=0, le=1_000_000)]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS), Expected("a whole number of days")]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False), Expected("a number of seconds")]

File = Annotated[str, Field(min_length=1), Expected("the path of a file")]
OptionalFile = Annotated[str, Expected("the path of a file, or nothing")]
Directory = Annotated[str, Field(min_length=1), Expected("the path of a directory")]
Host = Annotated[str, Field(min_length=1), Expected("an address or a host name without port")]
DatabaseUrl = Annotated[
    str, Field(min_length=1), Expected("a database URL: sqlite:/// and a file, or postgresql+psycopg://...")
]
ApiUrl = Annotated[str, Expected("an http or https address of the service, such as http://127.0.0.1:8080")]
Roots = Annotated[str, Field(min_length=1), Expected("public-good, or paths of trusted roots: path;issuer=URL;...")]
Prefixes = Annotated[str, Expected("registry[/path], such as ghcr.io/nvidia")]
Rate = Annotated[str, Expected(RATE)]

Hosts = Annotated[tuple[str, ...], NoDecode, Expected("host or host:port")]
"""A comma list: spaces trimmed, empty items dropped."""

Networks = Annotated[tuple[str, ...], NoDecode, Expected("an address or a network such as 10.0.0.0/8")]
"""A comma list like that."""

Secrets = Annotated[tuple[SecretStr, ...], NoDecode, Expected("one token, or two comma-separated ones during rotation")]
"""One bearer token, or two comma-separated ones during rotation."""

Secret = Annotated[SecretStr, Expected("one token")]
"""One bearer token; empty is none."""


def split_names(text: str) -> tuple[str, ...]:
    """The items of a comma list."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
