"""JSON from outside, read strictly so that it has one meaning for every reader (trust 1.2 S2, 4).

Also JSON as Go's encoder writes it, for the files of a bundle.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NoReturn

from app.core.errors import DocumentInvalid

MAX_DEPTH: Final = 64
MAX_BYTES: Final = 10 << 20
"""Upstream's cap for statements, signatures and reports (evidence-format 8.3)."""

MAX_TOKENS: Final = 500_000
"""More than any honest statement or report of `MAX_BYTES` has; parsed, so many cost about 30 MB."""

MAX_TOKENS_GIVEN_UP: Final = 2_000_000
"""What a bill of materials of 8 MiB may have; an honest one has half as many."""

MAX_NUMBER_CHARS: Final = 40
"""A longer number is refused before it costs a quadratic conversion."""

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None

# A string always matches, also an unterminated one: a search never starts twice inside the same string.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_TOKEN: Final = re.compile(_STRING.pattern + rb"|[,:\[{]", re.DOTALL)
_BRACKETS: Final = re.compile(_STRING.pattern + rb"|[\[{]+|[\]}]+", re.DOTALL)
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_GO_ESCAPES: Final = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


_GIVEN_UP: Final[dict[str, JsonValue]] = {}
"""Stands for every object of which nothing is kept; shared, and never changed."""


class _Refused(Exception):
    """A rule of this module spoke, below the frame that knows what the text is called."""


def parse_json(
    data: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    max_tokens: int = MAX_TOKENS,
    max_depth: int = MAX_DEPTH,
    what: str = "JSON",
) -> JsonValue:
    """Read one JSON text; `what` names it in messages.

    Refused with `DocumentInvalid`: more than `max_bytes`, more than `max_tokens` (as `has_more_tokens` counts), more
    than `max_depth` nested collections, a key that an object repeats, NaN and infinities (a number too large for a
    double is one), integers beyond 64 bits, lone surrogates, a byte-order mark, and whatever is not UTF-8 or not JSON.
    """
    _check_size(data, max_bytes, what)
    _check_tokens(data, max_tokens, what)
    return _load(data, max_depth, what, _parse)


def parse_members(
    data: bytes,
    keys: AbstractSet[str],
    *,
    max_bytes: int,
    max_tokens: int = MAX_TOKENS_GIVEN_UP,
    max_depth: int = MAX_DEPTH,
    what: str = "JSON",
) -> JsonValue:
    """Read one JSON text and keep of its objects the members named `keys`, wherever they stand.

    Everything is checked as `parse_json` does, then given up at once: for a document with many honest tokens of which
    only a few matter. An object that is given up is an empty one, so a list keeps its length.
    """
    _check_size(data, max_bytes, what)
    _check_tokens(data, max_tokens, what)

    def parse(text: str) -> JsonValue:
        escaped = _SURROGATE_ESCAPE.search(text) is not None

        def thin(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
            value = _object(pairs)
            if escaped:
                _check_surrogates(value)
            return {key: value[key] for key in keys if key in value} or _GIVEN_UP

        value: JsonValue = json.loads(
            text, object_pairs_hook=thin, parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
        if escaped:
            _check_surrogates(value)
        return value

    return _load(data, max_depth, what, parse)


def _check_size(data: bytes, max_bytes: int, what: str) -> None:
    if len(data) > max_bytes:
        raise DocumentInvalid(f"{what}: expected at most {max_bytes} bytes of JSON, got {len(data)}")


def _check_tokens(data: bytes, max_tokens: int, what: str) -> None:
    if has_more_tokens(data, max_tokens):
        raise DocumentInvalid(f"{what}: expected at most {max_tokens} JSON tokens, got more")


def _load(data: bytes, max_depth: int, what: str, parse: Callable[[str], JsonValue]) -> JsonValue:
    try:
        _check_depth(data, max_depth)
        return parse(data.decode())
    except UnicodeDecodeError as err:
        raise DocumentInvalid(f"{what}: expected UTF-8, but byte {err.start} starts no character") from err
    except json.JSONDecodeError as err:
        raise DocumentInvalid(f"{what}: not valid JSON: {err.msg} at line {err.lineno}, column {err.colno}") from err
    except _Refused as err:
        raise DocumentInvalid(f"{what}: {err}") from err


def has_more_tokens(data: bytes, most: int) -> bool:
    """Whether a JSON text has more than `most` strings, opening brackets, colons and commas, without parsing it.

    Bytes do not bound what a text costs: an object of seven bytes takes some 240 once it is parsed. Counting ends with
    the first token too many, and what stands inside of strings counts nothing, so that long output is no weight.
    """
    if len(data) - len(data.translate(None, b'",:[{')) <= most:
        return False
    return next(itertools.islice(_TOKEN.finditer(data), most, None), None) is not None


def _parse(text: str) -> JsonValue:
    value: JsonValue = json.loads(
        text, object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
    )
    if _SURROGATE_ESCAPE.search(text):
        _check_surrogates(value)
    return value


def refuse_case_variants(value: Mapping[str, object], known_keys: Iterable[str]) -> None:
    """Raise `DocumentInvalid` for a key that differs from a known one only by case.

    Go matches keys without regard to case, so `{"Passed": 1}` would be read there and not here.
    """
    folded = {key.casefold(): key for key in known_keys}
    for key in value:
        known = folded.get(key.casefold())
        if known is not None and known != key:
            raise DocumentInvalid(f"key {key[:80]!r} differs from {known!r} only by case")


def go_json(value: object) -> bytes:
    """`value` as Go's encoder writes it: indented by two, keys in their order, HTML escaped, one final newline.

    Raises `ValueError` for a float that Go and Python print differently.
    """
    text = json.dumps(_whole_numbers(value), indent=2, ensure_ascii=False, allow_nan=False)
    return (text.translate(_GO_ESCAPES) + "\n").encode()


def _check_depth(data: bytes, max_depth: int) -> None:
    """Count brackets outside of strings, before anything recurses; over bytes, of which text can take four each."""
    if data.count(b"[") + data.count(b"{") <= max_depth:
        return
    depth = 0
    for found in _BRACKETS.finditer(data):
        run = found[0]
        if run[0] in b"[{":
            depth += len(run)
            if depth > max_depth:
                raise _Refused(f"expected at most {max_depth} nested levels of JSON, got more")
        elif run[0] in b"]}":
            depth -= len(run)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"key {key[:80]!r} is repeated in one JSON object")
            seen.add(key)
    return value


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS:
        raise _Refused(f"expected a number of at most {MAX_NUMBER_CHARS} characters, got {len(digits)}")
    value = int(digits)
    if not -(1 << 63) <= value < 1 << 64:
        raise _Refused(f"expected an integer of at most 64 bits, got {digits}")
    return value


def _real(digits: str) -> float:
    if len(digits) > MAX_NUMBER_CHARS:
        raise _Refused(f"expected a number of at most {MAX_NUMBER_CHARS} characters, got {len(digits)}")
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused(f"expected a finite number, got {digits}")
    return value


def _constant(name: str) -> NoReturn:
    raise _Refused(f"expected a finite number, got {name}")


def _check_surrogates(value: JsonValue) -> None:
    pending: list[JsonValue] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str) and _LONE_SURROGATE.search(item):
            raise _Refused("a JSON string holds half of a surrogate pair")


def _whole_numbers(value: object) -> object:
    """`value` with whole floats as integers, as Go prints them."""
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return int(value)
        if not 1e-4 <= abs(value) < 1e15:
            raise ValueError(f"float {value!r} has no form that Go and Python share")
    return value
