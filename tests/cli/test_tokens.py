"""`submit`, `verify --api` and `catalogue push` show a token to the service they were given, and to nobody else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from app.core.report import InputKind, Report
from app.ports import Access
from app.services.ingest_types import Judged
from app.web.app import create_app
from tests.support.bundles import RECIPE as RECIPE_TEXT
from tests.support.endtoend import cli
from tests.support.runs import allowlist_text, make_run, person
from tests.support.webapp import FakeContainer, make_container, serving

TOKEN = "sesame-0123456789"
API_TOKEN = "AICR_EVIDENCE_API_TOKEN"
CATALOGUE_TOKEN = "AICR_EVIDENCE_CATALOGUE_TOKEN"
ELSEWHERE = "http://service.example.org"
VISIBLE = "expected an https address to send a token to, got 'http://service.example.org'"


@pytest.fixture
def container() -> FakeContainer:
    made = make_container(catalogue_token=TOKEN)
    made.allowlist.put(allowlist_text(person("dev-one")))
    return made


@pytest.fixture(autouse=True)
def api(container: FakeContainer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in (API_TOKEN, CATALOGUE_TOKEN):
        monkeypatch.delenv(name, raising=False)
    with serving(create_app(container)) as base:
        monkeypatch.setenv("AICR_EVIDENCE_API", base)
        yield base


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return str(path)


@pytest.fixture
def reference(container: FakeContainer) -> str:
    """A bundle that the service knows, to submit and to verify."""
    return container.script(make_run(person("dev-one")))


@pytest.fixture
def recipes(tmp_path: Path) -> str:
    directory = tmp_path / "recipes"
    directory.mkdir()
    (directory / "one.yaml").write_bytes(RECIPE_TEXT)
    return str(directory)


def accesses(container: FakeContainer) -> list[Access]:
    return [asked.access for asked in container.ingest.asked]


def test_who_gives_no_token_submits_anonymously(container: FakeContainer, reference: str) -> None:
    assert cli("submit", reference).code == 0
    assert accesses(container) == [Access.ANONYMOUS]


def test_a_token_is_taken_from_a_file_or_from_its_variable(
    container: FakeContainer, reference: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("submit", reference, "--token-file", file).code == 0
    monkeypatch.setenv(API_TOKEN, TOKEN)
    assert cli("submit", reference).code == 0
    assert accesses(container) == [Access.CREDENTIALED, Access.CREDENTIALED]


def test_the_file_wins_over_the_variable(
    container: FakeContainer, reference: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_TOKEN, "another")
    assert cli("submit", reference, "--token-file", file).code == 0
    assert accesses(container) == [Access.CREDENTIALED]
    monkeypatch.setenv(API_TOKEN, "no token")
    assert cli("submit", reference, "--token-file", file).code == 0, "a variable that is not read stops nobody"


def test_the_token_of_the_catalogue_is_not_shown_by_who_submits(
    container: FakeContainer, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CATALOGUE_TOKEN, TOKEN)
    assert cli("submit", reference).code == 0
    assert accesses(container) == [Access.ANONYMOUS]


def test_a_service_that_verifies_is_shown_the_token_too(
    container: FakeContainer, api: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(person("dev-one"))
    reference = container.script(run)
    report = Report(InputKind.OCI, (), 0)
    container.ingest.results[reference] = Judged(run, "community", allowlisted=True, report=report)
    assert cli("verify", reference, "--api", api).code == 0
    assert cli("verify", reference, "--api", api, "--token-file", file).code == 0
    monkeypatch.setenv(API_TOKEN, TOKEN)
    assert cli("verify", reference, "--api", api).code == 0
    assert accesses(container) == [Access.ANONYMOUS, Access.CREDENTIALED, Access.CREDENTIALED]


def test_a_catalogue_is_pushed_with_the_token_of_a_file(recipes: str, file: str, tmp_path: Path) -> None:
    words = ("catalogue", "push", recipes, "--commit", "0123abc")
    without = cli(*words)
    assert (without.code, without.out) == (4, "")
    assert without.err == (
        "error: no catalogue token is set\nhint: set AICR_EVIDENCE_CATALOGUE_TOKEN, or give --token-file\n"
    )
    assert cli(*words, "--token-file", file).code == 0
    (tmp_path / "other").write_text("another")
    assert cli(*words, "--token-file", str(tmp_path / "other")).code == 4


def test_a_wrong_token_is_refused_and_not_shown(reference: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hidden-token")
    for words in ((), ("--fail-on", "never"), ("--format", "json")):
        run = cli("submit", reference, "--token-file", str(tmp_path / "token"), *words)
        assert (run.code, run.out) == (4, "")
        assert run.err.startswith("error: the bearer token is wrong\n")
        assert "hidden" not in run.err


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        pytest.param(b"", 2, "expected a token in the file of --token-file, found none", id="empty"),
        pytest.param(b" \n", 2, "expected a token in the file of --token-file, found none", id="blank"),
        pytest.param(b"hidden\nhidden\n", 2, "expected one token in the file of --token-file", id="two-lines"),
        pytest.param(b"hidden,hidden", 2, "expected one token in the file of --token-file", id="two"),
        pytest.param(b"hidden\r\nX-Other: hidden", 2, "expected one token in the file", id="a-header"),
        pytest.param("hidden-ä".encode(), 2, "expected one token in the file of --token-file", id="not-ascii"),
        pytest.param(b"h" * 5000, 2, "expected one token in the file of --token-file", id="long"),
        pytest.param(None, 3, "the file of --token-file can not be read: No such file or directory", id="missing"),
    ],
)
def test_a_file_that_holds_no_token_is_told_without_what_it_holds(  # noqa: PLR0917
    container: FakeContainer, reference: str, tmp_path: Path, content: bytes | None, code: int, said: str
) -> None:
    path = tmp_path / "hidden-token"
    if content is not None:
        path.write_bytes(content)
    run = cli("submit", reference, "--token-file", str(path))
    assert (run.code, run.out) == (code, "")
    assert run.err.startswith(f"error: {said}")
    assert "hidden" not in run.err
    assert accesses(container) == []


@pytest.mark.parametrize("name", ["", ".", "a\0b"])
def test_a_name_that_is_no_file_is_told(reference: str, name: str) -> None:
    run = cli("submit", reference, "--token-file", name)
    assert (run.code, run.out) == (3, "")
    assert run.err.startswith("error: the file of --token-file can not be read: ")


@pytest.mark.parametrize("words", [("--token", TOKEN), (f"--token={TOKEN}",), ("--token",)])
@pytest.mark.parametrize("verb", [("submit", "x"), ("verify", "x"), ("catalogue", "push", "x", "--commit", "y")])
def test_a_token_as_a_word_is_refused_and_not_repeated(
    container: FakeContainer, verb: tuple[str, ...], words: tuple[str, ...]
) -> None:
    run = cli(*verb, *words)
    assert (run.code, run.out) == (2, "")
    assert "a token on the command line can be seen by others: give a file that holds it, by --token-file" in run.err
    assert TOKEN not in run.err
    assert accesses(container) == []


def test_a_token_does_not_leave_the_machine_without_tls(
    reference: str, recipes: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CATALOGUE_TOKEN, TOKEN)
    for words in (
        ("submit", reference, "--api", ELSEWHERE, "--token-file", file),
        ("submit", reference, "--api", ELSEWHERE, "--token-file", file, "--fail-on", "never"),
        ("verify", reference, "--api", ELSEWHERE, "--token-file", file),
        ("catalogue", "push", recipes, "--commit", "0123abc", "--api", ELSEWHERE),
    ):
        run = cli(*words)
        assert (run.code, run.out) == (2, ""), words
        assert run.err.startswith(f"error: {VISIBLE}\nhint: "), words
        assert TOKEN not in run.err


def test_a_variable_that_holds_no_token_is_told_without_it(
    reference: str, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_TOKEN, "hidden token")
    for words in (("submit", reference), ("verify", reference, "--api", api)):
        run = cli(*words)
        assert (run.code, run.out) == (2, "")
        assert run.err.startswith(
            "error: settings can not be read: AICR_EVIDENCE_API_TOKEN: expected one token, got text that is none, "
            "which is not shown (correct it or unset it: by default there is none)\n"
        )
        assert "hidden" not in run.err
    shown = cli("settings")
    assert shown.code == 2
    assert "hidden token" not in shown.out + shown.err


def test_settings_hide_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {line["name"]: line for line in cli("settings", "--format", "json").json}
    assert (lines[API_TOKEN]["value"], lines[API_TOKEN]["default"]) == ("(unset)", "(unset)")
    monkeypatch.setenv(API_TOKEN, TOKEN)
    run = cli("settings", "--format", "json")
    assert {line["name"]: line["value"] for line in run.json}[API_TOKEN] == "(set, hidden)"
    assert TOKEN not in run.out + run.err


def test_a_token_without_a_service_is_refused(file: str, tmp_path: Path) -> None:
    run = cli("verify", str(tmp_path), "--token-file", file)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error: --token-file is for the service of --api, which was not given\n")


@contextmanager
def redirecting(status: int, target: str) -> Iterator[tuple[str, list[str | None]]]:
    """A service that sends every request elsewhere; with the `Authorization` of each that it got."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Location", f"{target}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_the_token_nowhere(
    container: FakeContainer, api: str, reference: str, file: str, status: int
) -> None:
    with redirecting(status, api) as (base, seen):
        for verb in ("submit", "verify"):
            run = cli(verb, reference, "--api", base, "--token-file", file)
            assert (run.code, run.out) == (6, "")
            assert TOKEN not in run.err
    assert seen == [f"Bearer {TOKEN}", f"Bearer {TOKEN}"]
    assert accesses(container) == []
