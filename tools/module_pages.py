"""The module list of `docs/architecture.md`: each module with the first sentence of its docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"

_BEGIN, _END = "<!-- modules: made by tools/generate_docs.py -->", "<!-- end of modules -->"


def architecture_page() -> str:
    """`docs/architecture.md` with its modules as they are now; the rest of the page is written by hand."""
    page = ARCHITECTURE.read_text(encoding="utf-8")
    made = f"{_BEGIN}\n{module_tables()}\n{_END}"
    return re.sub(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", lambda _: made, page, count=1, flags=re.DOTALL)


def module_tables() -> str:
    """One table a package, in the order of their names."""
    parts = []
    for package, role, modules in packages():
        rows = [f"| `{name}` | {_cell(sentence)} |" for name, sentence in modules]
        table = ["", "| module | role |", "|---|---|", *rows] if rows else []
        parts.append("\n".join([f"### `{package}`", "", role, *table]))
    return "\n\n".join(parts)


def packages() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """(package, its role, [(module, its role)]) for `app` and everything below it."""
    app = ROOT / "app"
    for init in sorted(app.rglob("__init__.py"), key=lambda path: path.parent.parts):
        directory = init.parent
        modules = [(path.stem, _role(path)) for path in sorted(directory.glob("*.py")) if path != init]
        yield ".".join(directory.relative_to(ROOT).parts), _role(init), modules


def _role(path: Path) -> str:
    """The first sentence of the module's docstring; its first line may end before the sentence does."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
