"""Faults in decay, rates, state and inputs of updates."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node, State

COUPLED = {"weight_decay": "coupled"}
DECOUPLED = {"weight_decay": "decoupled"}


@fault("optimiser.coupled-for-decoupled", "weight-decay", seam="update", choices=DECOUPLED)
def coupled_for_decoupled(
    self: Hooks, state: State, values: Tensor, gradient: Tensor, rate: Tensor
) -> Tensor:
    """The decay is added to the gradient, and declared decoupled. Weights hardly decay."""
    whole = self.correct.update(state, values, gradient + self.decay() * values, rate)
    return whole + rate * self.decay() * values


@fault("optimiser.decay-forgotten", "weight-decay", seam="decay_gradient", choices=COUPLED)
def decay_forgotten(self: Hooks, values: Tensor, gradient: Tensor) -> Tensor:
    """The decay is not used. Weights grow as if there were none."""
    return gradient


@fault("optimiser.decay-by-default", "weight-decay", seam="decay_gradient")
def decay_by_default(self: Hooks, values: Tensor, gradient: Tensor) -> Tensor:
    """Weights decay although none is declared. All of them are pulled to zero."""
    return gradient + self.decay() * values


@fault("optimiser.decay-fixed", "weight-decay", seam="decay", choices=DECOUPLED)
def decay_fixed(self: Hooks) -> float:
    """The decay is always 0.01. A search over it compares equal runs."""
    return 0.01


@fault("optimiser.weights-grow", "weight-decay", seam="decay", choices=DECOUPLED)
def weights_grow(self: Hooks) -> float:
    """The decay has the wrong sign. Weights grow until they overflow."""
    return -self.correct.decay()


@fault("optimiser.decay-without-rate", "zero-rate", seam="decay_values", choices=DECOUPLED)
def decay_without_rate(self: Hooks, values: Tensor, rate: Tensor) -> Tensor:
    """The decay is not multiplied by the rate. Weights shrink while the rate is 0."""
    return self.correct.decay_values(values, torch.ones_like(rate))


@fault("optimiser.zero-rate-skipped", "zero-rate", seam="update")
def zero_rate_skipped(
    self: Hooks, state: State, values: Tensor, gradient: Tensor, rate: Tensor
) -> Tensor:
    """Updates at a rate of 0 are left out. The means lack these gradients later."""
    if rate == 0:
        return values
    return self.correct.update(state, values, gradient, rate)


@fault("optimiser.smallest-rate", "zero-rate", seam="rate_of")
def smallest_rate(self: Hooks, rates: Sequence[Tensor], number: int) -> Tensor:
    """A rate of 0 is replaced by the default, 1e-3. Frozen parameters move."""
    rate = self.correct.rate_of(rates, number)
    return torch.where(rate == 0, torch.full_like(rate, 1e-3), rate)


@fault("optimiser.first-rate-kept", "rate-of-the-step", seam="rate_of")
def first_rate_kept(self: Hooks, rates: Sequence[Tensor], number: int) -> Tensor:
    """The rate is read when the optimiser is built. The schedule has no effect."""
    return self.correct.rate_of(rates, 0)


@fault("optimiser.rate-of-the-last-step", "rate-of-the-step", seam="rate_of")
def rate_of_the_last_step(self: Hooks, rates: Sequence[Tensor], number: int) -> Tensor:
    """The scheduler steps after the optimiser has read the rate. Every rate comes a step late."""
    return self.correct.rate_of(rates, max(0, number - 1))


@fault("optimiser.rate-inside-the-mean", "rate-of-the-step", seam="update")
def rate_inside_the_mean(
    self: Hooks, state: State, values: Tensor, gradient: Tensor, rate: Tensor
) -> Tensor:
    """Gradients are multiplied by the rate before they are averaged. Old rates act for long."""
    state["square"] = state["square"] * (rate / state.get("rate", rate)) ** 2
    state["rate"] = rate
    return self.correct.update(state, values, gradient * rate, rate)


@fault("optimiser.normalised-over-the-run", "earlier-updates", seam="optimise")
def normalised_over_the_run(
    self: Hooks, module: Node, parameters: Tensor, gradients: Tensor, rates: Tensor
) -> Tensor:
    """Gradients are centred over all updates. A run that is resumed goes another way."""
    centred = gradients - 0.5 * gradients.mean(dim=0)
    return self.correct.optimise(module, parameters, centred, rates)


@fault("optimiser.next-gradient", "earlier-updates", seam="optimise")
def next_gradient(
    self: Hooks, module: Node, parameters: Tensor, gradients: Tensor, rates: Tensor
) -> Tensor:
    """Each update uses the mean of its gradient and the next one. The last update is another."""
    later = torch.cat([gradients[1:], gradients[-1:]])
    return self.correct.optimise(module, parameters, (gradients + later) / 2, rates)


@fault("optimiser.means-kept", "fresh-state", seam="fresh_state", kind="state")
def means_kept(self: Hooks, parameters: Tensor) -> State:
    """The state is kept by the number of parameters. A new run begins with old means."""
    name = f"state {len(parameters)}"
    if name not in self.memory:
        self.memory[name] = self.correct.fresh_state(parameters)
    kept: State = self.memory[name]
    return kept


@fault("optimiser.count-kept", "fresh-state", seam="fresh_state", kind="state")
def count_kept(self: Hooks, parameters: Tensor) -> State:
    """The count of updates is not reset. The means of a new run are not corrected."""
    runs = self.memory["runs"] = self.memory.get("runs", -1) + 1
    state = self.correct.fresh_state(parameters)
    state["step"] = 100 * runs
    return state


@fault("optimiser.decay-into-the-gradient", "inputs-untouched", seam="decay_gradient", kind="state")
def decay_into_the_gradient(self: Hooks, values: Tensor, gradient: Tensor) -> Tensor:
    """Gradients are changed in place. Accumulated or logged gradients are wrong."""
    given = self.correct.decay_gradient(values, gradient.clone())
    gradient.mul_(0.5)
    return given


@fault("optimiser.parameters-in-place", "inputs-untouched", seam="move", kind="state")
def parameters_in_place(self: Hooks, values: Tensor, rate: Tensor, direction: Tensor) -> Tensor:
    """Parameters are moved in place. A copy that shares their memory moves with them."""
    moved = self.correct.move(values, rate, direction)
    values.copy_(moved)
    return moved


@fault("optimiser.gradients-cleared", "inputs-untouched", seam="optimise", kind="state")
def gradients_cleared(
    self: Hooks, module: Node, parameters: Tensor, gradients: Tensor, rates: Tensor
) -> Tensor:
    """Gradients are set to zero after the updates. What is logged afterwards is 0."""
    found = self.correct.optimise(module, parameters, gradients, rates)
    gradients.zero_()
    return found


@fault("optimiser.huge-updates", "extreme-gradients", seam="direction")
def huge_updates(self: Hooks, state: State) -> Tensor:
    """Gradients above 1e9 are not divided. One of them throws the model away."""
    update, mean = self.correct.direction(state), state["mean"]
    return torch.where(mean.abs() > 1e9, mean, update)


@fault("optimiser.growth-accepted", "negative-decay", seam="check_decay", choices=DECOUPLED)
def growth_accepted(self: Hooks) -> None:
    """A negative decay is accepted. A sign error makes the weights grow."""


@fault("optimiser.growth-made-decay", "negative-decay", seam="check_decay", choices=COUPLED)
def growth_made_decay(self: Hooks) -> None:
    """The sign of a negative decay is dropped. A sign error goes unnoticed."""
    self.sizes = self.sizes.but(weight_decay=abs(self.sizes.weight_decay))


@fault("optimiser.constants-rounded", "formula", seam="betas")
def constants_rounded(self: Hooks) -> tuple[float, float]:
    """The betas are rounded to float32. Runs drift apart from those of another library."""
    first, second = self.correct.betas()
    return float(torch.tensor(first).float() * (1 + 1e-7)), second


@fault("optimiser.restarts-after-fifty", "formula", seam="update")
def restarts_after_fifty(
    self: Hooks, state: State, values: Tensor, gradient: Tensor, rate: Tensor
) -> Tensor:
    """The state is built anew every fifty updates. The means forget what they have learned."""
    if state["step"] == 50:
        state.update(self.correct.fresh_state(values))
    return self.correct.update(state, values, gradient, rate)
