"""The Python door: judge a live object in this process."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from attentest import targets
from attentest.bench import Bench
from attentest.outcome import FAILURES, Verdict
from attentest.plan import select
from attentest_spec import Backend
from attentest_spec.names import require


@dataclass(frozen=True)
class Report:
    """The verdicts on one object, judged in this process: a hang or a crash would take it along."""

    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def conforms(self) -> bool:
        """Whether no verdict is a violation, an error, a timeout or a crash."""
        return not any(verdict.status in FAILURES for verdict in self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        """Iterate over the verdicts."""
        return iter(self.verdicts)

    def __getitem__(self, clause: str) -> Verdict:
        """Return the verdict of `clause`."""
        found = {verdict.clause: verdict for verdict in self.verdicts}
        return found[require("clause", clause, found)]

    def __str__(self) -> str:
        """Return what needs words, and a summary with its denominators."""
        from attentest.explanation import told

        wanted = FAILURES | {"warning", "suite-bug"}
        stories = [told(verdict) for verdict in self.verdicts if verdict.status in wanted]
        judged = [verdict for verdict in self.verdicts if verdict.status != "absent"]
        good = [verdict for verdict in judged if verdict.status not in wanted - {"warning"}]
        return "\n\n".join(
            [
                *stories,
                f"{self.name}: {len(good)} of {len(judged)} judged clauses conform, of "
                f"{len(self.verdicts)} in all (judged in this process, without time limit)",
            ]
        )


def check(
    target: Backend | Callable[..., Any] | str,
    component: str = "",
    *,
    clauses: Sequence[str] = (),
    precision: str = "float64",
    device: str = "cpu",
    seed: int = 0,
) -> Report:
    """Judge `target` in this process and return a report; print it to read it.

    `target` is a backend, the name of one, or a function with the contract's signature of
    `component` that takes and returns torch tensors. The worker processes of `attentest run` do
    not stand between: use that door for code that may hang or crash.

    Raises UnknownName for a name that is none, and TypeError for a function without `component`.
    """
    backend = _backend(target, component)
    bench = Bench(backend, precision=precision, device=device, seed=seed)
    slugs = select([component] if component else [], clauses, precision=precision)
    from attentest.judge import judge

    return Report(str(backend.name), tuple(judge(bench, slug) for slug in slugs))


def _backend(target: Backend | Callable[..., Any] | str, component: str) -> Backend:
    if isinstance(target, str):
        return targets.load(target)
    if isinstance(target, Backend):
        return target
    if not callable(target):
        raise TypeError(f"A {type(target).__name__} is neither a backend, a name nor a function.")
    if not component:
        raise TypeError(
            f"Which component is {getattr(target, '__name__', target)!r}? Say so with component=, "
            f"such as component='attention'."
        )
    from attentest_spec.torch import of_function

    return of_function(target, component)
