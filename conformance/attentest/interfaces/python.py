"""The Python door: judge a live object in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attentest.judging.bench import Bench
from attentest.results import summary
from attentest.results.plan import select
from attentest.results.verdict import FAILURES, Verdict
from attentest.targets import resolve
from attentest.targets.adapt import Reading
from attentest_spec import Backend
from attentest_spec.choices import Value
from attentest_spec.names import require


@dataclass(frozen=True)
class Report:
    """The verdicts on one object, judged in this process: a hang or a crash would take it along.

    `understood` says how code that is no backend was read.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    understood: tuple[str, ...] = ()

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
        """Return how it was read, what needs words, and a summary with its denominators."""
        read = [summary.reading(self.understood)] if self.understood else []
        told = summary.report(self.name, self.verdicts)
        return "\n\n".join([*read, f"{told}; judged in this process, without time limit"])


def check(
    target: Backend | Callable[..., Any] | str,
    component: str = "",
    *,
    arguments: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    mask: str = "",
    layout: str = "",
    choices: Mapping[str, Value] | None = None,
    clauses: Sequence[str] = (),
    precision: str = "float64",
    device: str = "cpu",
    seed: int = 0,
) -> Report:
    """Judge `target` in this process and return a report; print it to read it.

    `target` is a function, a class or an instance of a torch module, a backend, or what a command
    takes: a name, "file.py:object" or "module:object". The worker processes of `attentest run` do
    not stand between: use that door for code that may hang or crash. What settles how code is
    read is described at :func:`adapted`.

    Raises UnknownName for a name that is none, LoadFailure for a target that cannot be loaded, and
    Unclear, a LoadFailure that says what to add, for code that cannot be read.
    """
    settled = _settled(component, arguments, given, mask, layout, choices)
    backend = _backend(target, settled)
    bench = Bench(
        backend,
        precision=precision,
        device=device,
        seed=seed,
        loader=_loader(target, backend),
    )
    own = list(backend.components) if hasattr(backend, "understood") else []
    wanted = [component] if component else own
    slugs = select(wanted, clauses, precision=precision)
    from attentest.judging.judge import judge

    return Report(
        str(backend.name),
        tuple(judge(bench, slug) for slug in slugs),
        tuple(getattr(backend, "understood", ())),
    )


def adapted(
    target: Backend | Callable[..., Any] | str,
    component: str = "",
    *,
    arguments: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    mask: str = "",
    layout: str = "",
    choices: Mapping[str, Value] | None = None,
) -> Backend:
    """Return `target` as a backend: code that was not written for the contract is read.

    `component` is the component that it is, where its name does not say so. `arguments` maps an
    input or a size of the contract to the argument that carries it, as in {"mask": "src_mask"},
    `given` an argument to a fixed value. `mask` is "keep", "blocks" or "additive", `layout`
    "batch-first" or "sequence-first", `choices` are declared. What is left out is read off names,
    documentation and a probing call; `understood` of the backend says how. Raises as
    :func:`check` does.
    """
    return _backend(target, _settled(component, arguments, given, mask, layout, choices))


def _settled(
    component: str,
    arguments: Mapping[str, str] | None,
    given: Mapping[str, Any] | None,
    mask: str,
    layout: str,
    choices: Mapping[str, Value] | None,
) -> dict[str, Any]:
    return Reading(
        component=component,
        arguments=arguments or {},
        given=given or {},
        mask=mask,
        layout=layout,
        choices=choices or {},
    ).as_dict()


def _backend(target: Backend | Callable[..., Any] | str, settled: Mapping[str, Any]) -> Backend:
    if isinstance(target, str):
        return resolve.load(target, settled)
    if isinstance(target, Backend) and not isinstance(target, type):
        return target
    from attentest.targets.adapt.adaptation import adapt

    return adapt(target, Reading(**settled))


def _loader(target: Backend | Callable[..., Any] | str, backend: Backend) -> str:
    """Return code that loads the backend again; what is inferred brings code of its own."""
    if hasattr(backend, "reproduction_script"):
        return ""
    return resolve.loader(target) if isinstance(target, str) else resolve.loader_of(backend)
