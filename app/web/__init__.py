"""HTTP: routes, schemas, error envelope, pages. No decisions are taken here."""
