"""Faults in what the module holds: parameters, buffers, devices."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

Device = torch.device | None


@fault(
    "positional_encoding.table-trained",
    "not-trained",
    seam="hold_table",
    origin="B045",
    kind="state",
    specimens=("plain",),
)
def table_trained(self: Seams, module: Node, table: Tensor) -> None:
    """The fixed table is a parameter. It drifts in training and counts as weights."""
    module.table = nn.Parameter(table)


def _planted(self: Seams, module: Node) -> Node:
    """Return a sound `module` with the seams of the specimen that has the fault."""
    module.how = self
    return module


@fault(
    "positional_encoding.second-table-trained",
    "not-trained",
    seam="make_positions",
    origin="B045",
    kind="state",
)
def second_table_trained(self: Seams) -> Node:
    """The table that is kept for plots is a parameter.

    An optimiser holds state for it, and it counts as weights.
    """
    module = self.sound.make_positions()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    module.register_parameter("shown", nn.Parameter(table))
    return _planted(self, module)


@fault(
    "positional_encoding.learned-table-frozen",
    "not-trained",
    seam="make_positions",
    choices={"positional_encoding": "learned"},
    kind="state",
)
def learned_table_frozen(self: Seams) -> Node:
    """The learned table is frozen. Positions stay the random numbers that they were born with."""
    module = self.sound.make_positions()
    return _planted(self, module.requires_grad_(False))


@fault(
    "positional_encoding.table-saved",
    "not-saved",
    seam="hold_table",
    origin="B047",
    kind="state",
    specimens=("plain",),
)
def table_saved(self: Seams, module: Node, table: Tensor) -> None:
    """The fixed table is part of the saved state.

    A checkpoint cannot be loaded with another longest length.
    """
    module.register_buffer("table", table)


@fault(
    "positional_encoding.position-numbers-saved",
    "not-saved",
    seam="make_positions",
    origin="B047",
    kind="state",
)
def position_numbers_saved(self: Seams) -> Node:
    """The numbers of the positions are part of the saved state.

    A checkpoint cannot be loaded with another longest length.
    """
    module = self.sound.make_positions()
    module.register_buffer("numbers", torch.arange(self.sizes.max_length)[None])
    return _planted(self, module)


@fault(
    "positional_encoding.table-plain-attribute",
    "follows-moves",
    seam="hold_table",
    origin="B046",
    kind="state",
    specimens=("plain",),
)
def table_plain_attribute(self: Seams, module: Node, table: Tensor) -> None:
    """The table is a plain attribute of the module.

    It stays behind when the module is moved, and the sum fails.
    """
    module.table = table


@fault(
    "positional_encoding.table-in-a-list",
    "follows-moves",
    seam="make_positions",
    origin="B046",
    kind="state",
)
def table_in_a_list(self: Seams) -> Node:
    """The table is kept in a list, and brought to its place in every call.

    It is copied to the accelerator at every step.
    """
    module = self.sound.make_positions()
    kept = [self.position_table(self.sizes.max_length, self.sizes.d_model)]
    object.__setattr__(module, "kept", kept)
    return _planted(self, module)


@fault(
    "positional_encoding.rows-made-on-the-processor",
    "follows-moves",
    seam="position_rows",
    origin="B046",
    kind="loud",
)
def rows_made_on_the_processor(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    """The rows are made on the processor, wherever the input is.

    On an accelerator the sum fails.
    """
    return self.sound.position_table(length, self.sizes.d_model)
