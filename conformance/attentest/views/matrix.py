"""The terminal's view of a run: the matrix, what is wrong, and the choices side by side."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from attentest.results.plan import Plan
from attentest.results.run import Judged
from attentest.results.text import plain
from attentest.results.verdict import FAILURES, Verdict
from attentest.results.wording import mistakes, told
from attentest_spec import CHOICES, Limits
from attentest_spec.choices import Value
from attentest_spec.clauses import clauses

MARKS = {
    "pass": ("pass", "green"),
    "deviation": ("deviates", "cyan"),
    "warning": ("warning", "yellow"),
    "violation": ("VIOLATES", "bold red"),
    "error": ("ERROR", "bold red"),
    "timeout": ("TIMEOUT", "bold red"),
    "crash": ("CRASH", "bold red"),
    "absent": ("-", "dim"),
    "suite-bug": ("SUITE BUG", "bold magenta"),
}
"""How each status is shown: a word, so that it reads without colour, and a style."""


def show(
    console: Console,
    results: Sequence[Judged],
    plan: Plan,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Print the matrix, then every verdict that needs words, then the choices.

    `left_out` are backends that are not installed, with the commands that install them.
    """
    console.print(matrix(results, plan))
    console.print()
    for name, command in left_out.items():
        console.print(Text(f"{name}: not installed; {command}", style="dim"), soft_wrap=True)
    if left_out:
        console.print()
    for result in results:
        if result.failure:
            text = Text(f"not loaded: {result.failure}", style="bold red")
            console.print(text, soft_wrap=True)
            console.print()
    for story in _stories(results):
        console.print(Text(story), soft_wrap=True)
        console.print()
    for result in results:
        for line in likely(result):
            console.print(Text(line), soft_wrap=True)
    console.print(choices_table(results))
    console.print()
    for line in ["measured, not judged", *measured_lines(results), ""]:
        console.print(Text(line), soft_wrap=True)
    for result in results:
        console.print(Text(summary(result, plan)), soft_wrap=True)


def likely(result: Judged) -> list[str]:
    """Return lines on the mistakes that the failing clauses of a backend look like."""
    found = mistakes(result.verdicts)
    return [f"{result.target} looks like:", *(f"  {one}" for one in found), ""] if found else []


def matrix(results: Sequence[Judged], plan: Plan) -> Table:
    """Return the table of clauses by backends, grouped by chapter, with a summary row."""
    table = Table(box=None, pad_edge=False, show_footer=True, padding=(0, 2, 0, 0))
    table.add_column("clause", footer="conforms", no_wrap=True, overflow="ellipsis")
    for result in results:
        score = _score(result)
        heading = escape(label(result.target, [one.target for one in results]))
        table.add_column(heading, footer=score, min_width=max(8, len(score)))
    found = [{verdict.clause: verdict for verdict in result.verdicts} for result in results]
    chapter = ""
    for slug in plan.clauses:
        clause = clauses()[slug]
        if clause.chapter != chapter:
            chapter = clause.chapter
            table.add_row(Text(chapter, style="bold underline"))
        name = slug.partition(".")[2] + ("" if clause.level == "MUST" else " (should)")
        table.add_row(Text(f"  {name}"), *(_mark(column.get(slug)) for column in found))
    return table


def label(target: str, targets: Sequence[str]) -> str:
    """Return the heading of a backend's column: of a path the last part, where that is its own."""
    short = _last_part(target)
    own = [_last_part(one) for one in targets].count(short) == 1
    return plain(short if own else target)


def _last_part(target: str) -> str:
    return target.replace("\\", "/").rpartition("/")[2]


def _mark(verdict: Verdict | None) -> Text:
    if verdict is None:
        return Text("")
    word, style = MARKS[verdict.status]
    return Text(word, style=style)


def _score(result: Judged) -> str:
    """Return passes and deviations over what was judged, absent clauses apart."""
    if result.failure:
        return "not loaded"
    return "{}/{}".format(*scored(result))


def scored(result: Judged) -> tuple[int, int]:
    """Return how many clauses a backend conforms to, and how many were judged."""
    judged = [verdict for verdict in result.verdicts if verdict.status != "absent"]
    good = [verdict for verdict in judged if verdict.status in ("pass", "deviation", "warning")]
    return len(good), len(judged)


def summary(result: Judged, plan: Plan) -> str:
    """Return one sentence on a backend, with every denominator."""
    if result.failure:
        return f"{result.target}: not loaded"
    good, judged = scored(result)
    counted: dict[str, int] = {}
    for verdict in result.verdicts:
        counted[verdict.status] = counted.get(verdict.status, 0) + 1
    others = ", ".join(f"{number} {status}" for status, number in counted.items())
    missing = len(plan.clauses) - len(result.verdicts)
    lost = f"; {missing} clauses got NO verdict" if missing else ""
    return (
        f"{result.target}: {good} of {judged} judged clauses conform{_precision(result, plan)}, "
        f"of {len(plan.clauses)} in all ({others}){lost}"
    )


def _precision(result: Judged, plan: Plan) -> str:
    """Return the precision that a backend was judged in, where it does not claim the plan's."""
    claimed = result.facts.get("limits", {}).get("precisions") or [plan.precision]
    finest = Limits(precisions=claimed).finest
    return f" in {finest}" if plan.precision == "float64" != finest else ""


def choices_table(results: Sequence[Judged]) -> Table:
    """Return the choices side by side, the paper's column first, deviations marked."""
    table = Table(
        title="choices",
        title_justify="left",
        caption="* another option than the paper's, declared and shown by the numbers",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("choice", no_wrap=True)
    names = [result.target for result in results]
    for heading in ("paper", *(escape(label(name, names)) for name in names)):
        table.add_column(heading, overflow="fold")
    for choice in CHOICES.values():
        paper = choice.paper if choice.paper is not None else "(silent)"
        table.add_row(
            choice.name, paper, *(_told(result, choice.name, choice.clause) for result in results)
        )
    return table


def measured_lines(results: Sequence[Judged]) -> list[str]:
    """Return what was measured and is not judged, a line per backend and statement."""
    return [
        f"{result.target}: {name}: {statement}"
        for result in results
        for name, statement in result.measured.items()
    ]


def _told(result: Judged, name: str, clause: str) -> Text:
    """Return what a backend declares for a choice; a star where the numbers show a deviation."""
    if result.failure:
        return Text("?")
    value: Value | None = result.facts.get("choices", {}).get(name)
    verdict = next((one for one in result.verdicts if one.clause == clause), None)
    status = verdict.status if verdict else "absent"
    shown = _shown(value, bool(CHOICES[name].paper))
    if verdict and value is None and "measured: " in verdict.message:
        shown = verdict.message.rpartition("measured: ")[2] + " (measured)"
    if status == "deviation":
        return Text(f"{shown} *", style="cyan")
    if status in FAILURES:
        return Text(f"{shown} (not shown by the numbers)", style="bold red")
    return Text(shown if status != "absent" or value is not None else "-")


def _shown(value: Value | None, fixed: bool) -> str:
    """Return a declared value; undeclared means the paper's option, where it has one."""
    if value is None:
        return "as the paper" if fixed else "undeclared"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _stories(results: Sequence[Judged]) -> Iterator[str]:
    """Yield a story for every verdict that needs words; the same error again is told with it."""
    wanted = FAILURES | {"warning", "suite-bug"}
    for result in results:
        alike: dict[tuple[str, str], list[Verdict]] = {}
        for one in result.verdicts:
            if one.status in wanted:
                key = one.message if one.status == "error" else one.clause
                alike.setdefault((one.status, key), []).append(one)
        for first, *others in alike.values():
            slugs = ", ".join(one.clause for one in others)
            yield told(first) + (f"\n  the same: {slugs}" if others else "")
