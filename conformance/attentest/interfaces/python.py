"""The Python interface: judges a live object in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attentest.harness.description import described
from attentest.judging.bench import Bench
from attentest.results.plan import Plan, select
from attentest.results.run import BackendRun, Description, Run
from attentest.results.verdict import Verdict
from attentest.results.wording import report
from attentest.targets import resolve
from attentest.targets.adapt import Reading
from attentest_spec import Backend
from attentest_spec.choices import Value
from attentest_spec.names import require


@dataclass(frozen=True)
class Report:
    """The verdicts on one object, judged in this process: a hang or a crash would end it.

    `run` is the whole record, with one backend.
    """

    run: Run

    @property
    def _backend(self) -> BackendRun:
        (backend,) = self.run
        return backend

    @property
    def name(self) -> str:
        """The name of the object."""
        return self._backend.target

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts in the order of the clauses."""
        return tuple(self._backend.verdicts)

    @property
    def inferred(self) -> tuple[str, ...]:
        """The sentences on how code that is no backend is called."""
        return self._backend.description.inferred

    @property
    def conforms(self) -> bool:
        """Whether no verdict is a violation, an error, a timeout or a crash."""
        return self._backend.conforms

    @property
    def compared(self) -> int:
        """The number of clauses for which outputs were compared; 0 shows nothing."""
        return self._backend.compared

    def __iter__(self) -> Iterator[Verdict]:
        """Iterate over the verdicts."""
        return iter(self.verdicts)

    def __getitem__(self, clause: str) -> Verdict:
        """Return the verdict of `clause`."""
        verdicts = self._backend.by_clause
        return verdicts[require("clause", clause, verdicts)]

    def __str__(self) -> str:
        """Return what was inferred, what needs words, and a summary with its denominators."""
        how = "; judged in this process, without time limit"
        return report(self._backend, self.run.plan, how)


def check(
    target: Backend | Callable[..., Any] | str,
    component: str = "",
    *,
    arguments: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    mask: str = "",
    layout: str = "",
    choices: Mapping[str, Value] | None = None,
    parameters: Mapping[str, str] | None = None,
    strict: bool = False,
    anyway: bool = False,
    clauses: Sequence[str] = (),
    precision: str = "float64",
    device: str = "cpu",
    seed: int = 0,
) -> Report:
    """Judge `target` in this process and return a report; print it to read it.

    `target` is a function, a class or an instance of a torch module, a backend, or what a command
    takes: a name, "file.py:object" or "module:object". Nothing isolates it: use `attentest run` for
    code that may hang or crash. The arguments for code that is no backend are described at
    :func:`adapted`.

    Raises UnknownName for a name that is none, LoadFailure for a target that cannot be loaded, and
    Unclear, a LoadFailure that says what to add, for code that cannot be read.
    """
    settled = Reading(
        component=component,
        arguments=arguments or {},
        given=given or {},
        mask=mask,
        layout=layout,
        choices=choices or {},
        parameters=parameters or {},
        strict=strict,
        anyway=anyway,
    )
    backend = resolve.backend_of(target, settled.as_dict())
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

    judged = BackendRun(
        bench.name,
        Description.from_dict(described(backend)),
        [judge(bench, slug) for slug in slugs],
    )
    plan = Plan(slugs, precision=precision, device=device, seed=seed)
    return Report(Run.of(plan, [judged]))


def adapted(
    target: Backend | Callable[..., Any] | str,
    component: str = "",
    *,
    arguments: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    mask: str = "",
    layout: str = "",
    choices: Mapping[str, Value] | None = None,
    parameters: Mapping[str, str] | None = None,
    strict: bool = False,
    anyway: bool = False,
) -> Backend:
    """Return `target` as a backend: code that was not written for the contract is read.

    `component` is the component that it is, where its name does not say so. `arguments` maps an
    input or a size of the contract to the argument that carries it, as in {"mask": "src_mask"},
    `given` an argument to a fixed value. `mask` is "keep", "blocks" or "additive", `layout`
    "batch-first" or "sequence-first", `choices` are declared. `parameters` maps a canonical
    parameter to the code's own, as in {"self_attention_norm": "norm2"}. `strict` judges what is
    not declared by the paper's choices, `anyway` judges code whose reading is in doubt. What is
    left out is read off names, documentation and a probing call; `understood` of the backend says
    how. Raises as :func:`check` does.
    """
    settled = Reading(
        component=component,
        arguments=arguments or {},
        given=given or {},
        mask=mask,
        layout=layout,
        choices=choices or {},
        parameters=parameters or {},
        strict=strict,
        anyway=anyway,
    )
    return resolve.backend_of(target, settled.as_dict())


def _loader(target: Backend | Callable[..., Any] | str, backend: Backend) -> str:
    """Return code that loads the backend again; what is inferred brings code of its own."""
    if hasattr(backend, "reproduction_script"):
        return ""
    return resolve.loader(target) if isinstance(target, str) else resolve.loader_of(backend)
