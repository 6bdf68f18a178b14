"""Faults in the groups, the absent gradients and the saved state of an optimiser of arrays."""

from typing import Any

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node, State

WEIGHTS = {"weight_decay": "decoupled", "decay_groups": "weights"}
DECOUPLED = {"weight_decay": "decoupled"}
OF_ALL = {"update_count": "all"}
SINGLE = {"means_arithmetic": "float32"}


@fault(
    "optimiser.names-match-nothing", "decay-groups", seam="decays", choices=WEIGHTS, origin="M061"
)
def names_match_nothing(self: Hooks, kind: int) -> bool:
    """Names are compared as a whole with parts of names. Biases and norms decay as well."""
    return True


@fault("optimiser.norms-decay", "decay-groups", seam="decays", choices=WEIGHTS, origin="M062")
def norms_decay(self: Hooks, kind: int) -> bool:
    """The arrays of norms are missing in the list without decay. Gains are pulled to 0."""
    return kind != 1


@fault("optimiser.biases-decay", "decay-groups", seam="decays", choices=WEIGHTS)
def biases_decay(self: Hooks, kind: int) -> bool:
    """Biases are missing in the list without decay. They are pulled to 0."""
    return kind != 2


@fault("optimiser.groups-swapped", "decay-groups", seam="decays", choices=WEIGHTS)
def groups_swapped(self: Hooks, kind: int) -> bool:
    """The two groups are swapped. Biases and norms decay, and weights do not."""
    return kind != 0


@fault("optimiser.groups-undeclared", "decay-groups", seam="decays", choices=DECOUPLED)
def groups_undeclared(self: Hooks, kind: int) -> bool:
    """Biases do not decay, although all arrays are declared to. Runs are not repeatable."""
    return kind != 1


@fault("optimiser.zeros-for-absent", "absent-gradients", seam="left_out")
def zeros_for_absent(self: Hooks, state: State, values: Tensor, rate: Tensor) -> Tensor:
    """An absent gradient is taken for zeros. Frozen layers go on by their momentum."""
    return self.update(state, values, torch.zeros_like(values), rate)


@fault("optimiser.absent-decays", "absent-gradients", seam="left_out", choices=DECOUPLED)
def absent_decays(self: Hooks, state: State, values: Tensor, rate: Tensor) -> Tensor:
    """Arrays without a gradient decay. Frozen layers shrink."""
    return self.decay_values(self.correct.left_out(state, values, rate), rate)


@fault("optimiser.means-fade", "absent-gradients", seam="left_out", kind="state")
def means_fade(self: Hooks, state: State, values: Tensor, rate: Tensor) -> Tensor:
    """The means take a zero in where a gradient is absent. The next updates are too short."""
    still = torch.zeros_like(state["mean"])
    state["mean"] = self.next_mean(state["mean"], still)
    state["square"] = self.next_square(state["square"], still)
    return self.correct.left_out(state, values, rate)


@fault("optimiser.count-of-all-updates", "update-count", seam="left_out")
def count_of_all_updates(self: Hooks, state: State, values: Tensor, rate: Tensor) -> Tensor:
    """Updates without a gradient count too. The first update of a late layer is too short."""
    state["step"] = self.next_step(state["step"])
    return values


@fault("optimiser.count-of-own-updates", "update-count", seam="left_out", choices=OF_ALL)
def count_of_own_updates(self: Hooks, state: State, values: Tensor, rate: Tensor) -> Tensor:
    """Updates without a gradient do not count, and are declared to. Late layers move too far."""
    return values


@fault("optimiser.means-not-saved", "restored-state", seam="restored", kind="state")
def means_not_saved(self: Hooks, saved: list[State]) -> list[State]:
    """The count is saved, and the means are not. The first updates after a restart are tiny."""
    return [
        {**one, "mean": torch.zeros_like(one["mean"]), "square": torch.zeros_like(one["square"])}
        for one in saved
    ]


@fault("optimiser.count-not-saved", "restored-state", seam="restored", kind="state")
def count_not_saved(self: Hooks, saved: list[State]) -> list[State]:
    """The means are saved, and the count is not. The updates after a restart are far too long."""
    return [{**one, "step": 0} for one in saved]


@fault("optimiser.square-not-saved", "restored-state", seam="restored", kind="state")
def square_not_saved(self: Hooks, saved: list[State]) -> list[State]:
    """The mean of squares is not saved. The first updates after a restart are huge."""
    return [{**one, "square": torch.zeros_like(one["square"])} for one in saved]


@fault("optimiser.saved-in-half", "restored-state", seam="saved_states", kind="state")
def saved_in_half(self: Hooks, states: list[State]) -> list[State]:
    """The state is saved in half precision. A resumed run goes another way."""
    return [
        {
            **one,
            "mean": one["mean"].bfloat16().to(one["mean"].dtype),
            "square": one["square"].bfloat16().to(one["square"].dtype),
        }
        for one in states
    ]


@fault("optimiser.decay-not-restored", "restored-state", seam="restored", choices=WEIGHTS)
def decay_not_restored(self: Hooks, saved: list[State]) -> list[State]:
    """The groups are not restored. After a restart everything decays."""
    return [{**one, "decays": True} for one in saved]


@fault("optimiser.means-in-half", "means-arithmetic", seam="means_type", choices=SINGLE)
def means_in_half(self: Hooks, parameters: Tensor) -> torch.dtype:
    """The means have the precision of the parameters. Squares of small gradients are 0."""
    return parameters.dtype


@fault("optimiser.means-in-float16", "means-arithmetic", seam="means_type", choices=SINGLE)
def means_in_float16(self: Hooks, parameters: Tensor) -> torch.dtype:
    """The means are float16. Squares of small gradients are 0, and those of large ones infinite."""
    return torch.float16


@fault("optimiser.first-state-for-all", "restored-state", seam="saved_states", kind="state")
def first_state_for_all(self: Hooks, states: list[State]) -> list[State]:
    """The count is kept once, by the first array. Late layers are corrected by its count."""
    return [{**one, "step": states[0]["step"]} for one in states]


@fault("optimiser.last-array-forgotten", "grouped-formula", seam="optimise_groups")
def last_array_forgotten(
    self: Hooks,
    module: Node,
    parameters: Tensor,
    gradients: Tensor,
    rates: Tensor,
    groups: Tensor,
    *rest: Any,
) -> Tensor:
    """The last array is not given to the optimiser. It stays as it was initialised."""
    whole = self.correct.optimise_groups(module, parameters, gradients, rates, groups, *rest)
    last = int(groups[-1])
    still = parameters[-last:].expand(len(rates), -1)
    return torch.cat([whole[:, :-last], still], dim=1)
