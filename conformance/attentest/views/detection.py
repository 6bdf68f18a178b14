"""What `attentest faults` tries, and the terminal's view of the score."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.judging.score import Score

FEW = 12
"""Clauses that are named where they fit into one cell of the matrix."""

_KINDS = {
    "mistakes in values": ("value", "loud"),
    "mistakes in gradients": ("gradient",),
    "mistakes in state and mode": ("state", "mode"),
}


def show(console: Console, score: Score) -> None:
    """Print the kill matrix, every error of the suite, and the score with its denominators."""
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
    """Return the score in words: kills, false alarms, and what else would be an error."""
    total = len(score.killed) + len(score.survived)
    plantings = {(trial.subject, trial.specimen) for trial in score.trials}
    oddities = {trial.subject for trial in score.sound}
    verdicts = sum(len(trial.statuses) for trial in score.sound)
    count = len(score.seeds)
    seeds = f"{count} seeds" if count > 1 else f"seed {score.seeds[0] if score.seeds else 0}"
    told = [
        f"{len(score.killed)} of {total} faults killed by their own clause "
        f"({len(plantings)} plantings, {seeds}); {len(score.spurious)} noticed where they are "
        f"not, {len(score.idle)} clauses without a kill"
    ]
    if oddities:
        told.append(
            f"{len(score.alarms)} false alarms: {len(oddities)} sound oddities, {verdicts} verdicts"
        )
    return told + [
        f"{of}: {found.first} of {found.total} named first, {found.equal} by what answers all "
        f"alike, {found.later} among the others named"
        for of, kinds in _KINDS.items()
        for found in (score.named(kinds),)
        if found
    ]


def _table(score: Score) -> Table:
    """Return one row per fault: its own clause, whether it killed, and which clauses noticed."""
    from attentest.faults import fault_of

    table = Table(box=None, pad_edge=False)
    for heading in ("fault", "own clause", "killed", "noticed by"):
        table.add_column(heading, overflow="fold")
    noticed: dict[str, dict[str, None]] = {}
    for trial in score.trials:
        noticed.setdefault(trial.subject, {}).update(dict.fromkeys(trial.tripped()))
    few = len(noticed) <= FEW
    for slug, clauses in noticed.items():
        killed = Text("yes", "green") if slug in score.killed else Text("NO", "bold red")
        told = ", ".join(clauses) if few and len(clauses) <= FEW else f"{len(clauses)} clauses"
        table.add_row(slug, fault_of(slug).clause, killed, told)
    return table


def _errors(score: Score) -> dict[str, list[str]]:
    return {
        "survived its own clause": score.survived,
        "clauses that kill no fault of their own": score.idle,
        "tripped over a fault that cannot reach them": [
            f"{clause} by {fault}" for fault, clause in score.spurious
        ],
        "false alarms on sound code": [
            f"{clause} says {status} of {oddity}" for oddity, clause, status in score.alarms
        ],
    }
