"""What a fault is, how one is written, and how it is planted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from types import new_class
from typing import Any, Literal

from attentest.specimens import SPECIMENS, Seams, seam_names, specimen_backend
from attentest.specimens.seams import Base
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.clauses import clauses
from attentest_spec.components import inside
from attentest_spec.names import require
from attentest_spec.torch import TorchBackend

Kind = Literal["value", "state", "gradient", "mode", "loud"]
Override = Callable[..., Any]

_FAULTS: dict[str, "Fault"] = {}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One catalogued mistake: one override of one seam.

    `clause` is the one that must catch it, `wrong` says in one line what is wrong, `effect` what
    a user sees, `origin` where it was met ("B023" of the list of known bugs, "A" to "D" for a
    published system, "own"). `specimens` are those it can be planted in, `choices` what must be
    declared for it to exist or to show. `kind` says where it shows; "loud" means it raises.
    `components` are the innermost ones that it changes: the clause's unless said otherwise.
    """

    slug: str
    clause: str
    wrong: str
    effect: str
    origin: str
    seam: str
    override: Override = field(repr=False)
    specimens: tuple[str, ...] = tuple(SPECIMENS)
    choices: Mapping[str, Value] = field(default_factory=dict)
    kind: Kind = "value"
    components: tuple[str, ...] = ()

    @property
    def chapter(self) -> str:
        """The chapter that the slug begins with."""
        return self.slug.split(".", maxsplit=1)[0]

    @property
    def component(self) -> str:
        """The component that it is planted in."""
        return self.changes[0]

    @property
    def changes(self) -> tuple[str, ...]:
        """The innermost components that it changes."""
        known = clauses()
        return self.components or (known[require("clause", self.clause, known)].component,)

    def reaches(self, component: str) -> bool:
        """Say whether it can change `component`; what all components share reaches any."""
        return hasattr(Base, self.seam) or bool(inside(component).intersection(self.changes))


def fault(
    slug: str,
    *,
    clause: str,
    wrong: str,
    effect: str,
    origin: str = "own",
    specimens: tuple[str, ...] = tuple(SPECIMENS),
    choices: Mapping[str, Value] | None = None,
    kind: Kind = "value",
    components: tuple[str, ...] = (),
) -> Callable[[Override], Override]:
    """Register the decorated function as a fault; its own name is the seam that it overrides.

    The function is a method of the specimen: `self.sound` is the specimen without the fault.
    """

    def register(override: Override) -> Override:
        if slug in _FAULTS:
            raise ValueError(f"There are two faults named {slug}.")
        _FAULTS[slug] = Fault(
            slug=slug,
            clause=clause,
            wrong=wrong,
            effect=effect,
            origin=origin,
            seam=require("seam", override.__name__, seam_names()),
            override=override,
            specimens=specimens,
            choices=dict(choices or {}),
            kind=kind,
            components=components,
        )
        return override

    return register


def registered() -> Mapping[str, Fault]:
    """Return the faults of the chapters that have been imported."""
    return _FAULTS


def planted(fault: Fault, specimen: str) -> TorchBackend:
    """Return the backend of `specimen` with `fault` planted into it."""
    require("specimen", specimen, fault.specimens)
    return specimen_backend(
        infected(SPECIMENS[specimen], fault), fault.choices, name=f"{specimen}+{fault.slug}"
    )


def infected(specimen: type[Seams], *faults: Fault) -> type[Seams]:
    """Return a subclass of `specimen` with the overrides of `faults`, that copies and pickles.

    The faults override unlike seams. What each of them calls sound has the others in it.
    """

    def reduce(self: Seams) -> tuple[Any, ...]:
        slugs = tuple(fault.slug for fault in faults)
        return _replanted, (slugs, specimen.specimen, self.sizes, self.choices)

    def sound(self: Seams) -> Seams:
        asking = self.__dict__["asking"][-1]
        others = [fault for fault in faults if fault is not asking]
        kind = infected(specimen, *others) if others else specimen
        return kind(self.sizes, self.choices)

    body: dict[str, Any] = {"sound": property(sound), "__reduce__": reduce}
    body |= {fault.seam: _asking(fault) for fault in faults}
    return new_class(specimen.__name__, (specimen,), exec_body=lambda space: space.update(body))


def _asking(fault: Fault) -> Override:
    """Return the override of `fault`, that notes who is asking for what is sound."""

    @wraps(fault.override)
    def override(self: Seams, *inputs: Any, **named: Any) -> Any:
        asking = self.__dict__.setdefault("asking", [])
        asking.append(fault)
        try:
            return fault.override(self, *inputs, **named)
        finally:
            asking.pop()

    return override


def _replanted(slugs: tuple[str, ...], specimen: str, sizes: Sizes, choices: Choices) -> Seams:
    """Plant faults again where a specimen was pickled: a class made on the fly cannot be."""
    from attentest.faults import faults

    return infected(SPECIMENS[specimen], *(faults()[slug] for slug in slugs))(sizes, choices)
