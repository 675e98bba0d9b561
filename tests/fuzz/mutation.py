"""Inputs for the targets: seeds that are changed as bytes, as JSON trees, and inside of their base64 values."""

import base64
import binascii
import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.targets import Target

TOKENS = (
    b"\x00",
    b"\n",
    b"\r\n",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"\xe2\x80\xae",
    b"\xe2\x80\x8b",
    b"\xc4\xb0",
    b"null",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"9" * 30,
    b"9" * 5000,
    b"9223372036854775808",
    b"../",
    b"/",
    b"\\",
    b"%2e%2e",
    b"@sha256:" + b"a" * 64,
    b"sha256:",
    b"oci://",
    b"&a ",
    b"*a ",
    b"!!python/object:os.system ",
    b"!!binary ",
    b"<<: ",
    b"? ",
    b"- ",
    b"--- ",
    b"...\n",
    b"%YAML 1.2\n",
    b"[" * 200,
    b"{" * 200,
    b'{"a":' * 100,
    b"<script>alert(1)</script>",
    b"$",
    b"^",
    b"(?P<",
    b"0000-00-00T00:00:00Z",
    b"9999-12-31T23:59:60Z",
    b"2026-05-08T10:23:11+99:99",
    b"0o17",
    b"1_000",
    b"Bearer ",
    b'="',
    b"<>;rel=next",
)
LEAVES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1 << 63,
    10**40,
    1.5,
    1e308,
    "",
    "\x00",
    "\ud7ff\ue000",
    "a" * 5000,
    [],
    {},
    [[]],
    {"": ""},
    "../../etc/passwd",
    "sha256:" + "0" * 64,
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+23:59",
)


@st.composite
def mutated_bytes(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A seed with a few pieces cut, doubled, flipped, or replaced."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        match draw(st.integers(0, 5)):
            case 0:
                data[start:end] = b""
            case 1:
                data[start:start] = data[start:end]
            case 2:
                data[start:end] = draw(st.sampled_from(TOKENS))
            case 3:
                data[start:end] = draw(st.binary(max_size=20))
            case 4:
                other = draw(st.sampled_from(seeds))
                data[start:] = other[draw(st.integers(0, len(other))) :]
            case _:
                if start < len(data):
                    data[start] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


@st.composite
def mutated_json(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A JSON seed with a few of its values replaced, keys respelt, or bytes changed inside of a base64 value."""
    document = json.loads(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(document))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        value = holder[key]
        match draw(st.integers(0, 5)):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(key, str):
                holder[draw(st.sampled_from((key.upper(), key.capitalize(), key + "\u200b", "", "\u017f" + key)))] = (
                    value
                )
            case 2 if isinstance(holder, list):
                holder.append(deepcopy(value))
            case 3 if isinstance(value, str) and (inner := _decoded(value)):
                holder[key] = base64.b64encode(draw(mutated_bytes((inner,)))).decode()
            case 4 if isinstance(value, str):
                at = draw(st.integers(0, len(value)))
                holder[key] = value[:at] + draw(st.text(max_size=8)) + value[at:]
            case _:
                holder[key] = deepcopy(draw(st.sampled_from(LEAVES)))
        if not isinstance(document, dict | list):
            break
    return json.dumps(document, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Any:
    """Every (container, key) below a value."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield value, key
        yield from _places(item)


def _decoded(text: str) -> bytes:
    if len(text) < 16:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def inputs_for(target: Target) -> st.SearchStrategy[bytes]:
    """What the hypothesis round feeds a target."""
    seeds = target.seeds()
    documents = tuple(seed for seed in seeds if _is_json(seed))
    ways: list[st.SearchStrategy[bytes]] = [mutated_bytes(seeds), mutated_bytes(seeds)]
    if documents:
        ways += [mutated_json(documents), mutated_json(documents)]
    ways += [st.binary(max_size=600), st.lists(st.sampled_from(TOKENS), max_size=12).map(b"".join)]
    return st.one_of(ways)


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict | list)
    except ValueError:
        return False
