"""The stores that one contract suite runs over, each empty, and the two pure functions that it hands them."""

import functools
import hashlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.adapters.db import migrate
from app.adapters.db.session import Database
from app.adapters.db.store import SqlEvidenceStore
from app.adapters.db.tables import PROJECTIONS
from app.core.allowlist import Allowlist, on_any
from app.core.bundle import Run
from app.core.corroborate import corroborate
from app.core.verdict import ConfirmRule, RecipeInputs, RecipeVerdict
from app.ports import AllowlistVersion, EvidenceStore, Listing
from tests.support.memory_store import MemoryStore
from tests.support.postgres import shared_cluster
from tests.support.stored_runs import DEV_ONE, OCTOCAT, at

SQL_KINDS = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
KINDS = ("memory", *SQL_KINDS)
NOW = at(1000)


class Rules:
    """An allowlist, a time and the settings that weigh, bound into `project` and `classify`."""

    def __init__(
        self, text: bytes, now: datetime = NOW, rule: ConfirmRule | None = None, earlier: "Sequence[Rules]" = ()
    ) -> None:
        self.text = text
        self.allowlist = Allowlist.load(text)
        self.now = now
        self.rule = rule or ConfirmRule()
        self.earlier = tuple(each.allowlist for each in earlier)

    def project(self, inputs: RecipeInputs) -> RecipeVerdict:
        return corroborate(inputs, allowlist=self.allowlist, rule=self.rule, now=self.now, earlier=self.earlier)

    def classify(self, run: Run) -> Listing:
        signer = run.signer
        found = self.allowlist.classify(signer.issuer, signer.identity)
        return Listing(found.source_class.value, found.allowlisted, self.knows(signer.issuer, signer.identity))

    def knows(self, issuer: str, identity: str) -> bool:
        return on_any([self.allowlist, *self.earlier], issuer, identity)

    def version(self, since: datetime) -> AllowlistVersion:
        return AllowlistVersion(hashlib.sha256(self.text).hexdigest(), since, self.text)


def allowlist_text(*community: object) -> bytes:
    """A list with the sample workflow as first party and these signers as community."""
    lines = ["schemaVersion: 1.0.0", "firstParty:", "  - label: acme-attest"]
    lines.append("    issuer: https://token.actions.githubusercontent.com")
    pattern = r"^https://github\.com/acme-lab/aicr-attest/\.github/workflows/attest\.yaml@refs/heads/.+$"
    lines.append(f"    identityPattern: {pattern}")
    if community:
        lines.append("community:")
    for signer in community:
        lines += [f"  - issuer: {signer.issuer}", f"    source: '{signer.slug}'"]  # type: ignore[attr-defined]
    return "\n".join(lines).encode() + b"\n"


RULES = Rules(allowlist_text(OCTOCAT, DEV_ONE))
"""The sample workflow, octocat and dev-one count; everybody else is reported."""


def empty_url(kind: str, directory: Path) -> str:
    """A database without any table."""
    return shared_cluster().database() if kind == "postgres" else f"sqlite:///{directory / f'{next(_numbers)}.db'}"


def migrated_url(kind: str, directory: Path) -> str:
    """A database at head: a copy of one that the revisions made once for this test run."""
    if kind == "postgres":
        return shared_cluster().database(_postgres_template())
    path = directory / f"{next(_numbers)}.db"
    path.write_bytes(_sqlite_template())
    return f"sqlite:///{path}"


@contextmanager
def open_database(kind: str, directory: Path) -> Iterator[Database]:
    """A migrated, empty database."""
    database = Database(migrated_url(kind, directory))
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_store(
    kind: str, directory: Path, failpoint: Callable[[str], None] = lambda _: None
) -> Iterator[EvidenceStore]:
    """An empty store of a kind of `KINDS`."""
    if kind == "memory":
        yield MemoryStore(failpoint=failpoint)
        return
    with open_database(kind, directory) as database:
        yield SqlEvidenceStore(database, failpoint=failpoint)


def dump(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every projection, sorted; without revisions, which only grow."""
    with database.read() as connection:
        return {
            table.name: sorted(
                (tuple(row) for row in connection.execute(sa.select(*(c for c in table.c if c.name != "revision")))),
                key=repr,
            )
            for table in PROJECTIONS
        }


@functools.cache
def _postgres_template() -> str:
    url = shared_cluster().database()
    _migrate(url)
    return url


@functools.cache
def _sqlite_template() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "template.db"
        _migrate(f"sqlite:///{path}")
        return path.read_bytes()


def _migrate(url: str) -> None:
    database = Database(url)
    migrate.upgrade(database, sandbox=False)
    database.close()


_numbers = itertools.count(1)
