"""Variants of correct code, one of which may explain a wrong answer: options, faults and pairs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from attentest.harness.oracle import Reference
from attentest_spec import CHOICES, Backend, Choices

if TYPE_CHECKING:
    from attentest.faults import Fault


@dataclass(frozen=True)
class Variant:
    """Options that differ from the declared ones, and faults, in one implementation.

    `home` is the number of the reference model that the faults are injected into: models of two
    styles differ where behaviour is unspecified, as for a query that may attend to nothing.
    """

    options: Mapping[str, str]
    faults: tuple["Fault", ...]
    declared: Choices
    home: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The options as `choice=option`, and the slugs of the faults."""
        flipped = (f"{choice}={option}" for choice, option in self.options.items())
        return (*flipped, *(fault.slug for fault in self.faults))

    def reaches(self, component: str) -> bool:
        """Say whether it can change `component`; every option is taken to."""
        return all(fault.reaches(component) for fault in self.faults)

    @property
    def kind(self) -> str:
        """Whether it is an option, a fault, or a combination."""
        if len(self.names) > 1:
            return "combination"
        return "fault" if self.faults else "option"

    @property
    def text(self) -> str:
        """The difference, in words."""
        meanings = (
            f"the option {option} of the choice {choice} ({_meaning(choice, option)})"
            for choice, option in self.options.items()
        )
        faults = (f"the fault {fault.slug}: {fault.wrong}" for fault in self.faults)
        *first, last = [*meanings, *faults]
        return " together with ".join([*(one.removesuffix(".") for one in first), last])

    def backend(self) -> Backend:
        """Return it as a backend: the reference, or a model with the faults injected."""
        choices = self.declared.but(**self.options)
        if not self.faults:
            return Reference(choices)
        from attentest.faults import with_faults
        from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend

        specimen = REFERENCE_MODELS[self.faults[0].models[self.home]]
        return reference_backend(with_faults(specimen, *self.faults), choices.as_dict())

    def in_other_model(self) -> "Variant | None":
        """Return the same in the other reference model, None where it fits one alone."""
        other = self.faults and len(self.faults[0].models) > 1
        return replace(self, home=1) if other else None

    def combined(self, other: "Variant") -> "Variant | None":
        """Return both together; None for two of one choice or hook, or of different models.

        None as well where a fault is one of another option than the one that comes with it.
        """
        clash = set(self.options) & set(other.options)
        seams = {fault.seam for fault in self.faults} & {fault.seam for fault in other.faults}
        mine, theirs = self.faults[:1], other.faults[:1]
        homeless = mine and theirs and mine[0].models[0] not in theirs[0].models
        options = {**self.options, **other.options}
        needed = {
            name: one for fault in self.faults + other.faults for name, one in fault.choices.items()
        }
        foreign = any(needed.get(name, option) != option for name, option in options.items())
        if clash or seams or homeless or foreign:
            return None
        return Variant(options, self.faults + other.faults, self.declared)


def _meaning(choice: str, option: str) -> str:
    return next(one.meaning for one in CHOICES[choice].options if one.name == option)


def correct_backends(declared: Choices) -> list[Backend]:
    """Return implementations that are correct under the declared choices.

    The reference answers calls; reference models answer for gradients, modes and state.
    """
    if not _catalogue():
        return [Reference(declared)]
    from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend

    return [
        Reference(declared),
        *(reference_backend(one, declared.as_dict()) for one in REFERENCE_MODELS.values()),
    ]


def variant_named(names: Iterable[str], declared: Choices) -> Variant:
    """Return the variant with these :attr:`Variant.names`."""
    names = list(names)
    options = dict(name.split("=", 1) for name in names if "=" in name)
    faults = tuple(_catalogue()[name] for name in names if "=" not in name)
    return Variant(options, faults, declared)


def singles(declared: Choices, component: str, clause: str) -> Iterator[Variant]:
    """Yield what may explain a wrong `component`, the likeliest first, as the time is limited.

    Options come first, then the faults that `clause` is there to catch, then those of the
    component itself, then those of what it contains.
    """
    for choice in CHOICES.values():
        for option in choice.options:
            if option.name != declared[choice.name]:
                yield Variant({choice.name: option.name}, (), declared)

    def order(fault: "Fault") -> tuple[bool, bool]:
        return fault.clause != clause, component not in fault.changes

    for fault in sorted(_catalogue().values(), key=order):
        fitting = all(declared[name] == value for name, value in fault.choices.items())
        if fault.reaches(component) and fitting:
            yield Variant({}, (fault,), declared)


def in_other_models(given: Iterable[Variant]) -> Iterator[Variant]:
    """Yield those of `given` that fit the other reference model, injected there."""
    return (other for one in given if (other := one.in_other_model()) is not None)


def pairs(active: Sequence[Variant], component: str) -> Iterator[Variant]:
    """Yield two of `active` together, where both are options or faults of the component itself.

    Faults in state and mode give answers by chance, and together with one of them anything fits.
    The same is true of three and more: a pair that explained another clause is not combined again.
    Options come first with the faults that there are under them alone.
    """
    own = [
        one
        for one in active
        if len(one.names) == 1 and all(_is_steady(fault, component) for fault in one.faults)
    ]
    for one in own:
        yield from _under(one, component)
    for first, second in combinations(own, 2):
        both = first.combined(second)
        if both is not None:
            yield both


def _is_steady(fault: "Fault", component: str) -> bool:
    return component in fault.changes and fault.kind in ("value", "loud", "gradient")


def _under(option: Variant, component: str) -> Iterator[Variant]:
    """Yield an option that is not declared together with each fault that needs it."""
    known = option.declared.but(**option.options)
    for fault in _catalogue().values() if option.options else ():
        needs = option.options.items() <= fault.choices.items()
        fitting = all(known[name] == value for name, value in fault.choices.items())
        if needs and fitting and _is_steady(fault, component):
            yield replace(option, faults=(fault,))


def _catalogue() -> Mapping[str, "Fault"]:
    """Return the faults; none where torch, which the reference models need, is not installed."""
    try:
        from attentest.faults import faults
    except ImportError:
        return {}
    return faults()
