"""Routes, one module a resource: parse, ask one service, return a schema."""
