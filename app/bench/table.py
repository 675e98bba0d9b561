"""A report for people: every figure beside its bar, then where the time of the slowest steps goes."""

from collections.abc import Iterator, Sequence

from app.bench.figures import BenchReport, Figure, Profile

_HEADINGS = ("figure", "value", "bar", "", "what")
_SHOWN_FUNCTIONS = 12


def render(report: BenchReport) -> str:
    """The whole report as text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: BenchReport) -> Iterator[str]:
    machine = report.machine
    yield (
        f"size {report.size}, {machine.cpus} CPUs, load {machine.load:.1f}, Python {machine.python}, "
        f"{machine.system}; {report.seconds:.0f} s"
    )
    yield ""
    yield from _columns([_HEADINGS, *(_row(figure) for figure in report.figures)])
    noted = [figure for figure in report.figures if figure.note]
    if noted:
        yield ""
        yield from (f"{figure.name}: {figure.note}" for figure in noted)
    for profile in report.profiles:
        yield ""
        yield from _profile(profile)


def _row(figure: Figure) -> tuple[str, ...]:
    met = {True: "met", False: "MISSED", None: ""}[figure.met]
    bar = "" if figure.bar is None else str(figure.bar)
    return (figure.name, f"{figure.value:.2f} {figure.unit}", bar, met, _what(figure))


def _what(figure: Figure) -> str:
    """What was measured, with the medians of both sides where there are two."""
    medians = [
        f"{key.removesuffix('Ms')} {value:.2f} ms" for key, value in figure.details.items() if key.endswith("Ms")
    ]
    return f"{figure.what} ({', '.join(medians[:2])})" if medians else figure.what


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _profile(profile: Profile) -> Iterator[str]:
    yield f"{profile.step}: {profile.seconds * 1e3:.2f} ms a run; profiled, a run in milliseconds:"
    rows = [("cumulative", "own", "calls", "function")]
    rows += [
        (f"{line.cumulative_seconds * 1e3:.2f}", f"{line.own_seconds * 1e3:.2f}", str(line.calls), line.function)
        for line in profile.lines[:_SHOWN_FUNCTIONS]
    ]
    yield from (f"  {line}" for line in _columns(rows))
