"""Files that a person names on the command line: read whole within a limit, or written, or told why not."""

from pathlib import Path

from app.core.errors import InputError, NotFoundError


def is_file(text: str) -> bool:
    """Whether `text` names a file here; what can not be a path is none."""
    try:
        return text != "" and Path(text).is_file()
    except OSError:
        return False


def exists(text: str) -> bool:
    """Whether `text` names anything here; what can not be a path names nothing."""
    try:
        return text != "" and Path(text).exists()
    except OSError:
        return False


def read_file(text: str, *, max_bytes: int, what: str) -> bytes:
    """The bytes of a file that should be `what`; raises `NotFoundError` or `InputError`."""
    try:
        with Path(text).open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as err:
        raise NotFoundError(f"{text[:200]} can not be read: {err.strerror}") from err
    if len(data) > max_bytes:
        raise InputError(f"{text[:200]} is larger than {max_bytes} bytes; {what} is at most that large")
    return data


def write_file(text: str, content: str) -> None:
    """Replace a file that a person named as the place of an output; raises `InputError`."""
    try:
        Path(text).write_text(content, encoding="utf-8")
    except OSError as err:
        raise InputError(f"{text[:200]} can not be written: {err.strerror}") from err
