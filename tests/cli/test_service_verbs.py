"""`serve`, `migrate`, `rebuild`, `settings`, `trust show`, `sandbox`, `demo`: what has a database or processes."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli.verbs import start
from app.cli.verbs.serve import listen
from app.config import PREFIX, Settings
from app.core.errors import ServiceError
from app.sandbox.demo import service
from app.sandbox.demo.directory import claimed
from tests.support.endtoend import Run, Signing, cli, signing
from tests.support.postgres import shared_cluster

ROOT = Path(__file__).parents[2]
ALLOWLIST = "schemaVersion: 1.0.0\n"


@pytest.fixture(scope="module")
def sigstore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signing]:
    with signing(tmp_path_factory.mktemp("sigstore")) as running:
        yield running


def environment(directory: Path, root: str, **changes: str) -> dict[str, str]:
    """A sandbox service whose files are below `directory`."""
    (directory / "allowlist.yaml").write_text(ALLOWLIST)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    values = {
        "SANDBOX": "true",
        "DATABASE_URL": f"sqlite:///{directory / 'evidence.db'}",
        "ARCHIVE": str(directory / "archive"),
        "ALLOWLIST": str(directory / "allowlist.yaml"),
        "TRUSTED_ROOT": root,
        "VERIFY_PROCESSES": "1",
        **changes,
    }
    return {**kept, "PYTHONPATH": str(ROOT), **{PREFIX + name: value for name, value in values.items()}}


@contextmanager
def started(words: list[str], says: str, env: dict[str, str], cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A verb that runs until it is ended, in a group of its own; with the line that said that it is ready."""
    command = [sys.executable, "-m", "app", *words]
    with subprocess.Popen(
        command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        seen = []
        try:
            for line in process.stdout:
                seen.append(line)
                if says in line:
                    break
            else:
                raise AssertionError("".join(seen))
            yield process, line
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.stdout.read()
            process.wait(30)


def verb(env: dict[str, str], cwd: Path, *words: str) -> Run:
    """A verb that ends by itself, in this process: a start of Python each time would be most of the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        for name in list(os.environ):
            if name.startswith(PREFIX):
                patch.delenv(name)
        for name, value in env.items():
            if name.startswith(PREFIX):
                patch.setenv(name, value)
        return cli(*words)


def test_what_has_the_database_is_named_to_who_wants_it_too(sigstore: Signing, tmp_path: Path) -> None:
    env = environment(tmp_path, sigstore.trusted_root)
    with started(["serve", "--port", "0"], "serving on http://127.0.0.1:", env, tmp_path) as (process, line):
        url = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert url is not None
        with urllib.request.urlopen(f"{url[0]}/ready", timeout=10) as answer:
            assert json.load(answer)["status"] == "ready"
        for words in (["serve", "--port", "0"], ["migrate"], ["rebuild"], ["allowlist", "activate", "allowlist.yaml"]):
            done = verb(env, tmp_path, *words)
            assert (done.code, done.out) == (2, ""), words
            assert f"in use by serve (pid {process.pid})" in done.err
            assert "hint: " in done.err
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (verb(env, tmp_path, "migrate").code, verb(env, tmp_path, "rebuild").code) == (0, 0)


def test_a_service_that_is_ended_is_not_ready_and_finishes_what_runs(sigstore: Signing, tmp_path: Path) -> None:
    env = environment(tmp_path, sigstore.trusted_root, RATE_LIMIT_CLIENT="1/s burst 2")
    with started(["serve", "--port", "0"], "serving on http://127.0.0.1:", env, tmp_path) as (process, line):
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert found is not None
        at = ("127.0.0.1", int(found[1]))
        running = http.client.HTTPConnection(*at, timeout=30)
        running.putrequest("POST", "/verify")
        for name, value in (("Content-Type", "application/json"), ("Content-Length", "2")):
            running.putheader(name, value)
        running.endheaders(b"{")
        assert [status(at, "POST", "/verify", f"10.0.0.{n}") for n in range(3)] == [415, 429, 429], "no header counts"
        process.send_signal(signal.SIGINT)
        while status(at, "GET", "/ready") != 503:
            time.sleep(0.01)
        assert status(at, "GET", "/health") == 200
        process.send_signal(signal.SIGTERM)
        assert status(at, "GET", "/ready") == 503, "asked again, it waits all the same"
        running.send(b"}")
        assert running.getresponse().status == 400
        running.close()
        assert process.wait(30) == 0
        assert process.stdout is not None
        said = process.stdout.read()
    assert "waiting for 1 running requests" in said
    assert "error" not in said.replace("uvicorn.error", "")


def status(at: tuple[str, int], method: str, path: str, forwarded: str = "") -> int:
    """The status of one request on a connection of its own."""
    connection = http.client.HTTPConnection(*at, timeout=30)
    try:
        connection.request(method, path, headers={"X-Forwarded-For": forwarded} if forwarded else {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_service_that_is_ended_while_it_starts_ends_in_order(sigstore: Signing, tmp_path: Path) -> None:
    env = environment(tmp_path, sigstore.trusted_root)
    with started(["serve", "--port", "0"], "alembic", env, tmp_path) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert "error: " not in process.stdout.read()


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, id="ctrl-c"), pytest.param(signal.SIGTERM, id="term")])
def test_a_whole_group_that_is_ended_while_its_judges_start_ends_in_order(
    number: signal.Signals, sigstore: Signing, tmp_path: Path
) -> None:
    env = environment(tmp_path, sigstore.trusted_root)
    with started(["serve", "--port", "0"], "alembic", env, tmp_path) as (process, _):
        while not any(b"forkserver" in command for command in children(process.pid)):
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, number)
        assert process.wait(30) == 0
        assert process.stdout is not None
        said = process.stdout.read()
    assert "Traceback" not in said
    assert "error: " not in said
    assert "judging worker" not in said


def children(pid: int) -> list[bytes]:
    """The command lines of a process's children, as the kernel has them; of one that ended meanwhile nothing."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            found.append(Path(f"/proc/{child}/cmdline").read_bytes())
    return found


def test_a_service_that_is_ended_before_it_is_imported_never_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[object] = []

    def imported(name: str) -> SimpleNamespace:
        assert name == "app.cli.verbs.serve"
        os.kill(os.getpid(), signal.SIGTERM)
        return SimpleNamespace(serve=lambda *given: served.append(given))

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(start, "import_module", imported)
    run = cli("serve")
    assert (run.code, run.out, run.err, served) == (0, "", "", [])
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.postgres
def test_several_processes_start_together_end_together_and_say_once_what_stops_them(
    sigstore: Signing, tmp_path: Path
) -> None:
    url = shared_cluster().database()
    env = environment(tmp_path, sigstore.trusted_root, DATABASE_URL=url, WORKERS="2")
    refused = subprocess.run(
        [sys.executable, "-m", "app", "serve", "--port", "0"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "a server process can not start: " in refused.stderr
    assert "aicr evidence migrate" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert verb(env, tmp_path, "migrate").code == 0
    with started(["serve", "--port", "0"], "Application startup complete", env, tmp_path) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert "Traceback" not in process.stdout.read()


@pytest.mark.postgres
def test_several_processes_end_when_the_first_one_is_killed(sigstore: Signing, tmp_path: Path) -> None:
    env = environment(tmp_path, sigstore.trusted_root, DATABASE_URL=shared_cluster().database(), WORKERS="2")
    assert verb(env, tmp_path, "migrate").code == 0
    with started(["serve", "--port", "0"], "Application startup complete", env, tmp_path) as (process, _):
        assert process.stdout is not None
        said: list[str] = []
        reading = threading.Thread(target=lambda stream: said.append(stream.read()), args=(process.stdout,))
        process.kill()
        reading.start()
        reading.join(60)  # every process holds the other end
        left = reading.is_alive()
        if left:
            os.killpg(process.pid, signal.SIGKILL)
        reading.join()
        assert not left
    assert said[0].count("the process that started this one has ended") == 2
    assert "Traceback" not in said[0]


def test_a_killed_service_leaves_no_lock(sigstore: Signing, tmp_path: Path) -> None:
    env = environment(tmp_path, sigstore.trusted_root)
    with started(["serve", "--port", "0"], "serving on", env, tmp_path) as (process, _):
        process.kill()
        process.wait(30)
    done = verb(env, tmp_path, "rebuild", "--format", "json")
    assert (done.code, json.loads(done.out)) == (0, {"records": 0, "lost": []})


def test_more_workers_need_a_server_database(tmp_path: Path) -> None:
    done = verb(environment(tmp_path, "public-good", WORKERS="2", SANDBOX="false"), tmp_path, "serve")
    assert (done.code, done.out) == (2, "")
    assert "DATABASE_URL" in done.err


def test_sandbox_and_real_databases_do_not_mix(sigstore: Signing, tmp_path: Path) -> None:
    sandboxed = environment(tmp_path, sigstore.trusted_root)
    assert verb(sandboxed, tmp_path, "migrate").code == 0
    real = environment(tmp_path, "public-good", SANDBOX="false")
    done = verb(real, tmp_path, "serve", "--port", "0")
    assert done.code == 2
    assert "sandbox" in done.err


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        pytest.param({"TRUSTED_ROOT": "missing.json"}, 2, "missing.json", id="no-root"),
        pytest.param({"TRUSTED_ROOT": "public-good"}, 2, "expected only sandbox roots", id="real-root-in-a-sandbox"),
        pytest.param({"CONFIRM_THRESHOLD": "1"}, 2, "CONFIRM_THRESHOLD", id="threshold"),
        pytest.param({"DATABASE_URL": "nonsense"}, 2, "expected a database URL", id="database"),
        pytest.param({"REGISTRY_CREDENTIALS": "allowlist.yaml"}, 2, "REGISTRY_CREDENTIALS", id="credentials"),
        pytest.param(
            {"DATABASE_URL": "sqlite:////proc/none/evidence.db"},
            6,
            "can not open the lock /proc/none/evidence.db.lock beside the database: No such file or directory\n"
            "hint: set AICR_EVIDENCE_DATABASE_URL to a file in a directory that can be written\n",
            id="database-directory",
        ),
        pytest.param(
            {"DATABASE_URL": "postgresql://evidence:secret@127.0.0.1:1/none"},
            6,
            "hint: check that AICR_EVIDENCE_DATABASE_URL names a database that runs and lets this user in",
            id="database-server",
        ),
        pytest.param(
            {"ARCHIVE": "allowlist.yaml"},
            6,
            "the archive can not be used: allowlist.yaml: File exists\n"
            "hint: set AICR_EVIDENCE_ARCHIVE to a directory that can be written\n",
            id="archive-directory",
        ),
        pytest.param({"ALLOWLIST": "missing.yaml"}, 0, "", id="no-allowlist-is-not-fatal-for-migrate"),
    ],
)
def test_a_start_that_can_not_work_says_why(
    changes: dict[str, str], code: int, said: str, sigstore: Signing, tmp_path: Path
) -> None:
    env = environment(tmp_path, sigstore.trusted_root, **changes)
    done = verb(env, tmp_path, "migrate" if not said else "serve", *([] if not said else ["--port", "0"]))
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err
    assert "secret" not in done.err


def test_a_taken_port_is_told(sigstore: Signing, tmp_path: Path) -> None:
    env = environment(tmp_path, sigstore.trusted_root)
    port = sigstore.server.url.rpartition(":")[2]
    done = verb(env, tmp_path, "serve", "--port", port)
    assert done.code == 6
    assert f"can not listen on 127.0.0.1:{port}" in done.err


def test_the_sandbox_prints_what_a_service_needs(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with started(["sandbox", "--directory", "here"], "sample signers", env, tmp_path) as (process, line):
        assert "uat-aws" in line
        assert (tmp_path / "here" / "trusted_root.json").is_file()
        assert (tmp_path / "here" / "signing_config.json").is_file()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


# --- settings ------------------------------------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    return monkeypatch


def test_settings_show_every_name_with_source_and_default(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AICR_EVIDENCE_PORT", "9090")
    run = cli("settings", "--format", "json")
    lines = {line["name"]: line for line in run.json}
    assert set(lines) == {PREFIX + name.upper() for name in Settings.model_fields}
    assert lines["AICR_EVIDENCE_PORT"] == {
        "name": "AICR_EVIDENCE_PORT",
        "value": "9090",
        "source": "environment",
        "default": "8080",
        "meaning": "port to listen on; 0 takes a free one",
        "problem": None,
    }
    assert lines["AICR_EVIDENCE_HOST"]["source"] == "default"
    assert all(line["meaning"] for line in lines.values())
    text = cli("settings")
    assert (text.code, text.err) == (0, "")
    assert re.search(r"^AICR_EVIDENCE_PORT +9090 +environment +8080 +port", text.out, re.MULTILINE)


def test_settings_hide_what_is_secret(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AICR_EVIDENCE_CATALOGUE_TOKEN", "catalogue-secret,other-secret")
    bare.setenv("AICR_EVIDENCE_ADMIN_TOKEN", "admin-secret")
    bare.setenv(
        "AICR_EVIDENCE_DATABASE_URL",
        "postgresql+psycopg://aicr:the@secret@db.example.org/aicr?sslmode=require&sslpassword=secret",
    )
    bare.setenv("AICR_EVIDENCE_API", "http://user:api-secret@127.0.0.1:8080")
    for run in (cli("settings"), cli("settings", "--format", "json")):
        assert run.code == 0
        assert "secret" not in run.out + run.err
        assert "postgresql+psycopg://aicr:***@db.example.org/aicr?sslmode=require&sslpassword=***" in run.out
        assert "(set, hidden)" in run.out


def test_a_variable_that_names_no_setting_is_pointed_out(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AICR_EVIDENCE_ALOWLIST", "x")
    run = cli("settings")
    assert (run.code, run.err) == (0, "warning: AICR_EVIDENCE_ALOWLIST is set and names no setting\n")


def test_settings_that_can_not_be_read_end_a_start_all_at_once(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AICR_EVIDENCE_PORT", "tcp://user:secret@127.0.0.1:80")
    bare.setenv("AICR_EVIDENCE_RATE_LIMIT", "fast")
    run = cli("serve")
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "error: settings can not be read: AICR_EVIDENCE_PORT: expected a whole number from 0 to 65535, got "
        "'tcp://user:***@127.0.0.1:80' (correct it or unset it: the default is 8080); AICR_EVIDENCE_RATE_LIMIT: "
        "expected a rate such as '100/s burst 200', or 0, got 'fast' (correct it or unset it: the default is "
        "100/s burst 200)\n"
        "hint: `aicr evidence settings` lists every name and default, and marks what is bad\n"
    )


def test_settings_are_listed_with_the_bad_ones_marked(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AICR_EVIDENCE_PORT", "eighty")
    bare.setenv("AICR_EVIDENCE_WORKERS", "2")
    bare.setenv("AICR_EVIDENCE_LOG_LEVEL", "debug")
    run = cli("settings")
    assert run.code == 2
    assert len(run.out.splitlines()) == 1 + len(Settings.model_fields)
    assert re.search(r"^AICR_EVIDENCE_PORT +\(bad\) +environment +8080 +port", run.out, re.MULTILINE)
    assert re.search(r"^AICR_EVIDENCE_WORKERS +\(bad\) +environment +1 +server", run.out, re.MULTILINE)
    assert re.search(r"^AICR_EVIDENCE_LOG_LEVEL +debug +environment", run.out, re.MULTILINE)
    assert run.err == (
        "error: AICR_EVIDENCE_PORT: expected a whole number from 0 to 65535, got 'eighty' "
        "(correct it or unset it: the default is 8080)\n"
        "error: AICR_EVIDENCE_WORKERS: expected 1 while AICR_EVIDENCE_DATABASE_URL is an SQLite file, got 2: "
        "more than one needs a server database, postgresql+psycopg://... (correct it or unset it: the default is 1)\n"
    )
    assert "eighty" not in run.out
    marked = {line["name"]: line["problem"] for line in cli("settings", "--format", "json").json if line["problem"]}
    assert sorted(marked) == ["AICR_EVIDENCE_PORT", "AICR_EVIDENCE_WORKERS"]


def test_a_bad_option_is_told_apart_from_its_setting(bare: pytest.MonkeyPatch) -> None:
    run = cli("serve", "--port", "70000")
    assert run.code == 2
    assert (
        "the option for AICR_EVIDENCE_PORT: expected a whole number from 0 to 65535, got 70000 "
        "(give another value, or leave the option out)"
    ) in run.err


@pytest.mark.parametrize(
    ("host", "said"),
    [
        pytest.param("a..b", "AICR_EVIDENCE_HOST: expected an address of this machine, got 'a..b'", id="no-name"),
        pytest.param("127.0.0.1:80", "AICR_EVIDENCE_HOST: expected an address of this machine", id="with-port"),
        pytest.param("192.0.2.1", "can not listen on 192.0.2.1:0: Cannot assign requested address", id="elsewhere"),
    ],
)
def test_a_host_that_is_not_here_is_named(host: str, said: str) -> None:
    with pytest.raises(ServiceError) as caught:
        listen(Settings(host=host, port=0))
    assert caught.value.message.startswith(said)
    assert "PORT" not in (caught.value.hint or "")


def test_trust_show_names_roots_logs_and_their_times(bare: pytest.MonkeyPatch, sigstore: Signing) -> None:
    shown = cli("trust", "show", "--format", "json").json
    assert [root["name"] for root in shown] == ["public-good"]
    assert "rekor.sigstore.dev" in json.dumps(shown)
    text = cli("trust", "show", "--trusted-root", sigstore.trusted_root)
    assert (text.code, text.out.startswith("name: ")) == (0, True)
    assert "rekor.sigstore.dev" not in text.out


def names(directory: Path) -> list[str]:
    """What a directory holds."""
    return sorted(each.name for each in directory.iterdir())


def test_a_demo_makes_its_own_directory_anew_and_takes_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    earlier = tmp_path / "earlier"
    with claimed(Path("earlier")) as made:
        assert (made, names(made)) == (earlier, [".aicr-demo"])
        (made / "archive" / "blobs").mkdir(parents=True)
        (made / "evidence.db").write_text("x")
        (made / "link").symlink_to(tmp_path)
    with claimed(Path("other/../earlier")) as made:
        assert names(made) == [".aicr-demo"]
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "thesis.txt").write_text("years of work")
    (tmp_path / "file").touch()
    for words, said in {
        "kept": "an empty directory or one of an earlier demo (with .aicr-demo), got kept with other files",
        ".": "an empty directory or one of an earlier demo (with .aicr-demo), got . with other files",
        "/": "expected a directory for the demo's files, got /",
        "file": "expected a directory for the demo's files, got file",
        "file/below": "file/below can not be written: ",
        "/proc/self/demo": "/proc/self/demo can not be written: ",
    }.items():
        run = cli("demo", "--once", "--directory", words)
        assert (run.code, run.out) == (2, ""), words
        assert said in run.err
        assert "hint: name a" in run.err
    assert (kept / "thesis.txt").read_text() == "years of work"
    assert names(tmp_path) == ["earlier", "earlier.lock", "file", "kept"]


def test_a_demo_that_is_interrupted_while_its_service_starts_leaves_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def wait(self, _seconds: float) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(service, "threading", SimpleNamespace(Event=Interrupted))
    starting = service.ServiceProcess(
        tmp_path, registry="127.0.0.1:1", allowlist=tmp_path / "none.yaml", trusted_root=tmp_path / "none.json"
    )
    with pytest.raises(KeyboardInterrupt), starting:
        raise AssertionError("it can not have started yet")
    with pytest.raises(ProcessLookupError):
        os.kill(starting.pid, 0)


def test_a_sandbox_port_that_is_taken_or_none_is_told(sigstore: Signing, tmp_path: Path) -> None:
    port = sigstore.server.url.rpartition(":")[2]
    for option in ("--registry-port", "--sigstore-port"):
        taken = cli("sandbox", "--directory", str(tmp_path), option, port)
        assert (taken.code, taken.out) == (6, "")
        assert f"can not listen on 127.0.0.1:{port}: Address already in use" in taken.err
        wrong = cli("sandbox", "--directory", str(tmp_path), option, "65536")
        assert (wrong.code, wrong.out) == (2, "")
        assert f"{option}: expected a port from 0 to 65535, got '65536'" in wrong.err


def test_two_demos_do_not_share_a_directory(tmp_path: Path) -> None:
    with claimed(tmp_path / "demo"):
        run = cli("demo", "--once", "--directory", str(tmp_path / "demo"))
        assert (run.code, run.out) == (2, "")
        assert "another demo runs in" in run.err
    unknown = cli("demo", "--once", "--directory", str(tmp_path / "demo"), "--leave-out", "nobody")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no sample is named 'nobody'" in unknown.err
