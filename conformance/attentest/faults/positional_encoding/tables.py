"""Faults in parameters, buffers and devices of the table."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks, Node


@fault(
    "positional_encoding.table-trained",
    "not-trained",
    seam="hold_table",
    origin="B045",
    kind="state",
    models=("plain",),
)
def table_trained(self: Hooks, module: Node, table: Tensor) -> None:
    """The fixed table is a parameter. Training changes it, and it is counted."""
    module.table = nn.Parameter(table)


def _held(self: Hooks, module: Node) -> Node:
    """Return a correct `module` whose calls go to the model that has the fault."""
    module.how = self
    return module


@fault(
    "positional_encoding.second-table-trained",
    "not-trained",
    seam="make_positions",
    origin="B045",
    kind="state",
)
def second_table_trained(self: Hooks) -> Node:
    """A second table, kept for plots, is a parameter. It is counted and optimised."""
    module = self.correct.make_positions()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    module.register_parameter("shown", nn.Parameter(table))
    return _held(self, module)


@fault(
    "positional_encoding.learned-table-frozen",
    "not-trained",
    seam="make_positions",
    choices={"positional_encoding": "learned"},
    kind="state",
)
def learned_table_frozen(self: Hooks) -> Node:
    """The learned table is frozen. Positions keep their random initial values."""
    module = self.correct.make_positions()
    return _held(self, module.requires_grad_(False))


@fault(
    "positional_encoding.table-saved",
    "not-saved",
    seam="hold_table",
    origin="B047",
    kind="state",
    models=("plain",),
)
def table_saved(self: Hooks, module: Node, table: Tensor) -> None:
    """The fixed table is in the saved state. Another maximum length cannot load it."""
    module.register_buffer("table", table)


@fault(
    "positional_encoding.position-numbers-saved",
    "not-saved",
    seam="make_positions",
    origin="B047",
    kind="state",
)
def position_numbers_saved(self: Hooks) -> Node:
    """The position numbers are in the saved state. Another maximum length cannot load it."""
    module = self.correct.make_positions()
    module.register_buffer("numbers", torch.arange(self.sizes.max_length)[None])
    return _held(self, module)


@fault(
    "positional_encoding.table-plain-attribute",
    "follows-moves",
    seam="hold_table",
    origin="B046",
    kind="state",
    models=("plain",),
)
def table_plain_attribute(self: Hooks, module: Node, table: Tensor) -> None:
    """The table is a plain attribute. It stays behind when the module moves, and the sum fails."""
    module.table = table


@fault(
    "positional_encoding.table-in-a-list",
    "moved-once",
    seam="make_positions",
    origin="B046",
    kind="state",
)
def table_in_a_list(self: Hooks) -> Node:
    """The table is kept in a list and moved in every call. Each step copies it again."""
    module = self.correct.make_positions()
    kept = [self.position_table(self.sizes.max_length, self.sizes.d_model)]
    object.__setattr__(module, "kept", kept)
    return _held(self, module)


@fault(
    "positional_encoding.rows-made-on-the-processor",
    "follows-moves",
    seam="position_rows",
    origin="B046",
    kind="loud",
)
def rows_made_on_the_processor(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """The rows are always made on the CPU. On an accelerator the sum fails."""
    return self.correct.position_table(length, self.sizes.d_model)
