"""A strict reading of our own pages: what a validator of HTML would say, and what must never be there."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

VOID = frozenset({"meta", "link", "br", "input", "img", "hr", "col"})
ALLOWED = frozenset(
    [
        *("html", "head", "meta", "title", "link", "body", "header", "nav", "main", "footer", "div", "section"),
        *("h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd", "pre", "details", "summary", "a", "strong", "small"),
        *("span", "code", "time", "br", "form", "label", "input", "select", "option", "button"),
        *("aside", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    ]
)
PARENTS = {
    "li": {"ul"},
    "dt": {"dl", "div"},
    "dd": {"dl", "div"},
    "tr": {"thead", "tbody"},
    "th": {"tr"},
    "td": {"tr"},
    "thead": {"table"},
    "tbody": {"table"},
    "caption": {"table"},
    "option": {"select"},
    "summary": {"details"},
}
PHRASING_ONLY = frozenset(
    {"p", "h1", "h2", "h3", "span", "small", "strong", "code", "label", "summary", "a", "caption"}
)
BLOCKS = frozenset({"p", "div", "ul", "dl", "table", "section", "form", "pre", "h1", "h2", "h3", "details"})


class Page(HTMLParser):
    """Parses a page and raises `AssertionError` for the first thing that is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.ids: set[str] = set()
        self.fragments: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.headings: list[int] = []
        self.labelled = 0
        assert text.startswith("<!doctype html>\n"), text[:40]
        self.feed(text)
        self.close()
        assert not self.stack, f"left open: {self.stack}"
        assert set(self.fragments) <= self.ids, set(self.fragments) - self.ids
        assert self.headings.count(1) == 1
        for before, after in zip(self.headings, self.headings[1:], strict=False):
            assert after <= before + 1, f"heading h{after} after h{before}"

    @property
    def shown(self) -> str:
        """All text."""
        return "".join(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag in ALLOWED, f"<{tag}>"
        assert len(given) == len(attrs), f"an attribute twice on <{tag}>"
        assert not any(name.startswith("on") or name == "style" for name in given), given
        if tag in PARENTS:
            assert self.stack[-1] in PARENTS[tag], f"<{tag}> in <{self.stack[-1]}>"
        if tag in BLOCKS:
            assert not PHRASING_ONLY & set(self.stack) - {"a"}, f"<{tag}> in {self.stack}"
        if tag == "a":
            assert "a" not in self.stack, "a link in a link"
        if identifier := given.get("id"):
            assert identifier not in self.ids, f"id {identifier} twice"
            self.ids.add(identifier)
        for name in ("href", "src", "action"):
            if (target := given.get(name)) is not None:
                self._target(target)
        if tag in {"input", "select"}:
            assert "label" in self.stack, f"<{tag}> without a label"
        if tag == "th":
            assert given.get("scope") in {"col", "row", "rowgroup"}
        if tag in {"h1", "h2", "h3"}:
            self.headings.append(int(tag[1]))
        if labelled := given.get("aria-labelledby"):
            self.fragments.append(labelled)
        if tag not in VOID:
            self.stack.append(tag)

    def _target(self, target: str) -> None:
        self.links.append(target)
        parts = urlsplit(target)
        assert not parts.scheme, f"a link elsewhere: {target}"
        assert not parts.netloc, f"a link elsewhere: {target}"
        if target.startswith("#"):
            self.fragments.append(target[1:])

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack[-1] == tag, f"</{tag}> closes <{self.stack[-1]}>"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")
