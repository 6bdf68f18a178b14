"""The injection of faults into a reference model."""

from functools import cache, wraps
from types import new_class
from typing import Any

from attentest.faults.catalogue import faults
from attentest.faults.fault import Fault, Override
from attentest.faults.reference_models import REFERENCE_MODELS, Hooks, reference_backend
from attentest_spec import Choices, Sizes
from attentest_spec.names import require
from attentest_spec.torch import TorchBackend


def inject(fault: Fault, model: str) -> TorchBackend:
    """Return the backend of the reference model named `model` with `fault` in it."""
    require("reference model", model, fault.models)
    wrong = with_faults(REFERENCE_MODELS[model], fault)
    return reference_backend(wrong, fault.choices, name=f"{model}+{fault.slug}")


def with_faults(model: type[Hooks], *injected: Fault) -> type[Hooks]:
    """Return a subclass of `model` with the overrides of the faults, that copies and pickles.

    The faults override different hooks. What is correct for one of them has the others in it.
    The same class is returned each time, except for faults that may keep something in it.
    """
    stateful = any(fault.kind == "state" for fault in injected)
    return (_subclass if stateful else _subclass_once)(model, *injected)


def _subclass(model: type[Hooks], *injected: Fault) -> type[Hooks]:
    """Return a new subclass of `model` with the overrides of the faults."""

    def reduce(self: Hooks) -> tuple[Any, ...]:
        slugs = tuple(fault.slug for fault in injected)
        return _injected_again, (slugs, model.name, self.sizes, self.choices)

    def correct(self: Hooks) -> Hooks:
        caller = self.__dict__["callers"][-1]
        others = [fault for fault in injected if fault is not caller]
        kind = with_faults(model, *others) if others else model
        return kind(self.sizes, self.choices)

    body: dict[str, Any] = {"correct": property(correct), "__reduce__": reduce}
    body |= {fault.seam: _recorded(fault) for fault in injected}
    return new_class(model.__name__, (model,), exec_body=lambda space: space.update(body))


_subclass_once = cache(_subclass)


def _recorded(fault: Fault) -> Override:
    """Return the override of `fault`, recorded as the caller of what is correct."""

    @wraps(fault.override)
    def override(self: Hooks, *inputs: Any, **named: Any) -> Any:
        callers = self.__dict__.setdefault("callers", [])
        callers.append(fault)
        try:
            return fault.override(self, *inputs, **named)
        finally:
            callers.pop()

    return override


def _injected_again(slugs: tuple[str, ...], model: str, sizes: Sizes, choices: Choices) -> Hooks:
    """Inject the faults of a pickled model: its class, made at run time, cannot be pickled."""
    kind = with_faults(REFERENCE_MODELS[model], *(faults()[slug] for slug in slugs))
    return kind(sizes, choices)
