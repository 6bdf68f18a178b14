"""The Python interface: judges a live object in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attentest.harness.description import described
from attentest.interfaces import files
from attentest.judging.bench import Bench
from attentest.judging.executed import Executed
from attentest.results.blocks import WIDTH, place
from attentest.results.causes import Cause, causes
from attentest.results.html_table import paragraph, table
from attentest.results.plan import Plan, select
from attentest.results.run import BackendRun, Description, Run
from attentest.results.screen import Screen
from attentest.results.text import counted
from attentest.results.verdict import Verdict
from attentest.targets import resolve
from attentest.targets.adapt import Reading
from attentest.targets.members import Member
from attentest.targets.members import members as file_members
from attentest_spec import Backend
from attentest_spec.choices import Value
from attentest_spec.names import require
from attentest_spec.registry import LoadFailure


@dataclass(frozen=True, repr=False)
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

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The mistakes behind what fails; each has `file`, `line`, `confirmed` and `clauses`."""
        return causes(self.verdicts)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts that are a violation, an error, a timeout or a crash."""
        return tuple(one for one in self.verdicts if one.status.fails)

    @property
    def likely_cause(self) -> str:
        """The first cause of a failure in one sentence, "" where nothing fails."""
        return next((one.text for one in self.causes if one.severity.fails), "")

    def text(self, *, full: bool = False, width: int = WIDTH) -> str:
        """Return what was understood, a block for each cause, and how much conforms.

        In `full` each failing clause has its block, with the code that reproduces it.
        """
        how = "; judged in this process, without time limit"
        screen = Screen(width, full, next_step="print(report.text(full=True))", how=how)
        return self._shown(screen)

    def _shown(self, screen: Screen) -> str:
        return screen.report(self._backend, self.run.plan)

    def __str__(self) -> str:
        """Return the text at the usual width."""
        return self.text()

    def __repr__(self) -> str:
        """Return one line."""
        judged = [one.status.conforms for one in self.verdicts if one.status.judged]
        return f"<Report on {self.name}: {sum(judged)} of {len(judged)} judged clauses conform>"

    def _repr_html_(self) -> str:
        """Return a short table for a notebook: a row for each cause."""
        return paragraph(repr(self)[1:-1]) + (
            table(
                ("severity", "cause", "line", "clauses"),
                [
                    (one.severity, one.text, place(one.location) if one.location else "", _few(one))
                    for one in self.causes
                ],
            )
            if self.causes
            else ""
        )


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
    takes: a name, "file.py:object" or "module:object"; "file.py" is every component in it, and
    gives a :class:`FileReport`. Nothing isolates it: use `attentest run` for
    code that may hang or crash. The arguments for code that is no backend are described at
    :func:`adapted`.

    Raises UnknownName for a name that is none, LoadFailure for a target that cannot be loaded, and
    Unclear, a LoadFailure that says what to add, for code that cannot be read.
    """
    settled = _reading(
        component=component,
        arguments=arguments,
        given=given,
        mask=mask,
        layout=layout,
        choices=choices,
        parameters=parameters,
        strict=strict,
        anyway=anyway,
    )
    if isinstance(target, str) and not component and resolve.is_whole(target):
        members = file_members(target)
        if members is not None:
            return _file_report(target, members, settled, clauses, precision, device, seed)
    backend = resolve.backend_of(target, settled)
    bench = Bench(
        backend,
        precision=precision,
        device=device,
        seed=seed,
        loader=_loader(target, backend),
        executed=Executed(target, backend) if hasattr(backend, "understood") else None,
    )
    own = list(backend.components) if hasattr(backend, "understood") else []
    wanted = [component] if component else own
    slugs = select(wanted, clauses, precision=precision)
    judged = _judged(bench.name, bench, slugs)
    plan = Plan(slugs, precision=precision, device=device, seed=seed)
    return Report(Run.of(plan, [judged]))


@dataclass(frozen=True, repr=False)
class FileReport(Report):
    """The verdicts on every component of a file; `members` are all that the file defines."""

    target: str
    members: Sequence[Member]

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.target

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on all components, in the order of the file."""
        return tuple(verdict for one in self.run for verdict in one.verdicts)

    @property
    def inferred(self) -> tuple[str, ...]:
        """The sentences on how each component is called."""
        return tuple(line for one in self.run for line in one.description.inferred)

    @property
    def conforms(self) -> bool:
        """Whether all that was recognised was judged, without a violation, an error or a crash."""
        return files.summary(self.target, self.members, self.run).exit_code == 0

    def __getitem__(self, clause: str) -> Verdict:
        """Return the first verdict of `clause` that is not absent, or else the first."""
        found = [one for one in self.verdicts if one.clause == clause]
        require("clause", clause, [one.clause for one in self.verdicts])
        return next((one for one in found if one.status.judged), found[0])

    def _shown(self, screen: Screen) -> str:
        return files.summary(self.target, self.members, self.run).text(screen)


def _few(cause: Cause) -> str:
    """Return the most telling clause, and the number of the others."""
    others = len(cause.clauses) - 1
    return f"{cause.clauses[0]} and {counted(others, 'other')}" if others else cause.clauses[0]


def _file_report(
    target: str,
    members: Sequence[Member],
    settled: Mapping[str, Any],
    clauses: Sequence[str],
    precision: str,
    device: str,
    seed: int,
) -> FileReport:
    """Judge every component of a file in this process."""
    slugs = select((), clauses, precision=precision)
    plan = Plan(slugs, precision=precision, device=device, seed=seed)
    judged = []
    for one in files.targets(target, members):
        try:
            backend = resolve.load(one, settled)
        except LoadFailure as failure:
            judged.append(BackendRun(one, failure=str(failure)))
            continue
        executed = Executed(one, backend)
        bench = Bench(backend, precision=precision, device=device, seed=seed, executed=executed)
        own = select(list(backend.components), clauses, precision=precision)
        judged.append(_judged(one, bench, own))
    return FileReport(Run.of(plan, judged), target, members)


def _judged(target: str, bench: Bench, slugs: Sequence[str]) -> BackendRun:
    description = Description.from_dict(described(bench.backend))
    verdicts = _verdicts(bench, slugs)
    branches = () if bench.executed is None else bench.executed.branches()
    return BackendRun(target, description, verdicts, branches=branches)


def _verdicts(bench: Bench, slugs: Sequence[str]) -> list[Verdict]:
    from attentest.judging.judge import judge

    return [judge(bench, slug) for slug in slugs]


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
    settled = _reading(
        component=component,
        arguments=arguments,
        given=given,
        mask=mask,
        layout=layout,
        choices=choices,
        parameters=parameters,
        strict=strict,
        anyway=anyway,
    )
    return resolve.backend_of(target, settled)


def _reading(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not empty, checked as :class:`Reading` does."""
    return Reading(**{name: value for name, value in settings.items() if value}).as_dict()


def _loader(target: Backend | Callable[..., Any] | str, backend: Backend) -> str:
    """Return code that loads the backend again; what is inferred brings code of its own."""
    if hasattr(backend, "reproduction_script"):
        return ""
    return resolve.loader(target) if isinstance(target, str) else resolve.loader_of(backend)
