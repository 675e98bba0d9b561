"""Tables: what is true (events, texts), what is projected from it and from the archive, and what only passes by.

| kind | tables |
|---|---|
| truth, append-only (triggers hold it) | `events`, `texts` |
| projections, made anew by `rebuild` | `PROJECTIONS` |
| passing | `attempts`, `leases` |
| about the database itself | `meta` |

A record's id is the `seq` of the event that acknowledged it, so a rebuild gives every record its old id.
Digests are bare lower-case hex in columns of their own type; `Words` are a stranger's.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from app.adapters.db.types import Document, Instant, Key, Words

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

ATTEMPT_OUTCOMES = ("accepted", "refused", "no-verdict")
SOURCE_CLASSES = ("first-party", "community", "partner")
LATEST_SCOPES = ("run", "source")


def _hex(column: str, *, optional: bool = False) -> CheckConstraint:
    """A column holds 64 lower-case hex characters, or nothing when `optional`."""
    shape = f"length({column}) = 64 AND ltrim({column}, '0123456789abcdef') = ''"
    return CheckConstraint(f"{column} = '' OR ({shape})" if optional else shape, name=f"{column}_hex")


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """A closed set."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


meta = Table(
    "meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Key, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("data", Document, nullable=False),
    CheckConstraint("length(kind) > 0", name="kind_named"),
)

texts = Table(
    "texts",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    _hex("sha256"),
)

sources = Table(
    "sources",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("issuer", Words, nullable=False),
    Column("identity", Words, nullable=False),
    Column("source_class", String(16), nullable=False),
    Column("allowlisted", Boolean, nullable=False),
    Column("known", Boolean, nullable=False),  # on the list in force or on an earlier one; never taken back
    _hex("id"),
    _one_of("source_class", SOURCE_CLASSES),
)

records = Table(
    "records",
    metadata,
    Column(
        "id",
        Key,
        ForeignKey("events.seq", deferrable=True, initially="DEFERRED"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("digest", String(64), nullable=False),
    Column("source_id", String(64), ForeignKey("sources.id"), nullable=False),
    Column("recipe", Words, nullable=False),
    Column("signature_sha256", String(64), nullable=False),
    Column("log_id", String(64), nullable=False),
    Column("log_index", BigInteger, nullable=False),
    Column("predicate_type", Words, nullable=False),
    Column("recipe_digest", String(64), nullable=False),
    Column("aicr_version", Words, nullable=False),
    Column("aicr_commit", Words, nullable=False),
    Column("k8s_version", Words, nullable=False),
    Column("k8s_minor", Words, nullable=False),
    Column("attested_at", Instant, nullable=False),
    Column("logged_at", Instant, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("party", Words, nullable=False),
    Column("source_owner", Words, nullable=False),
    Column("exit", SmallInteger, nullable=False),
    Column("weightless", Words, nullable=False),
    Column("public", Boolean, nullable=False),
    Column("reference", Words, nullable=False),
    Column("recipe_text", String(64), ForeignKey("texts.sha256")),
    Column("detail", Document, nullable=False),  # what is shown but never searched: see `codec`
    UniqueConstraint("digest", "source_id"),
    UniqueConstraint("log_id", "log_index"),
    UniqueConstraint("signature_sha256"),
    _hex("digest"),
    _hex("signature_sha256"),
    _hex("recipe_digest", optional=True),
    CheckConstraint("exit IN (0, 1)", name="exit_accepted"),
    CheckConstraint("log_index >= 0", name="log_index_natural"),
    CheckConstraint("length(recipe) BETWEEN 1 AND 512", name="recipe_length"),
    Index(None, "recipe", "id"),
    Index(None, "source_id", "id"),
    Index(None, "party", "id"),
)

results = Table(
    "results",
    metadata,
    Column("record_id", Key, ForeignKey("records.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("phase", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("status", Words, nullable=False),
    Column("duration_ms", BigInteger),
    Column("skip_reason", Words, nullable=False),
    Column("runtime_source", Words, nullable=False),
    PrimaryKeyConstraint("record_id", "position"),
)

figures = Table(
    "figures",
    metadata,
    Column("record_id", Key, ForeignKey("records.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("phase", Words, nullable=False),
    Column("check_name", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("value", Double, nullable=False),
    Column("unit", Words, nullable=False),
    PrimaryKeyConstraint("record_id", "position"),
)

run_prints = Table(
    "run_prints",
    metadata,
    Column("value", Words, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("record_id", Key, ForeignKey("records.id"), nullable=False),
    Column("recipe", Words, nullable=False),
    Column("weighs", Boolean, nullable=False),  # of a known source, and not weightless; here and below
    PrimaryKeyConstraint("value", "weighs", "kind", "record_id"),
)

locations = Table(
    "locations",
    metadata,
    Column("digest", String(64), nullable=False),
    Column("reference", Words, nullable=False),
    Column("first_seen", Instant, nullable=False),
    Column("last_seen", Instant, nullable=False),
    Column("public_since", Instant),  # when it was first seen without credentials
    PrimaryKeyConstraint("digest", "reference"),
    _hex("digest"),
)

CROWD = text("scope = 'source' AND NOT weighs")
"""The newest runs of what has no weight; queries say it in these words, so that its index serves them."""

latest = Table(
    "latest",
    metadata,
    Column("recipe", Words, nullable=False),
    Column("weighs", Boolean, nullable=False),
    Column("scope", String(8), nullable=False),  # run: newest of a retention key; source: newest of a column
    Column("source_id", String(64), ForeignKey("sources.id"), nullable=False),
    Column("key", String(32), nullable=False),  # hash of `core.latest.retention_key`; scope source: the column
    Column("record_id", Key, ForeignKey("records.id"), nullable=False),
    Column("attested_at", Instant, nullable=False),
    Column("logged_at", Instant, nullable=False),
    Column("digest", String(64), nullable=False),
    PrimaryKeyConstraint("recipe", "scope", "weighs", "source_id", "key"),
    _one_of("scope", LATEST_SCOPES),
    Index(
        "ix_latest_crowd",
        "recipe",
        "attested_at",
        "logged_at",
        "digest",
        "source_id",
        "key",
        sqlite_where=CROWD,
        postgresql_where=CROWD,
    ),
)

name_claims = Table(
    "name_claims",
    metadata,
    Column("recipe", Words, nullable=False),
    Column("weighs", Boolean, nullable=False),
    Column("key", String(32), nullable=False),  # hash of what `core.latest.earliest_claims` groups by
    Column("record_id", Key, ForeignKey("records.id"), nullable=False),
    Column("logged_at", Instant, nullable=False),
    Column("log_id", String(64), nullable=False),
    Column("log_index", BigInteger, nullable=False),
    Column("digest", String(64), nullable=False),
    PrimaryKeyConstraint("recipe", "weighs", "key"),
)

recipe_sources = Table(
    "recipe_sources",
    metadata,
    Column("recipe", Words, nullable=False),
    Column("source_id", String(64), ForeignKey("sources.id"), nullable=False),
    Column("runs", Integer, nullable=False),
    PrimaryKeyConstraint("recipe", "source_id"),
    Index(None, "source_id"),
)

recipe_state = Table(
    "recipe_state",
    metadata,
    Column("recipe", Words, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("summary", Document, nullable=False),
)

catalogue_versions = Table(
    "catalogue_versions",
    metadata,
    Column("seq", Key, ForeignKey("events.seq"), primary_key=True, autoincrement=False),
    Column("recipe", Words, nullable=False),
    Column("recorded_at", Instant, nullable=False),
    Column("legacy", String(64), nullable=False),
    Column("content_only", String(64), nullable=False),
    Column("retired", Boolean, nullable=False),
    Column("text_sha256", String(64), ForeignKey("texts.sha256")),
    Column("detail", Document, nullable=False),
    _hex("legacy", optional=True),
    _hex("content_only", optional=True),
    CheckConstraint("length(recipe) BETWEEN 1 AND 512", name="recipe_length"),
    Index(None, "recipe", "seq"),
)

allowlist_versions = Table(
    "allowlist_versions",
    metadata,
    Column("seq", Key, ForeignKey("events.seq"), primary_key=True, autoincrement=False),
    Column("since", Instant, nullable=False),
    Column("text_sha256", String(64), ForeignKey("texts.sha256"), nullable=False),
)

retractions = Table(
    "retractions",
    metadata,
    Column("seq", Key, ForeignKey("events.seq"), primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("source_id", String(64), ForeignKey("sources.id"), nullable=False),
    Column("recipe", Words, nullable=False),
    Column("reason", Words, nullable=False),
    Column("since", Instant, nullable=False),
    Column("until", Instant),
    Index(None, "recipe"),
    _hex("digest"),
)

disappearances = Table(
    "disappearances",
    metadata,
    Column("seq", Key, ForeignKey("events.seq"), primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("since", Instant, nullable=False),
    Column("until", Instant),
    Index(None, "digest"),
    _hex("digest"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("key", String(64), nullable=False),
    Column("reference", Words, nullable=False),
    Column("digest", Words, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("step", Words, nullable=False),
    Column("code", Words, nullable=False),
    Column("cause", Document, nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("source", Words, nullable=False),
    Column("recipe", Words, nullable=False),
    UniqueConstraint("key"),
    _one_of("outcome", ATTEMPT_OUTCOMES),
    CheckConstraint("count >= 1", name="count_positive"),
    Index(None, "digest", "id"),
    Index(None, "last_at"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("holder", String(128), nullable=False),
    Column("expires_at", Instant, nullable=False),
    _hex("digest"),
)

PROJECTIONS = (
    results,
    figures,
    run_prints,
    latest,
    name_claims,
    retractions,
    disappearances,
    recipe_sources,
    locations,
    records,
    sources,
    recipe_state,
    catalogue_versions,
    allowlist_versions,
)
"""In an order in which they can be emptied."""
