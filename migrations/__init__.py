"""Schema revisions, run through `app.adapters.db.migrate`."""
