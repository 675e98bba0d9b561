"""The composition root: settings become adapters, adapters become services.

`judging` describes a judge and `judge_parts`, which workers load, makes one; `container` builds the service, `offline`
the commands that need no database.
"""
