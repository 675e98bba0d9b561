"""What a large store costs: reads and ingests beside many bundles, against the same beside few."""

import http.client
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from app.adapters.db.session import Database
from app.bench.figures import Bar, Figure, Outcome, Profile
from app.bench.plan import Plan
from app.bench.registries import registry
from app.bench.samples import Workbench, workbench
from app.bench.services import container, database_url, write_allowlist
from app.bench.stored import NEWEST_RUNS, Shape, fill, recipe_name
from app.bench.timing import interleave, profiled
from app.bootstrap.container import Container
from app.core.errors import StoreError
from app.core.refs import OciRef
from app.sandbox.demo.service import ServiceProcess
from app.services.ingest_types import IngestRequest, Stored
from app.services.report import RecipeReading
from app.web import presenting

_FEW = Shape(recipes=10, depth=6, results=10)
_MANY = {"small": Shape(recipes=60, depth=10, results=10), "full": Shape(recipes=550, depth=10, results=10)}


def growth(plan: Plan) -> Outcome:
    """Two services over two stores; the recipe that is read and the bundles that come in are the same."""
    few, many = _scaled(_FEW, plan), _scaled(_MANY[plan.size], plan)
    with workbench() as bench, registry() as source, ExitStack() as stack:
        places = {"few": bench.root / "few", "many": bench.root / "many"}
        for name, shape in (("few", few), ("many", many)):
            _filled(bench, places[name], shape, source.host, plan)
        reads, profile = _reads(bench, places, (few, many), host=source.host, plan=plan)
        services = {
            name: stack.enter_context(container(bench, place, registry=source.host)) for name, place in places.items()
        }
        rounds = plan.pick(small=40, full=120)
        refs = [source.push(bench.sign(number)) for number in range(rounds + 2)]
        plan.tick()
        pairs = interleave(
            lambda index: _submit(services["many"], refs[index]),
            lambda index: _submit(services["few"], refs[index]),
            rounds=rounds,
            warm=0,
        )
    ingest = Figure(
        "ingest-stored",
        f"ingest with {many.bundles} bundles stored, against {few.bundles}",
        pairs.ratio,
        "x",
        Bar(1.3),
        pairs.details("many", "few") | {"bundlesMany": many.bundles, "bundlesFew": few.bundles},
    )
    return Outcome((*reads, ingest), (profile,))


def _scaled(shape: Shape, plan: Plan) -> Shape:
    if plan.scale >= 1:
        return shape
    return Shape(max(1, int(shape.recipes * plan.scale)), max(1, int(shape.depth * plan.scale)), shape.results)


def _filled(bench: Workbench, place: Path, shape: Shape, host: str, plan: Plan) -> None:
    """A migrated database with the allowlist in force and every bundle of the shape."""
    with container(bench, place, registry=host, processes=1) as service:
        database = Database(database_url(place))
        try:
            fill(
                database,
                shape,
                project=service.allowlist.project,
                classify=service.allowlist.classify,
                tick=plan.tick,
            )
        finally:
            database.close()


def _submit(service: Container, ref: OciRef) -> None:
    result = service.ingest.submit(IngestRequest(ref))
    if not isinstance(result, Stored) or not result.created:
        raise StoreError(f"expected a new sample to be stored, got {result}")


class _Client:
    """One kept connection to a service; the least that a client can cost."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(str(urlsplit(url).netloc), timeout=120)

    def get(self, path: str, tag: str = "") -> tuple[int, str, int]:
        """(status, ETag, bytes of the body)."""
        self._connection.request("GET", path, headers={"If-None-Match": tag} if tag else {})
        answer = self._connection.getresponse()
        body = answer.read()
        return answer.status, answer.getheader("ETag") or "", len(body)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _reads(
    bench: Workbench, places: dict[str, Path], shapes: tuple[Shape, Shape], *, host: str, plan: Plan
) -> tuple[list[Figure], Profile]:
    few, many = shapes
    recipe = f"/recipes/{recipe_name(0)}"
    with ExitStack() as stack:
        clients: dict[str, _Client] = {}
        for name, place in places.items():
            service = stack.enter_context(
                ServiceProcess(
                    place,
                    registry=host,
                    allowlist=write_allowlist(place),
                    trusted_root=bench.trusted_root,
                    settings={"RATE_LIMIT": "0", "VERIFY_PROCESSES": "1"},
                )
            )
            clients[name] = _Client(service.url)
            stack.callback(clients[name].close)
        rounds = plan.pick(small=60, full=300)
        pairs = interleave(
            lambda _: _expect(clients["many"].get(recipe), 200),
            lambda _: _expect(clients["few"].get(recipe), 200),
            rounds=rounds,
            warm=3,
        )
        plan.tick()
        client = clients["many"]
        largest, tag, size = max((_page(client, path) for path in _pages(recipe)), key=lambda page: page[2])
        cached = interleave(
            lambda _: _expect(client.get(largest), 200),
            lambda _: _expect(client.get(largest, tag), 304),
            rounds=rounds,
            warm=3,
        )
    plan.tick()
    p50 = [statistics.median(side) for side in zip(*pairs.wall, strict=True)]
    figures = [
        Figure(
            "read-stored",
            f"GET /recipes/{{recipe}} at p50 with {many.rows} result rows stored, against {few.rows}",
            p50[0] / p50[1],
            "x",
            Bar(1.5),
            pairs.details("many", "few") | {"rowsMany": many.rows, "rowsFew": few.rows, "runsOfRecipe": NEWEST_RUNS},
        ),
        Figure(
            "read-304",
            f"200 against 304 on the largest page, {largest.partition('?')[0]}",
            cached.ratio,
            "x",
            Bar(5.0, at_least=True),
            cached.details("full", "notModified") | {"bytes": size},
        ),
    ]
    return figures, _profile(bench, places["many"], host, pairs.seconds[0])


def _pages(recipe: str) -> tuple[str, ...]:
    """Candidates for the largest page."""
    return ("/recipes?limit=500", recipe, "/evidence?limit=500", "/ui/recipes")


def _page(client: _Client, path: str) -> tuple[str, str, int]:
    status, tag, size = client.get(path)
    if status != 200:
        raise StoreError(f"expected 200 from {path}, got {status}")
    return path, tag, size


def _expect(got: tuple[int, str, int], status: int) -> None:
    if got[0] != status:
        raise StoreError(f"expected {status}, got {got[0]}")


def _profile(bench: Workbench, place: Path, host: str, seconds: float) -> Profile:
    """Where the time of one recipe's page goes, without HTTP."""
    with container(bench, place, registry=host, processes=1) as service:
        reading = RecipeReading(
            store=service.store, clock=service.clock, allowlist=service.allowlist, rule=service.rule
        )
        read: Callable[[], object] = lambda: presenting.recipe(reading.recipe(recipe_name(0))).to_json()  # noqa: E731
        read()
        return profiled("read a recipe", read, seconds=seconds)
