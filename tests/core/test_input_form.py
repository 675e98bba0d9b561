"""What a person named, in the order of evidence-format 8.1."""

import pytest

from app.core.errors import InputError
from app.core.input_form import InputForm, PathKind, detect_input

DIRECTORIES = {"bundle", "ghcr.io/owner/x:v1"}
FILES = {"p.yaml", "p.yml", "bundle.tar", "notes.txt", "localhost"}


def kind_of(path: str) -> PathKind:
    if path in DIRECTORIES:
        return PathKind.DIRECTORY
    return PathKind.FILE if path in FILES else PathKind.MISSING


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("oci://ghcr.io/a/b:v1", InputForm.OCI),
        ("oci://anything at all", InputForm.OCI),
        ("bundle", InputForm.DIRECTORY),
        ("ghcr.io/owner/x:v1", InputForm.DIRECTORY),
        ("p.yaml", InputForm.POINTER),
        ("p.yml", InputForm.POINTER),
        ("bundle.tar", InputForm.ARCHIVE),
        ("ghcr.io/owner/repo:v1", InputForm.OCI),
        ("localhost/repo:v1", InputForm.OCI),
        ("registry:5000/repo", InputForm.OCI),
        ("gone.yaml", InputForm.OCI),
    ],
)
def test_the_first_form_that_fits_is_taken(text: str, form: InputForm) -> None:
    assert detect_input(text, kind_of_path=kind_of) is form


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="V9-empty"),
        pytest.param("http://ghcr.io/a/b:v1", id="http"),
        pytest.param("https://ghcr.io/a/b:v1", id="https"),
        pytest.param("notes.txt", id="other-file"),
        pytest.param("./gone", id="dot"),
        pytest.param("../gone.yaml", id="dots"),
        pytest.param("repo", id="bare-name"),
        pytest.param("ghcr.io/a b:v1", id="blank"),
        pytest.param("ghcr.io/a\tb:v1", id="tab"),
    ],
)
def test_an_input_of_no_form_is_an_error(text: str) -> None:
    with pytest.raises(InputError):
        detect_input(text, kind_of_path=kind_of)
