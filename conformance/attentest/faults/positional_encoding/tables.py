"""Faults in what the module holds: parameters, buffers, devices."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

Device = torch.device | None


@fault(
    "positional_encoding.table-trained",
    clause="positional_encoding.not-trained",
    origin="B045",
    wrong="The fixed table is a parameter.",
    effect="It drifts in training and counts as weights.",
    specimens=("plain",),
    kind="state",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    module.table = nn.Parameter(table)


def _planted(self: Seams, module: Node) -> Node:
    """Return a sound `module` with the seams of the specimen that has the fault."""
    module.how = self
    return module


@fault(
    "positional_encoding.second-table-trained",
    clause="positional_encoding.not-trained",
    origin="B045",
    wrong="The table that is kept for plots is a parameter.",
    effect="An optimiser holds state for it, and it counts as weights.",
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    module.register_parameter("shown", nn.Parameter(table))
    return _planted(self, module)


@fault(
    "positional_encoding.learned-table-frozen",
    clause="positional_encoding.not-trained",
    wrong="The learned table is frozen.",
    effect="Positions stay the random numbers that they were born with.",
    choices={"positional_encoding": "learned"},
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    return _planted(self, module.requires_grad_(False))


@fault(
    "positional_encoding.table-saved",
    clause="positional_encoding.not-saved",
    origin="B047",
    wrong="The fixed table is part of the saved state.",
    effect="A checkpoint cannot be loaded with another longest length.",
    specimens=("plain",),
    kind="state",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    module.register_buffer("table", table)


@fault(
    "positional_encoding.position-numbers-saved",
    clause="positional_encoding.not-saved",
    origin="B047",
    wrong="The numbers of the positions are part of the saved state.",
    effect="A checkpoint cannot be loaded with another longest length.",
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    module.register_buffer("numbers", torch.arange(self.sizes.max_length)[None])
    return _planted(self, module)


@fault(
    "positional_encoding.table-plain-attribute",
    clause="positional_encoding.follows-moves",
    origin="B046",
    wrong="The table is a plain attribute of the module.",
    effect="It stays behind when the module is moved, and the sum fails.",
    specimens=("plain",),
    kind="state",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    module.table = table


@fault(
    "positional_encoding.table-in-a-list",
    clause="positional_encoding.follows-moves",
    origin="B046",
    wrong="The table is kept in a list, and brought to its place in every call.",
    effect="It is copied to the accelerator at every step.",
    kind="state",
)
def make_positions(self: Seams) -> Node:
    module = self.sound.make_positions()
    kept = [self.position_table(self.sizes.max_length, self.sizes.d_model)]
    object.__setattr__(module, "kept", kept)
    return _planted(self, module)


@fault(
    "positional_encoding.rows-made-on-the-processor",
    clause="positional_encoding.follows-moves",
    origin="B046",
    wrong="The rows are made on the processor, wherever the input is.",
    effect="On an accelerator the sum fails.",
    kind="loud",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    return self.sound.position_table(length, self.sizes.d_model)
