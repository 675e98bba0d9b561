"""Values and rules. Nothing here reads a file, a socket, a clock or the environment."""
