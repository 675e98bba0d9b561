"""The bearer token of a verb that asks a service: from a file, else from a setting; never a word of the command line.

Words of a command are seen by everybody on the machine and kept in histories and logs. Nothing here repeats what was
read, nor the name of the file: it may be the token itself, given in the wrong place.
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from app.core.errors import InputError, NotFoundError
from app.core.tokens import is_bearer_token

MAX_FILE_BYTES = 8192


def token_in(path: str) -> str:
    """The one token that a file holds, white space around it apart; raises `NotFoundError` or `InputError`."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) else "not a path"
        raise NotFoundError(
            f"the file of --token-file can not be read: {reason}", hint="it names a file that holds the token"
        ) from err
    text = data.decode("ascii", "replace").strip()
    if not text:
        raise InputError("expected a token in the file of --token-file, found none")
    if not is_bearer_token(text):
        raise InputError(
            "expected one token in the file of --token-file, found something else, which is not shown",
            hint="the file holds the token alone, on one line",
        )
    return text


def first(secrets: Sequence[SecretStr] | SecretStr) -> str | None:
    """The token of a setting, the first of two during rotation; None when it is not set."""
    found = [secrets] if isinstance(secrets, SecretStr) else secrets
    return next((secret.get_secret_value() for secret in found if secret.get_secret_value()), None)
