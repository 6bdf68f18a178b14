"""Question about a whole model whose layers are of a design that the spec does not have."""

from collections.abc import Callable, Iterator

from torch import nn

from attentest.targets.adapt.components import component_named
from attentest.targets.adapt.encoders.shared_layers import ONE_LAYER, holds_one_layer
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Unclear, Uncovered, Unmeant
from attentest_spec import Backend
from attentest_spec.choices import Value

Read = Callable[[type[nn.Module]], Backend]
"""Reads a class by itself; Unclear where it has to ask."""

_LAYERS = ("encoder_layer", "decoder_layer")
_ORDER = ("attention_rotary", "rotary_pairs", "rotary_base", "relative_bias")
"""The choices that one side of a model may make in another way than the other side."""


def demand_layers(model: nn.Module, name: str, read: Read) -> None:
    """Raise Uncovered where a layer of `model` by itself is a question, or two are of two designs.

    It is asked where no choice gives the numbers of the model: a mistake has to be one in a layer
    too, unless it is outside of the layers.
    """
    if holds_one_layer(model, DISTINCT.layers):
        raise Uncovered(f"No choice gives the numbers of {name}: {ONE_LAYER}.")
    shown = {}
    for kind in _layers(model):
        try:
            layer = read(kind)
        except Unmeant:  # the model makes the mask, and its numbers show what that hides
            continue
        except Uncovered as question:
            raise Uncovered(
                f"No choice gives the numbers of {name}, and one of its parts is of a design that "
                f"the spec does not have. {question}"
            ) from question
        except Unclear:  # it may be built in a way that only the model knows
            continue
        if getattr(layer, "fits", False):
            shown[kind.__name__] = {axis: layer.choices.get(axis, "none") for axis in _ORDER}
    for axis in _ORDER:
        options: dict[Value, str] = {one[axis]: own for own, one in shown.items()}
        if len(options) > 1:
            (first, own), (second, other), *_ = options.items()
            raise Uncovered(
                f"{name} is not judged as model: {own} has {axis}={first} and {other} has "
                f"{axis}={second}, as measured, and the spec has one option for all layers. Its "
                f"layers can be judged one by one. --anyway (in Python: anyway=True) judges it all "
                f"the same."
            )


def _layers(model: nn.Module) -> Iterator[type[nn.Module]]:
    """Yield the classes of layers that `model` holds, torch's own left out."""
    for kind in dict.fromkeys(type(one) for one in model.modules()):
        own = not kind.__module__.startswith("torch.")
        if own and component_named(kind.__name__) in _LAYERS:
            yield kind
