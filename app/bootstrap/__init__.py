"""The composition root: settings become adapters, adapters become services.

`judging` is imported by judging workers and stays light; `container` builds the service, `offline` the commands that
need no database.
"""
