"""A rebuild over twice the bundles against a rebuild over once as many, and whether it says the same as before."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app.bench.figures import Bar, Figure, Outcome
from app.bench.plan import Plan
from app.bench.registries import registry
from app.bench.samples import workbench
from app.bench.services import container
from app.bench.timing import profiled
from app.bootstrap.container import Container
from app.core.refs import OciRef
from app.services.ingest_types import IngestRequest
from app.services.report import RecipeReading
from app.web import presenting

_THREADS = 4


def rebuilding(plan: Plan) -> Outcome:
    """Every bundle is judged again from the archive, so the time is that of judging, one bundle after the other."""
    size, tries = plan.pick(small=60, full=400), plan.pick(small=3, full=3, least=1)
    with workbench() as bench, registry() as source:
        refs = [source.push(bench.sign(number)) for number in range(2 * size)]
        plan.tick()
        with container(bench, Path(bench.root, "service"), registry=source.host) as service:
            service.judge.start()
            _ingest(service, refs[:size])
            once = min(_timed(service) for _ in range(tries))
            _ingest(service, refs[size:])
            before = _answers(service)
            twice = min(_timed(service) for _ in range(tries))
            same = _answers(service) == before
            plan.tick()
            profile = profiled(
                "rebuild of one bundle",
                service.rebuild.rebuild,
                seconds=twice / (2 * size),
                times=1,
                each=2 * size,
            )
    details = {"onceMs": once * 1e3, "twiceMs": twice * 1e3, "bundles": size, "perBundleMs": twice / (2 * size) * 1e3}
    return Outcome(
        (
            Figure(
                "rebuild-linear",
                f"rebuild of {2 * size} bundles against twice that of {size}",
                twice / (2 * once),
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


def _timed(service: Container) -> float:
    started = time.perf_counter()
    service.rebuild.rebuild()
    return time.perf_counter() - started


def _answers(service: Container) -> list[bytes]:
    """What the API says of every recipe, revisions apart: those grow with every rebuild."""
    now = service.clock()
    reading = RecipeReading(store=service.store, clock=lambda: now, allowlist=service.allowlist, rule=service.rule)
    lines = [summary.verdict for summary in service.store.summaries()]
    pages = [presenting.recipe(reading.recipe(str(line["recipe"]))).to_json() for line in lines]
    return [json.dumps(lines, sort_keys=True, default=str).encode(), *pages]
