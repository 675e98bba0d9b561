"""What `aicr evidence settings` prints."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.config.settings import Settings
from app.config.wording import PREFIX, default_of, is_secret, shown, variable

BAD = "(bad)"


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One line of `aicr evidence settings`; `problem` says why a value can not be used."""

    name: str
    value: str
    source: str  # environment or default
    default: str
    meaning: str
    problem: str | None = None


def describe(
    settings: Settings, problems: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[SettingLine, ...]:
    """All settings with their source; secrets are hidden, and in its column a value with a problem is."""
    present = {name.lower() for name in environment}
    lines = []
    for name, info in Settings.model_fields.items():
        secret = is_secret(name)
        value = getattr(settings, name)
        lines.append(
            SettingLine(
                name=variable(name),
                value=BAD if name in problems else _value(value, secret=secret),
                source="environment" if variable(name).lower() in present else "default",
                default="(unset)" if secret else shown(default_of(info)),
                meaning=info.description or "",
                problem=problems.get(name),
            )
        )
    return tuple(lines)


def _value(value: object, *, secret: bool) -> str:
    if secret:
        return "(set, hidden)" if value else "(unset)"
    return shown(value)


def unknown_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that carry the prefix and name no setting: most likely a typing error."""
    known = {variable(name) for name in Settings.model_fields} | {PREFIX + "TEST_BUNDLES"}
    return tuple(sorted(name for name in environment if name.startswith(PREFIX) and name not in known))
