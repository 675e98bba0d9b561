"""What is wrong with a setting, in our words: the variable, what was expected, what was found, what to do.

pydantic's own text names neither. What was found is shown shortened and without passwords, and never of a token.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

from app.config.kinds import Expected, Unfit
from app.core.errors import InputError
from app.core.urls import masked_url

PREFIX = "AICR_EVIDENCE_"
MAX_SHOWN = 80

_HINT = "`aicr evidence settings` lists every name and default, and marks what is bad"


def variable(name: str) -> str:
    """The variable of a setting."""
    return PREFIX + name.upper()


def is_secret(name: str) -> bool:
    """Whether a setting is never shown, a wrong value included."""
    return name.endswith("_token")


def found(value: object) -> str:
    """A wrong value as it may be shown."""
    if not isinstance(value, str):
        return repr(value)[:MAX_SHOWN]
    try:
        value.encode()
    except UnicodeEncodeError:
        return "bytes that are no UTF-8"
    return repr(masked_url(value)[:MAX_SHOWN])


def problem(name: str, info: FieldInfo, error: Mapping[str, Any], *, given: bool) -> str:
    """One fault that pydantic found, reworded; `given` when an option of a command gave the value.

    A plain `ValueError` of a validator of ours says itself what was expected and found.
    """
    fault = error.get("ctx", {}).get("error")
    if isinstance(fault, ValueError) and not isinstance(fault, Unfit):
        said = str(fault)
    elif isinstance(fault, Unfit):
        said = f"expected {_expected(info)}, got {fault}"
    else:
        said = f"expected {_expected(info)}, got {'something else' if is_secret(name) else found(error['input'])}"
    if given:
        return f"{said} (give another value, or leave the option out)"
    return f"{said} (correct it or unset it: {_otherwise(name, info)})"


def refusal(problems: Mapping[str, str], given: Iterable[str] = ()) -> InputError:
    """The error about settings, by field name; those in `given` came from options."""
    from_options = frozenset(given)
    lines = [
        f"{'the option for ' if name in from_options else ''}{variable(name)}: {what}"
        for name, what in problems.items()
    ]
    return InputError("settings can not be read: " + "; ".join(lines), hint=_HINT)


def shown(value: object) -> str:
    """A value in force, or a default, for people."""
    if isinstance(value, str):
        return masked_url(value) if "://" in value else value
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def default_of(info: FieldInfo) -> object:
    """What holds when nothing is set."""
    return info.get_default(call_default_factory=True, validated_data={})


def _otherwise(name: str, info: FieldInfo) -> str:
    default = "" if is_secret(name) else shown(default_of(info))
    return f"the default is {default}" if default else "by default there is none"


def _expected(info: FieldInfo) -> str:
    if get_origin(info.annotation) is Literal:
        *first, last = map(str, get_args(info.annotation))
        return f"{', '.join(first)} or {last}"
    if info.annotation is bool:
        return "true or false"
    words = next((each.words for each in info.metadata if isinstance(each, Expected)), "")
    if info.annotation is int:
        return f"{words or 'a whole number'} from {_least(info)} to {_bound(info, Le)}"
    if info.annotation is float:
        return f"{words} over {_bound(info, Gt)}, at most {_bound(info, Le)}"
    return words


def _least(info: FieldInfo) -> int:
    over = _bound(info, Gt)
    return int(str(_bound(info, Ge))) if over is None else int(str(over)) + 1


def _bound(info: FieldInfo, kind: type[Ge | Gt | Le]) -> object:
    for each in info.metadata:
        if isinstance(each, kind):
            return each.gt if isinstance(each, Gt) else each.ge if isinstance(each, Ge) else each.le
    return None
