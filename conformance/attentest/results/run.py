"""The record of a run: its plan and, for each backend, its description and its verdicts.

The runner fills it, the stream writes and reads it, and every view shows it.
"""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attentest.results.branches import Branch, not_run, sentence
from attentest.results.plan import Plan, select
from attentest.results.verdict import Status, Verdict
from attentest_spec import CHOICES, COMPONENTS, Limits
from attentest_spec.choices import Value
from attentest_spec.clauses import KINDS, Clause, clauses

_CLAUSE = ("slug", "chapter", "component", "level", "depth", "kind", "text", "reason", "source")
_CHOICE = ("name", "paper", "first", "clause", "why")
_SETTINGS = ("precision", "device", "seed", "effort", "shrink", "limit", "memory")


@dataclass(frozen=True)
class Description:
    """The declarations of a backend, as plain values.

    `inferred` are the sentences on how code that is no backend is called; its key in the stream
    is "understood". `assumed` are those of them that may be wrong, `summary` is one line with
    the rest.
    """

    title: str = ""
    components: tuple[str, ...] = ()
    choices: Mapping[str, Value] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    inferred: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain values for the stream."""
        values = asdict(self)
        values["understood"] = list(values.pop("inferred"))
        values["assumed"] = list(values["assumed"])
        return {**values, "components": list(self.components)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Description":
        """Read a description back; raises LookupError or TypeError where a part is missing."""
        return cls(
            title=plain["title"],
            components=tuple(plain["components"]),
            choices=dict(plain["choices"]),
            limits=dict(plain["limits"]),
            inferred=tuple(plain.get("understood", ())),
            assumed=tuple(plain.get("assumed", ())),
            summary=plain.get("summary", ""),
        )

    def precision(self, asked: str) -> str:
        """Return the precision that is judged where `asked` is: the finest claimed, at most."""
        claimed = self.limits.get("precisions")
        return Limits(precisions=claimed).finest if claimed and asked == "float64" else asked


@dataclass
class BackendRun:
    """One backend of a run: its description, and its verdicts in the order of the plan.

    `measured` holds statements that are measured and not judged; `branches` are those of code that
    is no backend, in functions that judged calls ran; `failure` is the reason why it could not be
    loaded, "" where it was.
    """

    target: str
    description: Description = field(default_factory=Description)
    verdicts: list[Verdict] = field(default_factory=list)
    measured: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    branches: tuple[Branch, ...] = ()

    @property
    def left_out(self) -> str:
        """The branches of its code that no judged call ran, in one sentence; "" for none."""
        return sentence(left := not_run(self.branches), most=len(left))

    @property
    def by_clause(self) -> dict[str, Verdict]:
        """The verdicts by their clauses."""
        return {verdict.clause: verdict for verdict in self.verdicts}

    @property
    def totals(self) -> dict[str, int]:
        """The number of verdicts of each status, zeros included."""
        counted = Counter(verdict.status for verdict in self.verdicts)
        return {status: counted[status] for status in Status}

    @property
    def score(self) -> tuple[int, int]:
        """The number of clauses that the backend conforms to, and of those judged."""
        return score(self.verdicts)

    @property
    def scores(self) -> dict[str, tuple[int, int]]:
        """The score of the clauses of each kind, of those kinds that were judged."""
        scores = {kind: score(self.of_kind(kind)) for kind in KINDS}
        return {kind: score for kind, score in scores.items() if score[1]}

    def of_kind(self, kind: str) -> list[Verdict]:
        """Return the verdicts on the clauses of `kind`, as far as the specification has them."""
        known = clauses()
        return [v for v in self.verdicts if v.clause in known and known[v.clause].kind == kind]

    @property
    def errors(self) -> int:
        """The number of different errors; one may have been raised in many clauses."""
        return len({one.cause for one in self.verdicts if one.status is Status.ERROR})

    @property
    def conforms(self) -> bool:
        """Whether no verdict is a violation, an error, a timeout or a crash."""
        return not any(verdict.status.fails for verdict in self.verdicts)

    @property
    def compared(self) -> int:
        """The number of clauses for which outputs were compared with what the spec says."""
        return sum(verdict.status.compared for verdict in self.about_outputs)

    @property
    def about_outputs(self) -> list[Verdict]:
        """The verdicts on values, but for gradients: these are compared with the own outputs."""
        return [v for v in self.of_kind("values") if _about_outputs(clauses()[v.clause])]

    @property
    def lacks_numbers(self) -> bool:
        """Whether nothing fails, and outputs that could be compared were not.

        A component that is not provided has none that could be.
        """
        provided = self.description.components or tuple(COMPONENTS)
        wanted = any(clauses()[v.clause].component in provided for v in self.about_outputs)
        failed = any(verdict.status.fails_run for verdict in self.verdicts)
        return wanted and not failed and not self.compared


@dataclass(frozen=True)
class Run:
    """A run of several backends, in the order of the columns.

    `not_installed` are backends that were left out, with the commands that install them.
    `clauses` and `choices` describe what was judged as the specification had it at the time.
    `name` is that of the file it was read from.
    """

    plan: Plan
    backends: tuple[BackendRun, ...]
    not_installed: Mapping[str, str]
    environment: Mapping[str, str]
    clauses: Mapping[str, Mapping[str, Any]]
    choices: Mapping[str, Mapping[str, Any]]
    name: str = field(default="this run", compare=False)

    @classmethod
    def of(
        cls,
        plan: Plan,
        backends: Iterable[BackendRun] = (),
        not_installed: Mapping[str, str] | None = None,
    ) -> "Run":
        """Return a run of this process, under the specification that is installed."""
        return cls(
            plan,
            tuple(backends),
            dict(not_installed or {}),
            environment(),
            {slug: _fields(clauses()[slug], _CLAUSE) for slug in plan.clauses},
            {name: _fields(choice, _CHOICE) for name, choice in CHOICES.items()},
        )

    def __iter__(self) -> Iterator[BackendRun]:
        """Iterate over the backends."""
        return iter(self.backends)

    def __getitem__(self, target: str) -> BackendRun:
        """Return the backend `target`; LookupError where there is none."""
        return {one.target: one for one in self.backends}[target]

    @property
    def targets(self) -> list[str]:
        """The names of the backends."""
        return [one.target for one in self.backends]

    @property
    def settings(self) -> dict[str, str]:
        """The dependencies of verdicts apart from the backend: settings, then versions."""
        plan = self.plan.as_dict()
        return {**{name: str(plan[name]) for name in _SETTINGS}, **self.environment}

    @property
    def exit_code(self) -> int:
        """0 when all conform, 1 when one does not, 3 when one cannot be judged.

        A backend cannot be judged where it could not be loaded, or where nothing fails and no
        number was compared. One that got fewer verdicts than there are clauses in the plan does not
        conform.
        """
        if any(one.failure or one.lacks_numbers for one in self.backends):
            return 3
        return int(
            any(
                len(one.verdicts) != len(self.plan.clauses)
                or any(verdict.status.fails_run for verdict in one.verdicts)
                for one in self.backends
            )
        )

    @property
    def focused(self) -> "Run":
        """The same run; where all adapters were inferred, without components that none provides."""
        loaded = [one.description for one in self if not one.failure]
        if not all(one.inferred for one in loaded):
            return self
        return self.limited(name for one in loaded for name in one.components)

    def limited(self, components: Iterable[str]) -> "Run":
        """Return the same run with the clauses of `components`, and those about all, alone."""
        wanted = set(select(components)) if (components := tuple(components)) else ()
        slugs = [one for one in self.plan.clauses if one in wanted]
        return replace(
            self,
            plan=replace(self.plan, clauses=tuple(slugs)),
            backends=tuple(
                replace(one, verdicts=[v for v in one.verdicts if v.clause in slugs])
                for one in self.backends
            ),
        )


def _about_outputs(clause: Clause) -> bool:
    return clause.kind == "values" and "gradient" not in clause.needs


def score(verdicts: Iterable[Verdict]) -> tuple[int, int]:
    """Return the number of verdicts that conform, and of those judged."""
    judged = [verdict.status for verdict in verdicts if verdict.status.judged]
    return sum(status.conforms for status in judged), len(judged)


def environment() -> dict[str, str]:
    """Return the versions that numbers can depend on."""
    versions = {"python": platform.python_version(), "system": platform.platform()}
    for package in ("attentest", "attentest-spec", "numpy", "hypothesis", "torch"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _fields(thing: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
