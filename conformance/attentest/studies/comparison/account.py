"""Facts about a backend before its numbers are compared: choices, limits, components."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from attentest.analysis.identify import MEASURED, Finding, identify
from attentest.analysis.identify.finding import with_undetermined
from attentest.results.text import line, plain_value
from attentest.studies.comparison.pictures import Picture, pictures
from attentest_spec import COMPONENTS, Backend, Choices, Limits
from attentest_spec.choices import Value


@dataclass(frozen=True)
class Account:
    """The name of a backend, its components, limits, declared and measured choices, and draws."""

    name: str
    title: str
    components: tuple[str, ...]
    limits: Limits
    findings: Mapping[str, Finding]
    pictures: tuple[Picture, ...] = ()

    @classmethod
    def of(cls, backend: Backend) -> "Account":
        """Describe and identify `backend`.

        Raises ValueError or UnknownName where its declaration is not well formed.
        """
        Choices.of(backend.choices)
        account = cls(
            line(str(backend.name)),
            line(str(backend.title), 200),
            tuple(name for name in COMPONENTS if name in backend.components),
            backend.limits,
            with_undetermined(identify(backend)),
        )
        drawn = pictures(account.name, backend, account.choices)
        return replace(account, pictures=drawn)

    @property
    def choices(self) -> Choices:
        """The declared choice, or the measured one where the numbers contradict it."""
        return Choices.of({name: _settled(one) for name, one in self.findings.items()})

    @property
    def known(self) -> frozenset[str]:
        """The choices that it declares or shows; of the others nothing is known."""
        return frozenset(
            name
            for name, one in self.findings.items()
            if one.declared is not None or one.status == MEASURED
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        limits = {name: _listed(value) for name, value in vars(self.limits).items()}
        findings = {name: plain_value(asdict(one)) for name, one in self.findings.items()}
        drawn = [one.as_dict() for one in self.pictures]
        return {**vars(self), "limits": limits, "findings": findings, "pictures": drawn}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Account":
        """Read an account back from plain values."""
        return cls(
            plain["name"],
            plain["title"],
            tuple(plain["components"]),
            Limits(**plain["limits"]),
            {name: Finding.from_dict(one) for name, one in plain["findings"].items()},
            tuple(map(Picture.from_dict, plain["pictures"])),
        )


def _settled(one: Finding) -> Value:
    if one.declared is not None and one.agrees:
        return one.declared
    if one.status == MEASURED and one.measured is not None:
        return one.measured
    return one.declared if one.declared is not None else Choices()[one.choice]


def _listed(value: Any) -> Any:
    return sorted(value) if isinstance(value, Collection) and not isinstance(value, str) else value
