"""Measures the lines that violations name: `python lines.py` judges every mistake of the corpus.

Prints each mistake whose line is not named, named wrongly or only suspected, and the totals with
their bounds: the true line in at least 85 % of the mistakes, no wrong line that is `confirmed`, no
line for sound code, the true first step in at least 90 % of the mistakes that are in no catalogue.
`--held-out` judges the mistakes that are not looked at while the search is developed, `--early`
those whose effect is seen lines below, `--effects` those that only gradients or modes show, `--jax`
those in JAX, `--parts` those in the parts of decoder-only models.
"""

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import torch

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.plan import select
from attentest.results.verdict import Location, Status
from attentest_spec.registry import LoadFailure

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from line_corpus import EARLY, EFFECTS, HELD_OUT, JAX, OPEN, PARTS, Mistake, mistakes

STEPS = {
    "scores": "scores|scaled",
    "masked": "mask",
    "weights": "weights|softmax|shifted|exponential",
    "heads": "head|value",
    "query": "query|scores|^x$",
    "key": "key|scores",
    "value": "value|head",
    "merged": "merged|output",
    "output": "output|outer|result|value|weights|positions|softmax|scaled|mask",
    "inner": r"inner|norm\.|^x$",
    "activation": "activated|gated",
    "normalised": r"normalised|centred|mean|deviation|scaled|^x$",
    "mean": "mean|centred",
    "variance": "variance|deviation|squares|divisor|length",
    "table": "position|angle|pairs|frequenc|wave|table|exponent|cosine|sine",
    "lookup": "rows",
    "logits": "result|logits",
    "sum": "sum|branch",
    "norm": "norm|sum",
    "padding": "mask",
    "self_attention_sum": r"^(?!cross|feed).*(sum|norm\.result|^x$)",
    "cross_attention_sum": r"^(?!self|feed).*(sum|norm\.result)",
    "feed_forward_sum": r"sum|norm\.result",
    "self_attention_norm": "self_attention_norm|sum",
    "feed_forward_norm": "feed_forward_norm",
    "cross_query": r"cross_attention\.query|attention_norm",
    "cross_value": r"cross_attention\.value|memory",
    "cross_output": r"cross_attention\.(output|merged)",
    "layer_0_output": r"layers\.0\.",
    "layer_1_input": r"layers\.[01]\.",
    "source_embedding": "source_embedding|source_positions",
    "target_positions": "target_positions|target_embedding",
    "encoder_norm": r"encoder\.norm|memory",
    "gradient": "gradient",
    "evaluation": "evaluation",
}
"""Patterns of the steps that `Location.step` may name, for each step of a manifest."""

ATTEMPTS = 3
"""Violations that are asked for a line before the mistake counts as one without."""


@dataclass(frozen=True)
class Outcome:
    """The line and the step that were named for one mistake."""

    mistake: Mistake
    violations: int
    location: Location | None
    seconds: float

    @property
    def status(self) -> str:
        """One word or two for the table."""
        if not self.violations:
            return "no violation"
        if self.location is None:
            return "no line"
        proof = "confirmed" if self.location.confirmed else "suspected"
        return f"{'true' if self.location.line in self.mistake.accepted else 'wrong'}, {proof}"

    @property
    def right_step(self) -> bool:
        """Whether the first step that differs is the true one."""
        pattern = STEPS[self.mistake.step]
        return self.location is not None and bool(re.search(pattern, self.location.step))

    @property
    def words(self) -> str:
        """The mistake, and what was said of it."""
        text = f"{self.mistake.slug} ({self.mistake.target}): {self.status}, {self.seconds:.1f} s"
        if one := self.location:
            text += f"; true: {', '.join(map(str, sorted(self.mistake.accepted)))}"
            text += f"; said: {one.line} {one.code!r} {one.step}"
            text += ": " if self.right_step else f" (true: {self.mistake.step}): "
            text += f"expected {one.expected}; computed {one.computed}"
        return text


def bench_of(mistake: Mistake, target: str, dtype: str) -> Bench:
    """Return the backend of `target`, with few examples and small counterexamples not sought.

    Where the checker asks before it judges, it is answered with --anyway.
    """
    try:
        backend = attentest.adapted(target, mistake.component, anyway=mistake.anyway)
    except LoadFailure:
        backend = attentest.adapted(target, mistake.component, anyway=True)
    return Bench(backend, precision=dtype, effort=0.3, shrink=False)


def formulas_first(bench: Bench) -> Sequence[str]:
    """Return the clauses of the backend's components, those of numbers first."""
    return sorted(select(list(bench.backend.components)), key=lambda slug: "formula" not in slug)


def outcome(mistake: Mistake, folder: Path, dtype: str = "float64") -> Outcome:
    """Judge the wrong twin until a violation names a line."""
    start = time.process_time()
    bench = bench_of(mistake, mistake.write(folder / mistake.slug), dtype)
    violations = 0
    for slug in formulas_first(bench):
        verdict = judge(bench, slug)
        violations += verdict.status == Status.VIOLATION
        if verdict.location or violations == ATTEMPTS:
            return Outcome(mistake, violations, verdict.location, time.process_time() - start)
    return Outcome(mistake, violations, None, time.process_time() - start)


def lines_of_sound(mistake: Mistake, dtype: str = "float64") -> list[str]:
    """Return what violations and lines the sound twin gets."""
    bench = bench_of(mistake, str(mistake.folder / mistake.target), dtype)
    verdicts = [judge(bench, slug) for slug in formulas_first(bench)]
    return [
        f"{mistake.target} (sound): {one.clause} {one.status} {one.location}"
        for one in verdicts
        if one.location or one.status == Status.VIOLATION
    ]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--held-out", "folder", flag_value=HELD_OUT, help="Judge those that are kept apart.")
@click.option("--early", "folder", flag_value=EARLY, help="Judge those that are seen lines later.")
@click.option("--effects", "folder", flag_value=EFFECTS, help="Judge those of gradients and modes.")
@click.option("--jax", "folder", flag_value=JAX, help="Judge those in JAX.")
@click.option("--parts", "folder", flag_value=PARTS, help="Judge those of decoder-only parts.")
@click.option("--sound/--no-sound", default=True, help="Judge the sound twins, too.")
@click.option("--all", "everything", is_flag=True, help="Print what was said of every mistake.")
@click.option("--dtype", default="float64", show_default=True, help="The precision to judge in.")
def main(
    names: tuple[str, ...], folder: Path | None, sound: bool, everything: bool, dtype: str
) -> None:
    """Judge the mistakes whose slug or target holds one of NAMES, all without."""
    torch.set_num_threads(1)
    corpus = [
        one
        for one in mistakes(folder or OPEN)
        if not names or any(name in one.slug or name in one.target for name in names)
    ]
    counts: Counter[str] = Counter()
    steps = []
    with tempfile.TemporaryDirectory() as home:
        for one in corpus:
            found = outcome(one, Path(home), dtype)
            counts[found.status] += 1
            steps += [found.right_step] * (not one.catalogued)
            if everything or found.status != "true, confirmed" or not found.right_step:
                click.echo(found.words)
    click.echo(f"{len(corpus)} mistakes: {dict(counts)}")
    right = counts["true, confirmed"] + counts["true, suspected"]
    click.echo(f"true line {right} of {len(corpus)}, confirmed wrong {counts['wrong, confirmed']}")
    click.echo(f"in no catalogue: true step {sum(steps)} of {len(steps)}")
    if sound:
        twins = {one.target: one for one in corpus}
        said = [line for one in twins.values() for line in lines_of_sound(one, dtype)]
        click.echo("\n".join([*said, f"{len(said)} violations or lines for {len(twins)} twins"]))


if __name__ == "__main__":
    main()
