"""How long `--help` and `digest` take to start and end, against an interpreter that does nothing."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from app.bench.figures import Bar, Figure, Outcome
from app.bench.plan import Plan
from app.bench.samples import sample_recipe
from app.bench.timing import interleave

_BAR = Bar(8.0)


def start(plan: Plan) -> Outcome:
    """Whole processes, from their start to their end."""
    figures = []
    with TemporaryDirectory(prefix="aicr-bench-") as scratch:
        recipe = Path(scratch, "recipe.yaml")
        recipe.write_bytes(sample_recipe())
        for verb, arguments in (("help", ["--help"]), ("digest", ["digest", "-r", str(recipe)])):
            pairs = interleave(
                _process(["-m", "app", *arguments]),
                _process(["-c", "pass"]),
                rounds=plan.pick(small=15, full=61),
            )
            what = f"start of {'--help' if verb == 'help' else 'digest'} against python -c pass"
            figures.append(Figure(f"start-{verb}", what, pairs.ratio, "x", _BAR, pairs.details(verb, "pass")))
            plan.tick()
    return Outcome(tuple(figures))


def _process(arguments: list[str]) -> Callable[[int], object]:
    command = [sys.executable, *arguments]
    return lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
