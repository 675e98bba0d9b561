"""A database that holds many bundles: generated runs, written by the code that an ingest and a rebuild write with.

Every recipe has the same signers at the same versions whatever the size of the store, so that its newest runs, and
with them its page, are the same; what grows is the number of recipes and the history behind each newest run.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from app.adapters.db import events
from app.adapters.db.projection import Arrival, add_records, refresh, see_location
from app.adapters.db.session import Database
from app.adapters.db.tables import events as event_rows
from app.core.bundle import LogEntry, PhaseSummary, Run, TestOutcome
from app.core.coordinate import Criteria, coordinate_of, recipe_slug
from app.core.party import party_of
from app.core.refs import Digest
from app.core.statement import RECIPE_EVIDENCE_V3
from app.ports import Classify, Project
from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, STRANGER, UAT_AWS, UAT_GCP

SIGNERS = tuple(identity.signer for identity in (UAT_AWS, UAT_GCP, OCTOCAT, PARTNER, DEV_TWO, STRANGER))
VERSIONS = ("v0.40.0", "v0.41.0", "v0.42.0")
RUNS = len(SIGNERS) * len(VERSIONS)
"""Bundles of each recipe, once each signer has run every version."""
NEWEST_RUNS = (len(SIGNERS) - 1) * len(VERSIONS) + 1
"""Runs that each recipe's verdict looks at, however many are stored: of the stranger, the newest."""

_BATCH = 250
_PHASES = ("deployment", "performance", "conformance")
_SERVICES = ("eks", "gke", "aks", "oke", "lke")
_ACCELERATORS = ("h100", "h200", "b200", "gb200", "a100", "l40s")
_SYSTEMS = ("ubuntu", "cos", "rhel")
_INTENTS = ("training", "inference")
_PLATFORMS = ("", "kubeflow", "dynamo", "nim", "slurm", "ray", "run-ai", "volcano", "kueue", "kserve", "triton", "mpi")


@dataclass(frozen=True, slots=True)
class Shape:
    """How much is stored: `recipes` times `RUNS` times `depth` bundles of `results` rows each."""

    recipes: int
    depth: int
    results: int

    @property
    def bundles(self) -> int:
        """How many bundles that is."""
        return self.recipes * RUNS * self.depth

    @property
    def rows(self) -> int:
        """How many result rows."""
        return self.bundles * self.results


def recipe_criteria(number: int) -> Criteria:
    """The criteria of recipe `number`; each number has its own name."""
    rest, intent = divmod(number, len(_INTENTS))
    rest, system = divmod(rest, len(_SYSTEMS))
    rest, accelerator = divmod(rest, len(_ACCELERATORS))
    rest, service = divmod(rest, len(_SERVICES))
    return Criteria(
        service=_SERVICES[service],
        accelerator=_ACCELERATORS[accelerator],
        os=_SYSTEMS[system],
        intent=_INTENTS[intent],
        platform=_PLATFORMS[rest % len(_PLATFORMS)],
    )


def recipe_name(number: int) -> str:
    """The name of recipe `number`."""
    return recipe_slug(recipe_criteria(number), "")


def generated_run(number: int, shape: Shape, *, now: datetime) -> Run:
    """Bundle `number` of a store of that shape: its recipe, signer, version and age follow from the number."""
    rest, recipe = divmod(number, shape.recipes)
    rest, signer = divmod(rest, len(SIGNERS))
    depth, version = divmod(rest, len(VERSIONS))
    criteria = recipe_criteria(recipe)
    attested = now - timedelta(hours=2 + (shape.depth - depth), minutes=number % 59)
    results = tuple(
        TestOutcome(_PHASES[check % 3], f"check-{check:02d}", "passed", 1000 + number % 977, "", "")
        for check in range(shape.results)
    )
    return Run(
        digest=Digest(_hex("bundle", number)),
        signer=SIGNERS[signer],
        recipe=recipe_slug(criteria, ""),
        criteria=criteria,
        coordinate=coordinate_of(criteria, ""),
        profile="",
        profile_selection="",
        predicate_type=RECIPE_EVIDENCE_V3,
        recipe_digest=_hex("recipe", recipe),
        aicr_version=VERSIONS[version],
        aicr_commit=_hex("commit", version)[:40],
        k8s_version="1.33.5",
        k8s_constraint=">= 1.32.4",
        attested_at=attested,
        logged_at=attested + timedelta(minutes=2),
        received_at=now,
        log=LogEntry("log.bench.example", _hex("log", 0), number, number, "hashedrekord"),
        root="bench",
        root_sha256=_hex("root", 0),
        signature_sha256=_hex("signature", number),
        exit=0,
        phases=tuple(
            PhaseSummary(phase, sum(one.phase == phase for one in results), 0, 0, f"sha256:{_hex(phase, number)}")
            for phase in _PHASES
        ),
        results=results,
        prints=(("ctrf", _hex("ctrf", number)), ("snapshot", _hex("snapshot", number))),
        dimensions=(),
        hardware_matched=True,
    )


def fill(
    database: Database,
    shape: Shape,
    *,
    project: Project,
    classify: Classify,
    tick: Callable[[], None],
    now: datetime | None = None,
) -> None:
    """Store every bundle of `shape`, in batches of one transaction each, then the state of every recipe."""
    at = now or datetime.now(UTC)  # noqa: TID251 - generated evidence is as fresh as the run
    for first in range(0, shape.bundles, _BATCH):
        runs = [generated_run(number, shape, now=at) for number in range(first, min(first + _BATCH, shape.bundles))]
        database.write(partial(_add, database=database, runs=runs, classify=classify), relaxed=True)
        tick()
    for recipe in range(shape.recipes):
        database.write(partial(refresh, recipe=recipe_name(recipe), project=project), relaxed=True)


def _add(connection: Connection, *, database: Database, runs: list[Run], classify: Classify) -> None:
    arrivals = list(_arrivals(database, connection, runs))
    add_records(connection, arrivals, classify=classify, party_of=party_of)
    for arrival in arrivals:
        see_location(
            connection, arrival.run.digest.hex, arrival.reference, arrival.run.received_at, public=arrival.run.public
        )


def _arrivals(database: Database, connection: Connection, runs: list[Run]) -> Iterator[Arrival]:
    """Each run under an event that acknowledges it."""
    first = database.next_seq(connection)
    rows = []
    for seq, run in enumerate(runs, first):
        reference = f"registry.bench.example/aicr/evidence@{run.digest}"
        data = {
            "digest": run.digest.hex,
            "source": run.source_id,
            "signature": run.signature_sha256,
            "reference": reference,
            "public": run.public,
            "pointer": None,
            "state": {},
        }
        rows.append({"seq": seq, "at": run.received_at, "kind": events.RECEIVED, "data": data})
        yield Arrival(seq, run, reference)
    connection.execute(event_rows.insert(), rows)


def _hex(kind: str, number: int) -> str:
    return hashlib.sha256(f"{kind}/{number}".encode()).hexdigest()
