"""Guards of the project itself: what its pages promise, its operating files, its import contracts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from app.cli.parser import build_parser
from app.config import PREFIX, Settings
from tools.cli_pages import verbs
from tools.module_pages import packages

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sys.executable).parent
VERBS = [name for name, _, _ in verbs(build_parser())]
COMPOSE = ROOT / "docker-compose.yml"


def run(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def tracked() -> list[Path]:
    """Every file of the repository that is text, foreign data apart."""
    listed = run("git", "ls-files", "-z", "--cached").stdout.split("\0")
    binary = {".png", ".ico", ".gz", ".tar"}
    paths = [ROOT / name for name in listed if name]
    return [path for path in paths if path.is_file() and path.suffix not in binary]


# --- operating files -----------------------------------------------------------------------------------


def compose(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run(str(SCRIPTS / "docker-compose"), "-f", str(COMPOSE), *words, **environment)


def test_the_compose_file_is_valid_for_compose_itself() -> None:
    assert compose("config", "-q", POSTGRES_PASSWORD="x").returncode == 0
    missing = compose("config", "-q", POSTGRES_PASSWORD="")
    assert missing.returncode != 0
    assert "set POSTGRES_PASSWORD" in missing.stderr


def test_the_composed_services_wait_for_one_another_and_say_when_they_are_well() -> None:
    shown = compose("config", "--format", "json", POSTGRES_PASSWORD="p4ss")
    services = json.loads(shown.stdout)["services"]
    assert set(services) == {"postgres", "migrate", "service", "registry"}
    assert {name for name, service in services.items() if "healthcheck" in service} == {
        "postgres",
        "service",
        "registry",
    }
    assert services["migrate"]["command"] == ["migrate"]
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    waits = {name: need["condition"] for name, need in services["service"]["depends_on"].items()}
    assert waits == {"postgres": "service_healthy", "migrate": "service_completed_successfully"}
    for name in ("migrate", "service"):
        assert services[name]["environment"]["AICR_EVIDENCE_DATABASE_URL"].startswith("postgresql+psycopg://aicr:p4ss@")
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
    for service in services.values():
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1"
    assert services["service"]["stop_grace_period"] == "40s"
    mounts = {mount["target"]: mount for mount in services["service"]["volumes"]}
    assert mounts["/etc/aicr-evidence/allowlist.yaml"]["read_only"] is True


def test_every_composed_variable_is_a_setting() -> None:
    named = set(re.findall(rf"{PREFIX}[A-Z_]+", COMPOSE.read_text() + (ROOT / "Dockerfile").read_text()))
    assert named <= {PREFIX + name.upper() for name in Settings.model_fields}


def test_the_image_passes_hadolint() -> None:
    done = run(str(SCRIPTS / "hadolint"), "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_copies_only_what_is_there() -> None:
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source


def test_the_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"^\.PHONY: (.*)", makefile, re.MULTILINE)[0].split()) == targets
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run", *(ROOT / "docs").glob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(r"(?:^|[`$] ?)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE)
    }
    assert {"demo", "test", "check"} <= named
    assert named <= targets
    assert run("make", "-n", *sorted(targets)).returncode == 0


def test_continuous_integration_runs_every_gate() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert re.findall(r"^make (\w+)", text, re.MULTILINE)[:2] == ["check", "test"]
    assert "set -euo pipefail" in text


# --- code ----------------------------------------------------------------------------------------------


def test_the_import_contracts_hold() -> None:
    done = run(str(SCRIPTS / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        pytest.param("app/core/names.py", "import app.ports", "data flows one way", id="upwards"),
        pytest.param("app/services/flights.py", "import socket", "rules do no I/O", id="io"),
        pytest.param("app/adapters/oci/tar.py", "import sigstore", "only app.adapters.sigstore", id="sigstore"),
        pytest.param(
            "app/adapters/files/watch.py", "import app.adapters.oci", "never import one another", id="adapters"
        ),
    ],
)
def test_a_broken_contract_is_noticed(module: str, line: str, contract: str, tmp_path: Path) -> None:
    """A copy of the package with one wrong import fails under the contracts of this repository."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("app", "migrations"):
        run("cp", "-r", str(ROOT / name), str(copy))
    (copy / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    with (copy / module).open("a") as file:
        file.write(f"\n{line}\n")
    done = subprocess.run(
        [str(SCRIPTS / "lint-imports"), "--no-cache"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert re.search(rf"{re.escape(contract)}.* BROKEN", done.stdout)


def test_dependencies_are_locked_with_hashes() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert '"sigstore==4.5.1"' in pyproject
    for name in ("base.lock", "dev.lock"):
        text = (ROOT / "requirements" / name).read_text()
        pins = re.findall(r"^([A-Za-z0-9._\[\]-]+)==\S+", text, re.MULTILINE)
        assert len(pins) > 40
        assert text.count("--hash=sha256:") >= len(pins)
        assert re.search(r"^sigstore==4\.5\.1", text, re.MULTILINE)


# --- pages ---------------------------------------------------------------------------------------------


def test_the_generated_pages_are_what_the_code_says() -> None:
    done = run(sys.executable, "tools/generate_docs.py", "--check")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_first_screen_of_the_readme_shows_exactly_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    first_screen = text.partition("\n## ")[0]
    assert re.findall(r"^\$ (.*)$", first_screen, re.MULTILINE) == ["make demo DEMO=once", "make test"]
    assert len(first_screen.splitlines()) <= 45
    expected = json.loads((ROOT / "app" / "sandbox" / "demo" / "expected.json").read_text())["recipes"]
    shown = dict(
        re.findall(r"^([a-z0-9-]+) +(CONFIRMED|SINGLE|CONTESTED|FAILING|UNTESTED) ", first_screen, re.MULTILINE)
    )
    assert shown == {name: wanted["state"] for name, wanted in expected.items()}
    assert "[100%]" in first_screen.partition("$ make test\n")[2]


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    documented = re.findall(rf"^\| `({PREFIX}[A-Z_]+)` \|", page, re.MULTILINE)
    assert documented == [PREFIX + name.upper() for name in Settings.model_fields]


def test_every_variable_that_a_page_names_is_a_setting() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {f"{PREFIX}TEST_BUNDLES"}
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        named = set(re.findall(rf"{PREFIX}[A-Z][A-Z_]*[A-Z]", path.read_text()))
        assert named <= known, path


def test_every_verb_is_documented_and_every_named_verb_exists() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert re.findall(r"^## `([a-z -]+)`$", page, re.MULTILINE) == VERBS
    groups = {name.partition(" ")[0] for name in VERBS}
    for path in tracked():
        if path.suffix not in {".py", ".md", ".yaml", ".yml", ".html"} or "tests" in path.parts:
            continue
        for verb in re.findall(r"`(?:aicr evidence|aicr-evidence) ([a-z][a-z-]*)", path.read_text()):
            assert verb in groups, (path.relative_to(ROOT), verb)


def test_every_argument_says_what_it_is_for() -> None:
    for name, parser, summary in verbs(build_parser()):
        assert summary, name
        for action in parser._actions:
            assert action.help, (name, action.dest)
            assert action.nargs == 0 or action.metavar or action.choices, (name, action.dest)


def test_every_verb_has_a_function() -> None:
    for name, parser, _ in verbs(build_parser()):
        module, _, function = parser.get_default("handler").partition(":")
        path = ROOT / (module.replace(".", "/") + ".py")
        assert re.search(rf"^def {function}\(", path.read_text(), re.MULTILINE), name


def test_the_architecture_page_names_modules_that_exist_and_all_of_them() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    by_hand, _, listed = page.partition("## Modules")
    for package, role, modules in packages():
        assert role, package
        assert f"### `{package}`\n" in listed
        for name, sentence in modules:
            assert sentence, f"{package}.{name} has no docstring"
            assert f"| `{name}` | " in listed
    tops = "adapters|bench|bootstrap|cli|core|ports|sandbox|services|web"
    named = set(re.findall(rf"\b((?:{tops})(?:\.[a-z_]+)+)\b", by_hand))
    assert {"services.ingest", "core.corroborate", "adapters.oci.reader", "web.presenting"} <= named
    for dotted in named:
        base = ROOT / "app" / dotted.replace(".", "/")
        assert base.is_dir() or base.with_suffix(".py").is_file(), dotted


@pytest.mark.parametrize(
    "page", sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]), ids=lambda path: path.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


# --- what must not be in it ----------------------------------------------------------------------------


def test_no_machine_leaks_into_the_repository() -> None:
    """No paths of one machine, no package mirrors, no caches."""
    telling = re.compile(r"(?<![\w.])/(?:(?:work|Users|root)/|home/[a-z])|PIP_INDEX|--index-url|--extra-index-url")
    mirror = re.compile(
        r"registry\s*=\s*https?://(?!registry\.npmjs\.org)|\"resolved\": \"https?://(?!registry\.npmjs\.org)"
    )
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        if path != Path(__file__):
            assert not telling.search(text), path
            assert not mirror.search(text), path


def test_sample_people_are_nobody() -> None:
    """No address of a mail provider, and of GitHub's addresses only those of its placeholder people."""
    providers = "gmail|googlemail|outlook|hotmail|live|yahoo|icloud|me|proton|protonmail|gmx|web|nvidia"
    real = re.compile(rf"[\w.+-]+@(?:{providers})\.(?:com|de|ch|me|net|org)\b", re.IGNORECASE)
    github = re.compile(r"(?<![\w.+…-])(?:\d+\+)?([\w-]+)@users\.noreply\.github\.com", re.IGNORECASE)
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not real.search(text), path
        assert {name.lower() for name in github.findall(text)} <= {"octocat", "hubot", "monalisa", "lab"}, path


def test_the_files_that_a_project_has_are_there() -> None:
    for name in (
        "pyproject.toml",
        "allowlist.yaml",
        "evidence/README.md",
        "docker-compose.yml",
        "Dockerfile",
        "Makefile",
        ".ci/run",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "docs/architecture.md",
        "docs/cli.md",
        "docs/operating.md",
        "docs/verification.md",
        "docs/corroboration.md",
    ):
        assert (ROOT / name).is_file(), name
    assert (ROOT / "LICENSE").read_text().lstrip().startswith("Apache License")


def test_the_first_party_list_is_upstreams_four_workflows() -> None:
    document = yaml.safe_load((ROOT / "allowlist.yaml").read_text())
    assert [entry["identityPattern"] for entry in document["firstParty"]] == [
        rf"^https://github\.com/NVIDIA/aicr/\.github/workflows/uat-{cloud}\.yaml@refs/heads/.+$"
        for cloud in ("aws", "gcp", "azure", "kind")
    ]
