"""Faults in tables that are held, in shapes, in gradients and in memory."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node, Pair


@fault("rotary.output-in-single", "shapes", seam="turn", origin="facebookresearch/xformers#325")
def output_in_single(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turned columns are returned in float32. Everything after it has that precision."""
    return self.correct.turn(x, cosines, sines).float()


@fault("rotary.token-axis-lost", "shapes", seam="turn", origin="B036")
def token_axis_lost(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Axes of size 1 are squeezed out. A single token or head gets another shape."""
    return self.correct.turn(x, cosines, sines).squeeze(2)


_KEPT: dict[tuple[object, ...], Pair] = {}


@fault(
    "rotary.table-of-another-precision",
    "tables-not-shared",
    seam="turn_table",
    origin="vllm-project/vllm PR#4835",
)
def table_of_another_precision(self: Hooks, places: Tensor, x: Tensor) -> Pair:
    """Tables are kept by width and length alone. A model in half precision spoils the next one."""
    return _kept(self, places, x, (places.device,))


@fault(
    "rotary.table-of-another-factor",
    "tables-not-shared",
    seam="turn_table",
    choices={"rotary_scaling": "linear"},
)
def table_of_another_factor(self: Hooks, places: Tensor, x: Tensor) -> Pair:
    """Tables are kept for all models of one width. The second one has the factor of the first."""
    return _kept(self, places, x, (places.device, x.dtype, "factor"))


def _kept(self: Hooks, places: Tensor, x: Tensor, more: tuple[object, ...]) -> Pair:
    """Return the tables of the first call with as many positions, of any model."""
    key = (x.shape[-1], places.numel(), *more)
    if places.numel() != _SHARED:
        return self.correct.turn_table(places, x)
    if key not in _KEPT:
        _KEPT[key] = self.correct.turn_table(places, x)
    cosines, sines = _KEPT[key]
    return cosines.to(x.dtype).view(*places.shape, -1), sines.to(x.dtype).view(*places.shape, -1)


_SHARED = 23
"""The number of positions whose tables are kept, so that other clauses do not depend on order."""


@fault("rotary.odd-column-turned", "odd-width", seam="rotary")
def odd_column_turned(
    self: Hooks, module: Node, x: Tensor, positions: Tensor | None = None
) -> Tensor:
    """An odd width is filled up with zeros and cut again. The last column is wrong."""
    odd = x.shape[-1] % 2
    wide = functional.pad(x, (0, odd))
    return self.correct.rotary(module, wide, positions)[..., : x.shape[-1]]


@fault("rotary.odd-column-dropped", "odd-width", seam="rotary")
def odd_column_dropped(
    self: Hooks, module: Node, x: Tensor, positions: Tensor | None = None
) -> Tensor:
    """The last column of an odd width is left out. The output is narrower than the input."""
    even = x.shape[-1] // 2 * 2
    return self.correct.rotary(module, x[..., :even], positions)


@fault("rotary.odd-width-unexplained", "odd-width-named", seam="check_turned", kind="wording")
def odd_width_unexplained(self: Hooks, width: int) -> None:
    """Nothing checks that the width is even. An odd one fails inside of a product."""
    return


@fault("rotary.odd-width-asserted", "odd-width-named", seam="check_turned", kind="wording")
def odd_width_asserted(self: Hooks, width: int) -> None:
    """A bare assertion checks the width. The user has to find out which size is wrong."""
    assert width % 2 == 0


def _held(self: Hooks, **arrays: Tensor) -> Node:
    """Return a correct module with more arrays, whose calls go to the model that has the fault."""
    module = self.correct.make_rotary()
    module.how = self
    for name, array in arrays.items():
        if isinstance(array, nn.Parameter):
            module.register_parameter(name, array)
        else:
            module.register_buffer(name, array)
    return module


@fault("rotary.frequencies-trained", "not-trained", seam="make_rotary", kind="state")
def frequencies_trained(self: Hooks) -> Node:
    """The frequencies are a parameter. Weight decay shrinks them, and positions fade."""
    width = self.sizes.d_model // self.sizes.heads
    return _held(self, frequencies=nn.Parameter(self.turn_frequencies(width, 1, None)))


@fault(
    "rotary.table-trained",
    "not-trained",
    seam="make_rotary",
    origin="marin-community/levanter PR#504",
    kind="state",
)
def table_trained(self: Hooks) -> Node:
    """A table of all positions is a parameter. Training changes it, and it is counted."""
    return _held(self, table=nn.Parameter(torch.ones(self.sizes.max_length, 2)))


@fault(
    "rotary.table-saved",
    "not-saved",
    seam="make_rotary",
    origin="meta-pytorch/torchtune#155",
    kind="state",
)
def table_saved(self: Hooks) -> Node:
    """A table of all positions is in the saved state. Another longest length cannot load it."""
    return _held(self, table=torch.ones(self.sizes.max_length, 2))


@fault("rotary.made-tables-saved", "not-saved", seam="hold_turns", kind="state", models=("plain",))
def made_tables_saved(
    self: Hooks, module: Node, length: int, cosines: Tensor, sines: Tensor
) -> None:
    """Tables that calls make are saved. A checkpoint depends on the longest text before it."""
    self.correct.hold_turns(module, length, cosines, sines)
    module._non_persistent_buffers_set.clear()


@fault("rotary.table-in-a-list", "moved-once", seam="make_rotary", kind="state")
def table_in_a_list(self: Hooks) -> Node:
    """A table is kept in a list and stays behind. Each step moves it again."""
    module = _held(self)
    object.__setattr__(module, "listed", [torch.ones(self.sizes.max_length, 4)])
    return module


@fault(
    "rotary.made-on-the-processor",
    "follows-moves",
    seam="turn_frequencies",
    origin="B046",
    kind="loud",
)
def made_on_the_processor(
    self: Hooks, width: int, length: int, device: torch.device | None
) -> Tensor:
    """Frequencies are always made on the CPU. On an accelerator the product fails."""
    return self.correct.turn_frequencies(width, length, None)


@fault("rotary.input-detached", "gradient", seam="turn", kind="gradient")
def input_detached(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Queries and keys are detached before they are turned. Their projections do not learn."""
    return self.correct.turn(x.detach(), cosines, sines) + 0 * x


@fault("rotary.second-column-detached", "gradient", seam="split_pairs", kind="gradient")
def second_column_detached(self: Hooks, x: Tensor) -> Pair:
    """The second column of every pair is detached. Half of the projection hardly learns."""
    a, b = self.correct.split_pairs(x)
    return a, b.detach()


@fault(
    "rotary.turned-in-place",
    "input-untouched",
    seam="rotary",
    origin="unslothai/unsloth#5001",
    kind="state",
)
def turned_in_place(
    self: Hooks, module: Node, x: Tensor, positions: Tensor | None = None
) -> Tensor:
    """X is turned in its own memory. What still reads it, reads what was turned."""
    result = self.correct.rotary(module, x, positions)
    return result if x.requires_grad else x.copy_(result)


@fault("rotary.output-memory-reused", "input-untouched", seam="rotary", kind="state")
def output_memory_reused(
    self: Hooks, module: Node, x: Tensor, positions: Tensor | None = None
) -> Tensor:
    """All calls share the memory of one output. The turned keys overwrite the queries."""
    result = self.correct.rotary(module, x, positions)
    kept: Tensor | None = self.memory.get("turned")
    if x.requires_grad or kept is None or kept.shape != result.shape or kept.dtype != result.dtype:
        self.memory["turned"] = result
        return result
    return kept.copy_(result)
