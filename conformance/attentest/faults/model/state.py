"""Faults in what is saved, and what moves with the model."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from typing import Any

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.model.shared import Unregistered
from attentest.specimens import Node, Seams


def _through_half(module: nn.Module, state: dict[str, Any], *rest: Any) -> None:
    for name, value in state.items():
        state[name] = value.to(torch.bfloat16).to(value.dtype)


@fault(
    "model.state-in-half-precision",
    clause="model.state-round-trip",
    wrong="The state is saved in a shorter format, to save space.",
    effect="The restarted model is not the one that was saved.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model._register_state_dict_hook(_through_half)  # type: ignore[no-untyped-call]
    return model


class _Turned(Node):
    """A generator that sees the state through a fixed random reflection, unsaved."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*(one * self.signs.to(one.dtype) for one in inputs))


@fault(
    "model.random-signs-not-saved",
    clause="model.state-round-trip",
    wrong="Signs drawn at birth lie in a buffer that is left out of the state.",
    effect="After a restart the weights meet other signs.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.generator.__class__ = _Turned
    signs = torch.where(torch.rand(self.sizes.d_model) < 0.5, -1.0, 1.0)
    model.generator.register_buffer("signs", signs, persistent=False)
    return model


@fault(
    "model.running-mean-not-saved",
    clause="model.state-round-trip",
    wrong="A running mean of the memory is kept as a plain attribute and used in evaluation.",
    effect="After a restart evaluation is worse until training has gone on for a while.",
    kind="state",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source)
    if self.is_training(module):
        self.memory["mean"] = memory.detach().mean(dim=(0, 1))
    mean: Tensor | float = self.memory.get("mean", 0.0)
    return memory - mean


@fault(
    "model.causal-mask-saved",
    clause="model.state-independent-of-max-length",
    origin="B047",
    wrong="A causal mask of the greatest length is part of the state.",
    effect="A checkpoint does not load into a model for longer sentences.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.register_buffer("causal", self.causal_mask(self.sizes.max_length))
    return model


@fault(
    "model.position-table-saved",
    clause="model.state-independent-of-max-length",
    origin="B047",
    wrong="A table of positions is part of the state.",
    effect="A checkpoint does not load into a model for longer sentences.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    model.source_positions.register_buffer("saved", table)
    return model


class _Tempered(Node):
    """A generator that multiplies its output by a temperature held as a plain tensor."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*inputs) * self.temperature[0]


@fault(
    "model.temperature-left-behind",
    clause="model.precision-move",
    origin="B046",
    wrong="A temperature is kept as a plain tensor: no move reaches it.",
    effect="A model moved to another precision or device computes with two of them.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.generator.__class__ = _Tempered
    model.generator.temperature = [torch.ones(1, dtype=torch.float64)]
    return model


@fault(
    "model.table-not-a-buffer",
    clause="model.device-move",
    origin="B046",
    wrong="The table of positions is a plain attribute.",
    effect="It stays behind when the model moves, and the first call fails.",
    specimens=("plain",),
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    for part in (model.source_positions, model.target_positions):
        vars(part)["table"] = part._buffers.pop("table")
    return model


@fault(
    "model.layers-in-a-dict",
    clause="model.device-move",
    origin="B088",
    wrong="The decoder's layers are kept in a plain dictionary.",
    effect="They stay on the device they were made on.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    layers = {f"layer {number}": layer for number, layer in enumerate(model.decoder.layers)}
    model.decoder.layers = Unregistered(layers)
    return model
