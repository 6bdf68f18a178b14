"""Faults in deep copies and pickles."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import copy
from typing import Any, TypeVar

import torch

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams
from attentest_spec import Sizes

Same = TypeVar("Same", bound=Node)


class _Shallow(Node):
    """A model whose deep copy shares everything."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Shallow":
        return copy.copy(self)


def _as(self: Seams, kind: type[Node]) -> Node:
    """Return a sound model of another class."""
    model = self.sound.make_model()
    model.__class__ = kind
    return model


@fault(
    "model.shallow-copy",
    clause="model.deep-copy",
    wrong="A deep copy shares its parameters with the original.",
    effect="The averaged model is the model.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _Shallow)


class _HalfDeep(Node):
    """A model whose deep copy keeps the decoder that it was handed."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_HalfDeep":
        memo[id(self.decoder)] = self.decoder
        return _deep(self, memo)


def _deep(model: Same, memo: dict[int, Any]) -> Same:
    copied = model.__class__.__new__(model.__class__)
    copied.__dict__ = copy.deepcopy(model.__dict__, memo)
    return copied


@fault(
    "model.copy-keeps-the-decoder",
    clause="model.deep-copy",
    wrong="A deep copy holds the decoder of the original.",
    effect="Half of the teacher moves with the student.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _HalfDeep)


class _PartByPart(Node):
    """A model whose parts are copied one by one, each without knowing of the others."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_PartByPart":
        copied = _deep(self, memo)
        for name, part in self.named_children():
            setattr(copied, name, copy.deepcopy(part))
        return copied


@fault(
    "model.copy-unties",
    clause="model.deep-copy",
    wrong="Parts are copied one by one, and matrices that were one are three afterwards.",
    effect="The copy drifts apart from what it was declared to be.",
    kind="state",
)
def make_model(self: Seams) -> Node:
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
    "model.default-restored-from-pickle",
    clause="model.pickle",
    origin="B080",
    wrong="The pad ids are not pickled, and come back as the default.",
    effect="Workers hide another word than the process that sent them the model.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _Forgetful)


class _Reborn(Node):
    """A model that is pickled as the sizes and choices it was built from."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _reborn, (self.how,)


def _reborn(how: Seams) -> Node:
    model = how.make_model()
    return model.eval().to(torch.float64)


@fault(
    "model.pickled-without-weights",
    clause="model.pickle",
    wrong="A pickle holds the sizes alone, and the model is built anew from them.",
    effect="Workers compute with random weights.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _as(self, _Reborn)


@fault(
    "model.lambda-inside",
    clause="model.pickle",
    wrong="A function without a name is kept in the model.",
    effect="The model cannot be sent to a worker process.",
    kind="loud",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    vars(model)["finish"] = lambda x: x
    return model
