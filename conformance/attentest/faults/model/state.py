"""Faults in the saved state, and in moves of the model."""

from typing import Any

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import Unregistered
from attentest.faults.reference_models import Hooks, Node


def _through_half(module: Node, state: dict[str, Any], *rest: Any) -> None:
    for name, value in state.items():
        state[name] = value.to(torch.bfloat16).to(value.dtype)


@fault("model.state-in-half-precision", "state-round-trip", seam="make_model", kind="state")
def state_in_half_precision(self: Hooks) -> Node:
    """The state is saved in half precision. A restarted model differs."""
    model = self.correct.make_model()
    model._register_state_dict_hook(_through_half)  # type: ignore[no-untyped-call]
    return model


class _Turned(Node):
    """A generator that sees the state through a fixed random reflection, unsaved."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*(one * self.signs.to(one.dtype) for one in inputs))


@fault("model.random-signs-not-saved", "state-round-trip", seam="make_model", kind="state")
def random_signs_not_saved(self: Hooks) -> Node:
    """Random signs are not part of the state. After a restart the weights meet other signs."""
    model = self.correct.make_model()
    model.generator.__class__ = _Turned
    signs = torch.where(torch.rand(self.sizes.d_model) < 0.5, -1.0, 1.0)
    model.generator.register_buffer("signs", signs, persistent=False)
    return model


@fault("model.running-mean-not-saved", "state-round-trip", seam="encode", kind="state")
def running_mean_not_saved(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """A running mean of the memory is kept as a plain attribute and used in evaluation.

    After a restart evaluation is worse until training has gone on for a while.
    """
    memory = self.correct.encode(module, source)
    if self.is_training(module):
        self.memory["mean"] = memory.detach().mean(dim=(0, 1))
    mean: Tensor | float = self.memory.get("mean", 0.0)
    return memory - mean


@fault(
    "model.causal-mask-saved",
    "state-independent-of-max-length",
    seam="make_model",
    origin="B047",
    kind="state",
)
def causal_mask_saved(self: Hooks) -> Node:
    """A causal mask is in the state. Another maximum length cannot load it."""
    model = self.correct.make_model()
    model.register_buffer("causal", self.causal_mask(self.sizes.max_length))
    return model


@fault(
    "model.position-table-saved",
    "state-independent-of-max-length",
    seam="make_model",
    origin="B047",
    kind="state",
)
def position_table_saved(self: Hooks) -> Node:
    """A table of positions is in the state. Another maximum length cannot load it."""
    model = self.correct.make_model()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    model.source_positions.register_buffer("saved", table)
    return model


class _Tempered(Node):
    """A generator that multiplies its output by a temperature held as a plain tensor."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*inputs) * self.temperature[0]


@fault(
    "model.temperature-left-behind",
    "precision-move",
    seam="make_model",
    origin="B046",
    kind="state",
)
def temperature_left_behind(self: Hooks) -> Node:
    """A temperature is kept as a plain tensor: no move reaches it.

    A model moved to another precision or device computes with two of them.
    """
    model = self.correct.make_model()
    model.generator.__class__ = _Tempered
    vars(model.generator)["temperature"] = [torch.ones(1, dtype=torch.float64)]
    return model


@fault(
    "model.table-not-a-buffer",
    "device-move",
    seam="make_model",
    origin="B046",
    kind="state",
    models=("plain",),
)
def table_not_a_buffer(self: Hooks) -> Node:
    """The table of positions is a plain attribute. After a move the first call fails."""
    model = self.correct.make_model()
    for part in (model.source_positions, model.target_positions):
        vars(part)["table"] = part._buffers.pop("table")
    return model


@fault("model.layers-in-a-dict", "device-move", seam="make_model", origin="B088", kind="state")
def layers_in_a_dict(self: Hooks) -> Node:
    """The decoder's layers are in a plain dict. They stay on their first device."""
    model = self.correct.make_model()
    layers = {f"layer {number}": layer for number, layer in enumerate(model.decoder.layers)}
    model.decoder.layers = Unregistered(layers)
    return model
