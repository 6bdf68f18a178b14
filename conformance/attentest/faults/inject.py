"""The injection of faults into a specimen."""

from functools import wraps
from types import new_class
from typing import Any

from attentest.faults.fault import Fault, Override
from attentest.specimens import SPECIMENS, Seams, specimen_backend
from attentest_spec import Choices, Sizes
from attentest_spec.names import require
from attentest_spec.torch import TorchBackend


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
