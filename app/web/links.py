"""Where things are: root-relative paths, the same for every caller, so that a repeated answer has the same bytes."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from app.core.refs import Digest


def path(*parts: str) -> str:
    """An absolute path of quoted segments."""
    return "/" + "/".join(quote(part, safe=":@") for part in parts)


def record_links(digest: Digest, source: str, recipe: str) -> Mapping[str, str]:
    """Everything that hangs on one record."""
    own = path("evidence", str(digest), source)
    return {
        "self": path("evidence", str(digest)),
        "report": f"{own}/report",
        "predicate": f"{own}/predicate",
        "bundle": f"{own}/bundle",
        "archive": path("evidence", str(digest), "archive"),
        "recipe": path("recipes", recipe),
        "page": path("ui", "recipes", recipe),
    }


def bundle_links(digest: Digest) -> Mapping[str, str]:
    """Everything that hangs on one digest."""
    return {"self": path("evidence", str(digest)), "archive": path("evidence", str(digest), "archive")}


def recipe_links(recipe: str) -> Mapping[str, str]:
    """Everything that hangs on one recipe."""
    return {
        "self": path("recipes", recipe),
        "page": path("ui", "recipes", recipe),
        "evidence": "/evidence?" + urlencode({"recipe": recipe}),
    }


def source_links(source: str) -> Mapping[str, str]:
    """Everything that hangs on one source."""
    return {"self": path("sources", source), "evidence": "/evidence?" + urlencode({"source": source})}


def attempt_links(attempt_id: int, digest: str, *, accepted: bool) -> Mapping[str, str]:
    """An attempt, and the evidence that came of it: what was refused is served nowhere."""
    own = {"self": path("attempts", str(attempt_id))}
    return {**own, "evidence": path("evidence", digest)} if accepted and digest else own
