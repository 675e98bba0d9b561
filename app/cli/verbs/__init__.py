"""One module a verb or family of verbs; each function takes the parsed options and returns the exit code."""
