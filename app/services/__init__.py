"""Use cases, one module each; they speak to the world through `app.ports` only."""
