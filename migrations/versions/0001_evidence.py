"""Evidence, results, projections, the event table.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql")
_INSTANT = sa.DateTime(timezone=True)
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_CROWD = sa.text("scope = 'source' AND NOT weighs")

APPEND_ONLY = ("events", "texts")


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "attempts",
        sa.Column("id", _KEY, autoincrement=True, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("cause", _JSON, nullable=False),
        sa.Column("first_at", _INSTANT, nullable=False),
        sa.Column("last_at", _INSTANT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.CheckConstraint("outcome IN ('accepted', 'refused', 'no-verdict')", name=op.f("ck_attempts_outcome_known")),
        sa.CheckConstraint("count >= 1", name=op.f("ck_attempts_count_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("key", name=op.f("uq_attempts_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_attempts_digest_id"), "attempts", ["digest", "id"], unique=False)
    op.create_index(op.f("ix_attempts_last_at"), "attempts", ["last_at"], unique=False)
    op.create_table(
        "events",
        sa.Column("seq", _KEY, autoincrement=True, nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("data", _JSON, nullable=False),
        sa.CheckConstraint("length(kind) > 0", name=op.f("ck_events_kind_named")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
    )
    op.create_table(
        "leases",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=128), nullable=False),
        sa.Column("expires_at", _INSTANT, nullable=False),
        sa.CheckConstraint(
            "length(digest) = 64 AND ltrim(digest, '0123456789abcdef') = ''", name=op.f("ck_leases_digest_hex")
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_leases")),
    )
    op.create_table(
        "locations",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("first_seen", _INSTANT, nullable=False),
        sa.Column("last_seen", _INSTANT, nullable=False),
        sa.Column("public_since", _INSTANT, nullable=True),
        sa.CheckConstraint(
            "length(digest) = 64 AND ltrim(digest, '0123456789abcdef') = ''", name=op.f("ck_locations_digest_hex")
        ),
        sa.PrimaryKeyConstraint("digest", "reference", name=op.f("pk_locations")),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "recipe_state",
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("summary", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("recipe", name=op.f("pk_recipe_state")),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("source_class", sa.String(length=16), nullable=False),
        sa.Column("allowlisted", sa.Boolean(), nullable=False),
        sa.Column("known", sa.Boolean(), nullable=False),
        sa.CheckConstraint("length(id) = 64 AND ltrim(id, '0123456789abcdef') = ''", name=op.f("ck_sources_id_hex")),
        sa.CheckConstraint(
            "source_class IN ('first-party', 'community', 'partner')", name=op.f("ck_sources_source_class_known")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
    )
    op.create_table(
        "texts",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "length(sha256) = 64 AND ltrim(sha256, '0123456789abcdef') = ''", name=op.f("ck_texts_sha256_hex")
        ),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_texts")),
    )
    op.create_table(
        "allowlist_versions",
        sa.Column("seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("text_sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["seq"], ["events.seq"], name=op.f("fk_allowlist_versions_seq_events")),
        sa.ForeignKeyConstraint(
            ["text_sha256"], ["texts.sha256"], name=op.f("fk_allowlist_versions_text_sha256_texts")
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_allowlist_versions")),
    )
    op.create_table(
        "catalogue_versions",
        sa.Column("seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("recorded_at", _INSTANT, nullable=False),
        sa.Column("legacy", sa.String(length=64), nullable=False),
        sa.Column("content_only", sa.String(length=64), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("text_sha256", sa.String(length=64), nullable=True),
        sa.Column("detail", _JSON, nullable=False),
        sa.CheckConstraint(
            "content_only = '' OR (length(content_only) = 64 AND ltrim(content_only, '0123456789abcdef') = '')",
            name=op.f("ck_catalogue_versions_content_only_hex"),
        ),
        sa.CheckConstraint(
            "legacy = '' OR (length(legacy) = 64 AND ltrim(legacy, '0123456789abcdef') = '')",
            name=op.f("ck_catalogue_versions_legacy_hex"),
        ),
        sa.CheckConstraint("length(recipe) BETWEEN 1 AND 512", name=op.f("ck_catalogue_versions_recipe_length")),
        sa.ForeignKeyConstraint(["seq"], ["events.seq"], name=op.f("fk_catalogue_versions_seq_events")),
        sa.ForeignKeyConstraint(
            ["text_sha256"], ["texts.sha256"], name=op.f("fk_catalogue_versions_text_sha256_texts")
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_catalogue_versions")),
    )
    op.create_index(op.f("ix_catalogue_versions_recipe_seq"), "catalogue_versions", ["recipe", "seq"], unique=False)
    op.create_table(
        "disappearances",
        sa.Column("seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("until", _INSTANT, nullable=True),
        sa.CheckConstraint(
            "length(digest) = 64 AND ltrim(digest, '0123456789abcdef') = ''", name=op.f("ck_disappearances_digest_hex")
        ),
        sa.ForeignKeyConstraint(["seq"], ["events.seq"], name=op.f("fk_disappearances_seq_events")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_disappearances")),
    )
    op.create_index(op.f("ix_disappearances_digest"), "disappearances", ["digest"], unique=False)
    op.create_table(
        "recipe_sources",
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_recipe_sources_source_id_sources")),
        sa.PrimaryKeyConstraint("recipe", "source_id", name=op.f("pk_recipe_sources")),
    )
    op.create_index(op.f("ix_recipe_sources_source_id"), "recipe_sources", ["source_id"], unique=False)
    op.create_table(
        "records",
        sa.Column("id", _KEY, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("signature_sha256", sa.String(length=64), nullable=False),
        sa.Column("log_id", sa.String(length=64), nullable=False),
        sa.Column("log_index", sa.BigInteger(), nullable=False),
        sa.Column("predicate_type", sa.Text(), nullable=False),
        sa.Column("recipe_digest", sa.String(length=64), nullable=False),
        sa.Column("aicr_version", sa.Text(), nullable=False),
        sa.Column("aicr_commit", sa.Text(), nullable=False),
        sa.Column("k8s_version", sa.Text(), nullable=False),
        sa.Column("k8s_minor", sa.Text(), nullable=False),
        sa.Column("attested_at", _INSTANT, nullable=False),
        sa.Column("logged_at", _INSTANT, nullable=False),
        sa.Column("received_at", _INSTANT, nullable=False),
        sa.Column("party", sa.Text(), nullable=False),
        sa.Column("source_owner", sa.Text(), nullable=False),
        sa.Column("exit", sa.SmallInteger(), nullable=False),
        sa.Column("weightless", sa.Text(), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("recipe_text", sa.String(length=64), nullable=True),
        sa.Column("detail", _JSON, nullable=False),
        sa.CheckConstraint(
            "length(digest) = 64 AND ltrim(digest, '0123456789abcdef') = ''", name=op.f("ck_records_digest_hex")
        ),
        sa.CheckConstraint(
            "length(signature_sha256) = 64 AND ltrim(signature_sha256, '0123456789abcdef') = ''",
            name=op.f("ck_records_signature_sha256_hex"),
        ),
        sa.CheckConstraint(
            "recipe_digest = '' OR (length(recipe_digest) = 64 AND ltrim(recipe_digest, '0123456789abcdef') = '')",
            name=op.f("ck_records_recipe_digest_hex"),
        ),
        sa.CheckConstraint("exit IN (0, 1)", name=op.f("ck_records_exit_accepted")),
        sa.CheckConstraint("length(recipe) BETWEEN 1 AND 512", name=op.f("ck_records_recipe_length")),
        sa.CheckConstraint("log_index >= 0", name=op.f("ck_records_log_index_natural")),
        sa.ForeignKeyConstraint(
            ["id"], ["events.seq"], name=op.f("fk_records_id_events"), initially="DEFERRED", deferrable=True
        ),
        sa.ForeignKeyConstraint(["recipe_text"], ["texts.sha256"], name=op.f("fk_records_recipe_text_texts")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_records_source_id_sources")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_records")),
        sa.UniqueConstraint("digest", "source_id", name=op.f("uq_records_digest_source_id")),
        sa.UniqueConstraint("log_id", "log_index", name=op.f("uq_records_log_id_log_index")),
        sa.UniqueConstraint("signature_sha256", name=op.f("uq_records_signature_sha256")),
    )
    op.create_index(op.f("ix_records_party_id"), "records", ["party", "id"], unique=False)
    op.create_index(op.f("ix_records_recipe_id"), "records", ["recipe", "id"], unique=False)
    op.create_index(op.f("ix_records_source_id_id"), "records", ["source_id", "id"], unique=False)
    op.create_table(
        "retractions",
        sa.Column("seq", _KEY, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("until", _INSTANT, nullable=True),
        sa.CheckConstraint(
            "length(digest) = 64 AND ltrim(digest, '0123456789abcdef') = ''", name=op.f("ck_retractions_digest_hex")
        ),
        sa.ForeignKeyConstraint(["seq"], ["events.seq"], name=op.f("fk_retractions_seq_events")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_retractions_source_id_sources")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_retractions")),
    )
    op.create_index(op.f("ix_retractions_recipe"), "retractions", ["recipe"], unique=False)
    op.create_table(
        "latest",
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("weighs", sa.Boolean(), nullable=False),
        sa.Column("scope", sa.String(length=8), nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("record_id", _KEY, nullable=False),
        sa.Column("attested_at", _INSTANT, nullable=False),
        sa.Column("logged_at", _INSTANT, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.CheckConstraint("scope IN ('run', 'source')", name=op.f("ck_latest_scope_known")),
        sa.ForeignKeyConstraint(["record_id"], ["records.id"], name=op.f("fk_latest_record_id_records")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_latest_source_id_sources")),
        sa.PrimaryKeyConstraint("recipe", "scope", "weighs", "source_id", "key", name=op.f("pk_latest")),
    )
    op.create_index(
        "ix_latest_crowd",
        "latest",
        ["recipe", "attested_at", "logged_at", "digest", "source_id", "key"],
        unique=False,
        sqlite_where=_CROWD,
        postgresql_where=_CROWD,
    )
    op.create_table(
        "name_claims",
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("weighs", sa.Boolean(), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("record_id", _KEY, nullable=False),
        sa.Column("logged_at", _INSTANT, nullable=False),
        sa.Column("log_id", sa.String(length=64), nullable=False),
        sa.Column("log_index", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["record_id"], ["records.id"], name=op.f("fk_name_claims_record_id_records")),
        sa.PrimaryKeyConstraint("recipe", "weighs", "key", name=op.f("pk_name_claims")),
    )
    op.create_table(
        "results",
        sa.Column("record_id", _KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("skip_reason", sa.Text(), nullable=False),
        sa.Column("runtime_source", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["record_id"], ["records.id"], name=op.f("fk_results_record_id_records")),
        sa.PrimaryKeyConstraint("record_id", "position", name=op.f("pk_results")),
    )
    op.create_table(
        "figures",
        sa.Column("record_id", _KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("check_name", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["record_id"], ["records.id"], name=op.f("fk_figures_record_id_records")),
        sa.PrimaryKeyConstraint("record_id", "position", name=op.f("pk_figures")),
    )
    op.create_table(
        "run_prints",
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("record_id", _KEY, nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("weighs", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["record_id"], ["records.id"], name=op.f("fk_run_prints_record_id_records")),
        sa.PrimaryKeyConstraint("value", "weighs", "kind", "record_id", name=op.f("pk_run_prints")),
    )
    for table in APPEND_ONLY:
        _forbid_change(table)


def _forbid_change(table: str) -> None:
    """Rows of `table` can be added and never altered or removed: what is true is not edited."""
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$BEGIN RAISE EXCEPTION '{table} is append-only'; END$$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_append_only()"
    )
