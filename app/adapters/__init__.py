"""The only input and output. Adapters implement `app.ports` and never import one another."""
