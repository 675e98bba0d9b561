"""Rows, maintained projections and the append-only event table, on SQLite or PostgreSQL (service 6).

`store.SqlEvidenceStore` is the port's implementation; `session.Database` owns connections and transactions;
`migrate` brings a database up to date. The signed bytes themselves are not here but in the archive.
"""
