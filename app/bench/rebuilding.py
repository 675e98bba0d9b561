"""A rebuild over twice the bundles against a rebuild over once as many, and whether it says the same as before."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from app.bench.figures import Bar, Figure, Outcome
from app.bench.plan import Plan
from app.bench.registries import registry
from app.bench.samples import workbench
from app.bench.services import container
from app.bench.timing import interleave, profiled
from app.bootstrap.container import Container
from app.core.refs import OciRef
from app.services.ingest_types import IngestRequest
from app.services.report import RecipeReading
from app.web import presenting

_THREADS = 4


def rebuilding(plan: Plan) -> Outcome:
    """Every bundle is judged again from the archive, so the time is that of judging, one bundle after the other."""
    size = plan.pick(small=60, full=400)
    with ExitStack() as stack:
        bench, source = stack.enter_context(workbench()), stack.enter_context(registry())
        refs = [source.push(bench.sign(number)) for number in range(2 * size)]
        plan.tick()
        twice, once = (
            stack.enter_context(container(bench, Path(bench.root, name), registry=source.host, processes=1))
            for name in ("twice", "once")
        )
        _ingest(twice, refs)
        _ingest(once, refs[:size])
        before = _answers(twice)
        pairs = interleave(
            lambda _: twice.rebuild.rebuild(), lambda _: once.rebuild.rebuild(), rounds=plan.pick(small=5, full=5)
        )
        same = _answers(twice) == before
        plan.tick()
        each = pairs.seconds[0] / (2 * size)
        profile = profiled("rebuild of one bundle", twice.rebuild.rebuild, seconds=each, times=1, each=2 * size)
    details = pairs.details("twice", "once") | {"bundles": size, "perBundleMs": each * 1e3}
    return Outcome(
        (
            Figure(
                "rebuild-linear",
                f"rebuild of {2 * size} bundles against twice that of {size}",
                pairs.ratio / 2,
                "x",
                Bar(1.2),
                details,
                "the bar on linear is ours: service 7 gives no number",
            ),
            Figure(
                "rebuild-same",
                "answers after a rebuild equal those before (1 is yes)",
                float(same),
                "",
                Bar(1, at_least=True),
            ),
        ),
        (profile,),
    )


def _ingest(service: Container, refs: Sequence[OciRef]) -> None:
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(lambda ref: service.ingest.submit(IngestRequest(ref)), refs))


def _answers(service: Container) -> list[bytes]:
    """What the API says of every recipe, revisions apart: those grow with every rebuild."""
    now = service.clock()
    reading = RecipeReading(store=service.store, clock=lambda: now, allowlist=service.allowlist, rule=service.rule)
    lines = [summary.verdict for summary in service.store.summaries()]
    pages = [presenting.recipe(reading.recipe(str(line["recipe"]))).to_json() for line in lines]
    return [json.dumps(lines, sort_keys=True, default=str).encode(), *pages]
