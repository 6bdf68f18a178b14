"""Faults in deep copies and pickles."""

import copy
from typing import Any, TypeVar

import torch

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node
from attentest_spec import Sizes

Same = TypeVar("Same", bound=Node)


class _Shallow(Node):
    """A model whose deep copy shares everything."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Shallow":
        return copy.copy(self)


def _as(self: Hooks, kind: type[Node]) -> Node:
    """Return a correct model of another class."""
    model = self.correct.make_model()
    model.__class__ = kind
    return model


@fault("model.shallow-copy", "deep-copy", seam="make_model", kind="state")
def shallow_copy(self: Hooks) -> Node:
    """A deep copy shares its parameters. An averaged model equals the model."""
    return _as(self, _Shallow)


class _HalfDeep(Node):
    """A model whose deep copy keeps the decoder of the original."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_HalfDeep":
        memo[id(self.decoder)] = self.decoder
        return _deep(self, memo)


def _deep(model: Same, memo: dict[int, Any]) -> Same:
    copied = model.__class__.__new__(model.__class__)
    copied.__dict__ = copy.deepcopy(model.__dict__, memo)
    return copied


@fault("model.copy-keeps-the-decoder", "deep-copy", seam="make_model", kind="state")
def copy_keeps_the_decoder(self: Hooks) -> Node:
    """A deep copy holds the decoder of the original. Training one changes the other."""
    return _as(self, _HalfDeep)


class _PartByPart(Node):
    """A model whose parts are copied one by one, which unties them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_PartByPart":
        copied = _deep(self, memo)
        for name, part in self.named_children():
            setattr(copied, name, copy.deepcopy(part))
        return copied


@fault("model.copy-unties", "deep-copy", seam="make_model", kind="state")
def copy_unties(self: Hooks) -> Node:
    """Parts are copied one by one. Tied matrices are separate in the copy."""
    return _as(self, _PartByPart)


class _Forgetful(Node):
    """A model that comes back from a pickle with the default pad ids."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        default = Sizes()
        how = self.how
        pads = {"source_pad": default.source_pad, "target_pad": default.target_pad}
        self.how = type(how)(how.sizes.but(**pads), how.choices)


@fault(
    "model.default-restored-from-pickle", "pickle", seam="make_model", origin="B080", kind="state"
)
def default_restored_from_pickle(self: Hooks) -> Node:
    """The pad ids are not pickled, and come back as the default.

    Workers hide another token than the process that sent them the model.
    """
    return _as(self, _Forgetful)


class _Rebuilt(Node):
    """A model that is pickled as the sizes and choices it was built from."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _reborn, (self.how,)


def _reborn(how: Hooks) -> Node:
    model = how.make_model()
    return model.eval().to(torch.float64)


@fault("model.pickled-without-weights", "pickle", seam="make_model", kind="state")
def pickled_without_weights(self: Hooks) -> Node:
    """A pickle holds the sizes alone. Workers compute with random weights."""
    return _as(self, _Rebuilt)


@fault("model.lambda-inside", "picklable", seam="make_model", kind="wording")
def lambda_inside(self: Hooks) -> Node:
    """The model holds a lambda. It cannot be pickled for a worker process."""
    model = self.correct.make_model()
    vars(model)["finish"] = lambda x: x
    return model
