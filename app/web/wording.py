"""What is wrong with a field, in the words of the field: what was expected, never how it is checked.

pydantic says it in Python's words (`Input should be a valid dictionary or instance of Body`), and names the branches of
a union as if they were fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.core.errors import InputError

MAX_SHOWN = 50

_EXPECTED: Mapping[str, str] = {
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "timezone_aware": "a time with Z or an offset",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_pattern_mismatch": "text like {pattern}",
    "too_long": "at most {max_length} items",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "datetime_type": "a date and time",
    "datetime_parsing": "a date and time that exist",
    "datetime_from_date_parsing": "a date and time that exist",
}
"""By the type of pydantic's error; filled with its context."""


def invalid_parameters(errors: Sequence[Mapping[str, Any]]) -> InputError:
    """One error that names each wrong parameter of path or query by its public name alone.

    Before the name stands where it was sent, after it the branches of its type; neither helps who sent it.
    """
    return _invalid([(str(error["loc"][1]), error) for error in errors[:MAX_SHOWN]])


def invalid_body(errors: Sequence[Mapping[str, Any]]) -> InputError:
    """One error that names each wrong field of a body (`recipes.3.name`)."""
    return _invalid([(".".join(map(str, error["loc"])) or "body", error) for error in errors[:MAX_SHOWN]])


def _invalid(errors: Sequence[tuple[str, Mapping[str, Any]]]) -> InputError:
    """What is wrong, by field; what was sent is not echoed."""
    said: dict[str, list[str]] = {}
    for name, error in errors:
        said.setdefault(name[:200], []).append(_message(error))
    fields = [{"field": name, "message": _joined(messages)} for name, messages in said.items()]
    return InputError(f"{fields[0]['field']}: {fields[0]['message']}", details={"fields": fields})


def _message(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "expected a value, got none"
    if kind == "extra_forbidden":
        return "expected no such key"
    if kind == "value_error":
        return str(context["error"])[:300]
    expected = _EXPECTED.get(kind)
    return f"expected {expected.format(**context)}"[:300] if expected else str(error["msg"])[:300]


def _joined(messages: Sequence[str]) -> str:
    """What each branch of a type expects, in one sentence."""
    first, *others = dict.fromkeys(messages)
    return " or ".join([first, *(other.removeprefix("expected ") for other in others)])
