"""Which settings a command can not go on without: those are looked at before it begins, all at once.

Any other setting that can not work is told only to who reads it: one that `serve` alone needs stops nobody else.
"""

from app.config.settings import Settings

STORE = frozenset({"database_url", "sandbox"})
"""What `migrate` reads."""

_CLIENTS = frozenset({"api", "api_token", "pointers"})
"""What only a command reads that asks a service or works on a tree."""

SERVING = frozenset(Settings.model_fields) - _CLIENTS
"""What `serve` reads."""

KEEPING = SERVING - {
    "admin_token",
    "catalogue_token",
    "data_mask_identities",
    "host",
    "max_body_bytes",
    "port",
    "rate_limit",
    "rate_limit_client",
    "shutdown_timeout_seconds",
    "trusted_proxies",
    "workers",
}
"""What `rebuild` reads: a service without its HTTP."""

WEIGHING = STORE | {"confirm_by", "confirm_threshold", "aged_after_days"}
"""What `allowlist diff` and `allowlist activate` read: verdicts over what is stored."""

JUDGING = frozenset(
    {
        "max_blob_bytes",
        "max_depth",
        "max_files",
        "max_manifest_bytes",
        "max_path_bytes",
        "max_referrers",
        "max_signature_bytes",
        "max_unpack_ratio",
        "max_unpacked_bytes",
        "plain_http_registries",
        "private_registries",
        "pull_timeout_seconds",
        "registry_credentials",
        "token_realms",
        "trusted_root",
    }
)
"""What `verify` reads to judge here."""
