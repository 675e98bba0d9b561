"""`aicr evidence demo --once` as an operator runs it: processes of its own, an exit that depends on the verdicts."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path

from app.sandbox.demo.samples import SAMPLES
from app.sandbox.identities import DEV_TWO, UAT_AWS

EXPECTED = json.loads(resources.files("app.sandbox.demo").joinpath("expected.json").read_text("utf-8"))
STATES = {"CONFIRMED", "SINGLE", "CONTESTED", "FAILING", "UNTESTED"}


def demo(directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "app", "demo", "--once", *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def table(out: str) -> dict[str, list[str]]:
    """The verdict table by recipe, columns apart by two spaces or more."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("RECIPE "))
    rows = [re.split(r" {2,}", line) for line in lines[start + 1 : lines.index("", start)]]
    return {row[0]: row[1:] for row in rows}


def test_every_verdict_is_the_expected_one_and_is_printed(tmp_path: Path) -> None:
    run = demo(tmp_path)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    shown = table(run.stdout)
    assert {recipe: row[0] for recipe, row in shown.items()} == {
        recipe: wanted["state"] for recipe, wanted in EXPECTED["recipes"].items()
    }
    assert {row[0] for row in shown.values()} == STATES
    assert any("DRIFTED" in row[-1] for row in shown.values())
    for name, refusal in EXPECTED["refused"].items():
        assert f"refused   {name}: {refusal['step']}: {refusal['code']}: " in run.stdout
    assert re.search(r"stale \([0-9a-f]{12}… vs current [0-9a-f]{12}…\)", run.stdout)
    for word in (
        "copy-of",
        "same-party",
        "component gpu-operator",
        "refs of one workflow are one signer; refs/heads/main speaks for it",
        "allowlist ",
        "answer ",
        "`make demo` does the same and stays up",
    ):
        assert word in run.stdout
    copier, original = DEV_TWO.signer.slug[:8], UAT_AWS.signer.slug[:8]
    assert re.search(rf"copy-of: .*source {copier}….* of source {original}…, which was logged first", run.stdout)
    assert (tmp_path / "var" / "demo" / "trusted_root.json").is_file()


def test_what_the_demo_prints_to_try_works_as_it_is_printed(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": "/usr/bin:/bin"}

    def typed(text: str) -> "subprocess.CompletedProcess[str]":
        """In a fresh shell, as somebody would paste it."""
        words = ["/bin/sh", "-c", text]
        return subprocess.run(words, cwd=root, env=plain, capture_output=True, text=True, timeout=60, check=False)

    command = [sys.executable, "-m", "app", "demo", "--directory", str(tmp_path / "de mo")]
    with subprocess.Popen(
        command, cwd=root, env=plain, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            shown = []
            while not shown or not shown[-1].startswith("or "):
                shown.append(process.stdout.readline())
                assert shown[-1], "".join(shown)
            first = next(n for n, line in enumerate(shown) if line.startswith("try "))
            why, verify, export = (
                shown[first][10:],
                "".join(line[10:] for line in shown[first + 1 : -1]),
                shown[-1][10:],
            )
            asked, judged = typed(why), typed(verify)
            assert (asked.returncode, judged.returncode) == (0, 0), asked.stderr + judged.stderr
            assert asked.stdout.startswith("h100-gke-cos-training: SINGLE")
            assert judged.stdout.startswith("## Evidence verification")
            status = typed(f"{export.partition('   ')[0]}\n{why.partition(' why ')[0]} status")
            assert status.stdout.startswith("RECIPE "), status.stderr
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def test_a_sample_that_is_left_out_is_noticed(tmp_path: Path) -> None:
    run = demo(tmp_path, "--leave-out", "dev-two-profiled")
    assert run.returncode == 1
    profiled = "h100-aks-ubuntu-training-gpustack-operator-managed"
    assert table(run.stdout)[profiled][0] == "SINGLE"
    assert f"not as expected: {profiled}: expected {{'state': 'CONFIRMED'" in run.stderr
    assert run.stderr.count("not as expected") == 1


def test_the_samples_are_as_many_as_the_demo_promises() -> None:
    stored = [sample for sample in SAMPLES if not sample.fault]
    assert len(stored) >= 12
    assert len({sample.recipe for sample in stored}) >= 6
    assert len({sample.signer for sample in stored}) >= 5
    assert {sample.fault for sample in SAMPLES} == {"", "forged", "unsigned"}
    assert len(EXPECTED["recipes"]) == len({sample.recipe for sample in stored})
