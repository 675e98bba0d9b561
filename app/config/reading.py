"""The environment read once, and what is wrong with it told to who needs it."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from pydantic import ValidationError

from app.config.settings import Settings
from app.config.wording import default_of, problem, refusal, variable
from app.core.errors import ServiceError


def load_settings(overrides: Mapping[str, object] | None = None, *, uses: Collection[str] | None = None) -> Settings:
    """Read the environment; `overrides` by field name, from options of a command, win.

    Raises `InputError` naming everything that is bad among `uses` (None: all settings). A bad one besides raises the
    same when it is read, and only then.
    """
    given = dict(overrides or {})
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as err:
        bad = {name: what for name, what in _problems(err, given).items() if uses is None or name in uses}
        if bad:
            raise refusal(bad, given) from err
    settings, problems = survey(given)
    return settings.without(problems)


def survey(overrides: Mapping[str, object] | None = None) -> tuple[Settings, Mapping[str, str]]:
    """The settings with each bad one at its default, and what is wrong with it by field name."""
    given = dict(overrides or {})
    bad: dict[str, str] = {}
    while True:
        try:
            return Settings(**{**given, **{name: _default(name) for name in bad}}), bad  # type: ignore[arg-type]
        except ValidationError as err:
            found = _problems(err, given)
            if found.keys() <= bad.keys():
                raise
            bad |= found


@contextmanager
def about(name: str, kind: type[ServiceError] = ServiceError) -> Iterator[None]:
    """What is raised inside (of `kind`) is the fault of this setting: its message names the variable."""
    try:
        yield
    except kind as err:
        named = variable(name)
        if named not in err.message:
            err.message = f"{named}: {err.message}"
        raise


def _problems(err: ValidationError, given: Collection[str]) -> dict[str, str]:
    """What is wrong, by field name: its first fault."""
    found: dict[str, str] = {}
    for error in err.errors(include_url=False):
        name = str(error["loc"][0])
        found.setdefault(name, problem(name, Settings.model_fields[name], error, given=name in given))
    return found


def _default(name: str) -> object:
    return default_of(Settings.model_fields[name])
