"""`aicr evidence demo --once` as an operator runs it: processes of its own, an exit that depends on the verdicts."""

import json
import os
import re
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
