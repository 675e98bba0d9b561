"""The command line: verbs, output, exit codes. No decisions are taken here."""
