"""What changed between two resolved recipes, by component and by constraint (service 5).

For people who see DRIFTED and ask why. Which digest differs is decided elsewhere; a change that lies only in
components that are off is listed too, since the digest covers it.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from app.core.errors import DocumentInvalid
from app.core.yamltext import TextValue, load_text

MAX_LINES = 40
"""Lines that are worth reading; the rest is counted."""

# Recipes are some 20 KB; whoever writes a monster gets no explanation, and nobody pays for it.
_MAX_RECIPE_BYTES = 1 << 18
_MAX_LEAVES = 10_000
_MAX_PATH_CHARS = 400
_MAX_VALUE_CHARS = 60
_VERSION_PATH = "metadata.version"

Flat = Mapping[str, str]


class _Incomparable(Exception):
    """A text is larger than any recipe."""


def recipe_difference(attested: str, current: str) -> tuple[str, ...]:
    """One line a change, attested value first; empty when nothing differs or a text can not be compared.

    Components and constraints are matched by name, whatever their order. `metadata.version` is the producer's own
    version and is named as such. A text with anchors or tags, or larger than any recipe, is not compared.
    """
    before, after = _read(attested), _read(current)
    if before is None or after is None:
        return ()
    try:
        lines = [
            *_components(_named(before, "componentRefs"), _named(after, "componentRefs")),
            *_constraints(before, after),
            *_rest(before, after),
        ]
    except _Incomparable:
        return ()
    if len(lines) > MAX_LINES:
        return (*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more")
    return tuple(lines)


@lru_cache(maxsize=16)
def _read(text: str) -> dict[str, TextValue] | None:
    try:
        document = load_text(text.encode("utf-8", "surrogatepass"), max_bytes=_MAX_RECIPE_BYTES)
    except DocumentInvalid:
        return None
    return document if isinstance(document, dict) else None


def _named(document: Mapping[str, TextValue], key: str) -> dict[str, dict[str, TextValue]]:
    """The entries of a list of mappings by their `name`; a repeated name keeps its first entry."""
    found: dict[str, dict[str, TextValue]] = {}
    value = document.get(key)
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and isinstance(name := entry.get("name"), str):
            found.setdefault(name, entry)
    return found


def _components(before: Mapping[str, dict[str, TextValue]], after: Mapping[str, dict[str, TextValue]]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            shown = new if old is None else old
            yield f"component {name}{_switch(shown)} {'added' if old is None else 'removed'}"
            continue
        for line in _changes(_flat(old), _flat(new)):
            yield f"component {name}{_switch(new)}: {line}"


def _switch(component: Mapping[str, TextValue] | None) -> str:
    """` (off)` for a component that the recipe turns off."""
    overrides = (component or {}).get("overrides")
    return " (off)" if isinstance(overrides, dict) and overrides.get("enabled") == "false" else ""


def _constraints(before: Mapping[str, TextValue], after: Mapping[str, TextValue]) -> Iterator[str]:
    old = {name: _flat(entry) for name, entry in _named(before, "constraints").items()}
    new = {name: _flat(entry) for name, entry in _named(after, "constraints").items()}
    for name in sorted({*old, *new}):
        if name not in new:
            yield f"constraint {name} removed (was {_short(old[name].get('value', ''))})"
        elif name not in old:
            yield f"constraint {name} added: {_short(new[name].get('value', ''))}"
        else:
            for line in _changes(old[name], new[name]):
                yield f"constraint {name}: {line.removeprefix('value ')}"


def _rest(before: Mapping[str, TextValue], after: Mapping[str, TextValue]) -> Iterator[str]:
    apart = ("componentRefs", "constraints")
    old = _flat({key: value for key, value in before.items() if key not in apart})
    new = _flat({key: value for key, value in after.items() if key not in apart})
    for line in _changes(old, new):
        yield f"{line} (the producer's own version)" if line.startswith(f"{_VERSION_PATH} ") else line


def _changes(old: Flat, new: Flat) -> Iterator[str]:
    for path in sorted({*old, *new}):
        if path not in new:
            yield f"{path} removed (was {_short(old[path])})"
        elif path not in old:
            yield f"{path} added: {_short(new[path])}"
        elif old[path] != new[path]:
            yield f"{path} {_short(old[path])} -> {_short(new[path])}"


def _flat(value: TextValue) -> dict[str, str]:
    """Leaves by dotted path; a list is one leaf unless it holds collections, so that a new item reads as one change."""
    leaves: dict[str, str] = {}
    for path, leaf in _walk(value, ""):
        leaves[path] = leaf
        if len(leaves) > _MAX_LEAVES:
            raise _Incomparable
    return leaves


def _walk(value: TextValue, path: str) -> Iterator[tuple[str, str]]:
    if len(path) > _MAX_PATH_CHARS:
        raise _Incomparable
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _walk(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{_item_name(item, index)}]")
    elif isinstance(value, list):
        yield path, f"[{', '.join(str(item) for item in value)}]"
    else:
        yield path, "{}" if isinstance(value, dict) else value or ""


def _item_name(item: TextValue, index: int) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else str(index)


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return f"{one_line[:_MAX_VALUE_CHARS]}…" if len(one_line) > _MAX_VALUE_CHARS else one_line or '""'
