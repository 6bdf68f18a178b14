"""The terminal's view of the suite's own score."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.judging.score import Score
from attentest.results.text import counted

FEW = 12
"""The most clauses that are named in one cell of the table."""

_KINDS = {
    "mistakes in values": ("value", "loud"),
    "mistakes in gradients": ("gradient",),
    "mistakes in state and mode": ("state", "mode"),
}


def show(console: Console, score: Score) -> None:
    """Print the table of faults, every error of the suite, and the score with its denominators."""
    console.print(_table(score))
    console.print()
    for heading, lines in _errors(score).items():
        if lines:
            console.print(Text(f"{heading}:", style="bold red"))
            for line in lines:
                console.print(Text(f"  {line}"), soft_wrap=True)
    for sentence in sentences(score):
        console.print(Text(sentence), soft_wrap=True)


def sentences(score: Score) -> list[str]:
    """Return the score in words: detected faults, false alarms, and other errors of the suite."""
    total = len(score.detected) + len(score.survived)
    injected = {(trial.subject, trial.specimen) for trial in score.trials}
    correct = {trial.subject for trial in score.correct}
    verdicts = sum(len(trial.statuses) for trial in score.correct)
    count = len(score.seeds)
    whose = "its" if total == 1 else "their"
    seeds = f"{count} seeds" if count > 1 else f"seed {score.seeds[0] if score.seeds else 0}"
    lines = [
        f"{len(score.detected)} of {counted(total, 'fault')} detected by {whose} own clause "
        f"({counted(len(injected), 'injection')}, {seeds}); {len(score.spurious)} noticed where "
        f"they are not, {counted(len(score.idle), 'clause')} without a detected fault"
    ]
    if correct:
        pieces = counted(len(correct), "piece")
        lines.append(
            f"{counted(len(score.alarms), 'false alarm')}: {pieces} of unusual but correct code, "
            f"{counted(verdicts, 'verdict')}"
        )
    return lines + [
        f"{of}: {named.first} of {named.total} named first, {named.equal} by another cause with "
        f"the same results, {named.later} among the others named"
        for of, kinds in _KINDS.items()
        for named in (score.named(kinds),)
        if named
    ]


def _table(score: Score) -> Table:
    """Return one row per fault: its own clause, whether that detected it, and all that did."""
    from attentest.faults import fault_of

    table = Table(box=None, pad_edge=False)
    for heading in ("fault", "own clause", "detected", "noticed by"):
        table.add_column(heading, overflow="fold")
    noticed: dict[str, dict[str, None]] = {}
    for trial in score.trials:
        noticed.setdefault(trial.subject, {}).update(dict.fromkeys(trial.broken()))
    few = len(noticed) <= FEW
    for slug, clauses in noticed.items():
        detected = Text("yes", "green") if slug in score.detected else Text("NO", "bold red")
        short = few and len(clauses) <= FEW
        names = ", ".join(clauses) if short else counted(len(clauses), "clause")
        table.add_row(slug, fault_of(slug).clause, detected, names)
    return table


def _errors(score: Score) -> dict[str, list[str]]:
    return {
        "survived its own clause": score.survived,
        "clauses that detect no fault of their own": score.idle,
        "failed by a fault that cannot reach them": [
            f"{clause} by {fault}" for fault, clause in score.spurious
        ],
        "false alarms on correct code": [
            f"{clause}: {status} of {name}" for name, clause, status in score.alarms
        ],
    }
