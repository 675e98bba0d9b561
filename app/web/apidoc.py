"""`docs/api.md`, made from the contract and the table of errors; `tools/generate_docs.py` writes it."""

from app.web.openapi import Reference, RouteLine

_HEAD = """\
# HTTP API

<!-- Made by tools/generate_docs.py from the routes, app/web/operations.py and app/web/problems.py; change those. -->

The contract is `GET /openapi.json` (OpenAPI 3.1); a running service draws it at `/docs` without scripts or third
parties. `tests/assets/openapi.json` is its committed snapshot: keys are added, never renamed, and a test fails on any
difference.

## Conventions

- JSON with camelCase keys; times in UTC with `Z`; digests as `sha256:<64 hex>`. Every key is always there, `null` or
  empty when nothing is known.
- Lists are `{"items": [...], "next": "<cursor>" | null}`; pass `next` back as `cursor`. `limit` is at most 500. A
  cursor means a position among the rows, so rows that come or go meanwhile move nothing. A page of a sparse filter can
  be short or empty and still have a `next`.
- `/predicate`, `/bundle`, `/files` and `/archive` are named by digest and immutable. Everything computed is `no-cache`
  with an `ETag` that changes exactly when the content does, ages included: ask again with `If-None-Match` and get 304.
- `HEAD` works wherever `GET` does. A trailing slash is another path.
- A query parameter that a route does not know, or that is there twice, is 400, so that a misspelt `dryRun` stores
  nothing; `details.expected` names those it knows. Reads without parameters, probes, pages and files ignore what they
  do not know. An empty one (`dryRun=`) is as if it was not there on every route; a known name without `=` is 400.
- Times are written as RFC 3339 with `Z` or an offset, never as numbers.
- `X-Request-Id` is echoed when it is a UUID and made otherwise; it is in every answer, in errors and in the log.
- `X-RateLimit-Limit`, `-Remaining` and `-Reset` (unix seconds) stand in every answer but those of `/health`, `/ready`
  and `/metrics`, of whichever bucket is tighter: all requests of the process, or the `POST`s of one client.
- `X-API-Version` is `v1`, whatever `Accept` asks for.
- Addresses are masked (`o…t@example.org`), or the label of the allowlist stands instead. Only `/predicate`,
  `/bundle`, `/files` and `/archive` are exact, since they are the signed bytes: an address in them is shown as it is.
- `PUT` of the catalogue needs `Authorization: Bearer <token>` with the token of `AICR_EVIDENCE_CATALOGUE_TOKEN`; while
  that is unset, the route answers 403. The allowlist has no HTTP write.
- `POST` needs no token. With one (the catalogue's or the administrators') a bundle is pulled with the logins of
  `AICR_EVIDENCE_REGISTRY_CREDENTIALS`, never without; a wrong one is 401. Where no token is set, and with another
  scheme than `Bearer` (a proxy's `Basic`), the caller is anonymous.
- `party` of `GET /evidence` takes what records show as `party`. A masked address stands for everybody who is shown so,
  and the address itself finds nothing.
- A body is at most `AICR_EVIDENCE_MAX_BODY_BYTES`, a bulk catalogue or a snapshot eight times that. A snapshot holds at
  most 200,000 scalars and collections, keys included, and a pointer 10,000. Content codings are refused.

"""

_ERRORS = """\
## Errors

Every error is this envelope, also of what is no HTTP request; `details` is left out when it is empty. `details.hint`
says what to do, `details.fields` names each wrong field, `details.reason` is a finer code where there is one. For
`EVIDENCE_REFUSED` `details` has `step`, `code`, `cause` (`class`, `detail`, `httpStatus`, `hint`), `report`, and
`attempt`, the path of the line that is kept about it.

```json
{"code": "INVALID_REQUEST", "message": "…", "details": {}, "requestId": "0b0e6a4e-6c0e-4c86-9f0c-6f6d2b6a3f10",
 "timestamp": "2026-01-11T10:30:00Z", "retryable": false}
```

| code | status | retryable | means |
|---|---|---|---|
"""


def render_api_page(document: Reference) -> str:
    """The whole page; ends with one newline."""
    listed = "".join(f"- [`{route.method} {route.path}`](#{_anchor(route)})\n" for route in document.routes)
    codes = "".join(
        f"| `{code.code}` | {code.status} | {'yes' if code.retryable else 'no'} | {code.meaning} |\n"
        for code in document.codes
    )
    routes = "\n".join(_route(route) for route in document.routes)
    return f"{_HEAD}{_ERRORS}{codes}\n## Routes\n\n{listed}\n{routes}"


def _anchor(route: RouteLine) -> str:
    """The anchor that Markdown gives to a route's heading."""
    kept = "".join(ch for ch in f"{route.method} {route.path}".lower() if ch.isalnum() or ch in " -_")
    return kept.replace(" ", "-")


def _route(route: RouteLine) -> str:
    parts = [f"### `{route.method} {route.path}`\n", f"{route.description}\n"]
    if route.parameters:
        lines = ["| parameter | in | type | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{item.name}`{' (required)' if item.required else ''} | {item.place} | {item.type} | {item.meaning} |"
            for item in route.parameters
        ]
        parts.append("\n".join(lines) + "\n")
    shown: set[str] = set()
    for body in route.bodies:
        if body.example not in shown:
            shown.add(body.example)
            language = "json" if body.media_type == "application/json" else "yaml"
            parts.append(f"Body as `{body.media_type}`:\n\n```{language}\n{body.example.rstrip()}\n```\n")
    for answer in route.answers:
        if not answer.status.startswith("2"):
            continue
        head = f"**{answer.status}** {answer.meaning}"
        if answer.example and answer.example not in shown:
            shown.add(answer.example)
            parts.append(f"{head}:\n\n```json\n{answer.example}\n```\n")
        else:
            parts.append(f"{head}.\n")
    parts += [f"**{one.status}** {one.meaning}.\n" for one in route.answers if one.status == "304"]
    errors = [f"{one.status} {one.meaning}" for one in route.answers if one.status >= "400"]
    if errors:
        parts.append(f"Errors: {'; '.join(errors)}.\n")
    return "\n".join(parts)
