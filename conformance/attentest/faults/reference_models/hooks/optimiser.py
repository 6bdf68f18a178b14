"""The hooks of the optimiser and of the clipping of gradients."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Required, TypedDict

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node


class State(TypedDict, total=False):
    """The two means of Adam, (N,) each, the number of updates, and whether the array decays.

    `rate` is for faults.
    """

    mean: Required[Tensor]
    square: Required[Tensor]
    step: Required[int]
    decays: bool
    rate: Tensor


class OptimiserHooks(Base):
    """Adam, update by update, and one factor for all gradients."""

    def make_optimiser(self) -> Node:
        """Build the optimiser, which holds nothing between two runs."""
        self.check_decay()
        return Node(self, "optimise")

    def check_decay(self) -> None:
        """Refuse a negative weight decay where there is one."""
        decay = self.sizes.weight_decay
        if self.choices.weight_decay != "none" and decay < 0:
            raise ValueError(f"weight_decay is {decay}; it must be at least 0.")

    def make_grouped_optimiser(self) -> Node:
        """Build the optimiser of several arrays, which holds nothing between two runs."""
        self.check_decay()
        return Node(self, "optimise_groups")

    def optimise_groups(
        self,
        module: Node,
        parameters: Tensor,
        gradients: Tensor,
        rates: Tensor,
        groups: Tensor,
        kinds: Tensor,
        present: Tensor,
        saved: int,
    ) -> Tensor:
        """Return the parameters (T, N) of arrays of sizes (G,) and kinds (G,) after each update."""
        values = self.arrays(parameters, groups)
        states = [
            State(**self.fresh_state(one), decays=self.decays(int(kind)))
            for one, kind in zip(values, kinds, strict=True)
        ]
        found, given = [], tuple(rates)
        for number in range(len(given)):
            parts, rate = self.arrays(gradients[number], groups), self.rate_of(given, number)
            values = [
                self.update(state, one, part, rate) if there else self.left_out(state, one, rate)
                for state, one, part, there in zip(
                    states, values, parts, present[number], strict=True
                )
            ]
            found.append(torch.cat(values))
            if number + 1 == saved:
                states = self.restored(self.saved_states(states))
        return torch.stack(found)

    def decays(self, kind: int) -> bool:
        """Say whether an array decays: 0 is a weight, 1 a bias, and 2 belongs to a norm."""
        return kind == 0 or self.choices.decay_groups == "all"

    def left_out(self, state: State, values: Tensor, rate: Tensor) -> Tensor:
        """Return the parameters of an array that has no gradient in an update."""
        if self.choices.update_count == "all":
            state["step"] = self.next_step(state["step"])
        return values

    def saved_states(self, states: list[State]) -> list[State]:
        """Return the states as they are saved."""
        return [State(**one) for one in states]

    def restored(self, saved: list[State]) -> list[State]:
        """Return the states of a new optimiser that has loaded those of another one."""
        return saved

    def optimise(
        self, module: Node, parameters: Tensor, gradients: Tensor, rates: Tensor
    ) -> Tensor:
        """Return the parameters (T, N) after each update with gradients (T, N) and rates (T,)."""
        return torch.stack(list(self.updates(parameters, gradients, rates)))

    def updates(
        self, parameters: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
    ) -> Iterator[Tensor]:
        """Yield the parameters (N,) after each update; a gradient is read when it is needed."""
        state, values, given = self.fresh_state(parameters), parameters, list[Tensor]()
        for gradient, rate in zip(gradients, rates, strict=True):
            given.append(rate)
            now = self.rate_of(given, len(given) - 1)
            values = self.update(state, values, self.gradient_of(gradient), now)
            yield values

    def fresh_state(self, parameters: Tensor) -> State:
        """Return means of zero, and no update."""
        still = torch.zeros_like(parameters, dtype=self.means_type(parameters))
        return {"mean": still, "square": still, "step": 0}

    def means_type(self, parameters: Tensor) -> torch.dtype:
        """Return the type of numbers that the means of parameters are kept in."""
        single = self.choices.means_arithmetic == "float32"
        half = parameters.dtype in (torch.float16, torch.bfloat16)
        return torch.float32 if single and half else parameters.dtype

    def gradient_of(self, gradient: Tensor) -> Tensor:
        """Return the gradient (N,) that an update uses."""
        return gradient

    def rate_of(self, rates: Sequence[Tensor], number: int) -> Tensor:
        """Return the rate of an update, counted from 0; `rates` are those up to it at least."""
        return rates[number]

    def update(self, state: State, values: Tensor, gradient: Tensor, rate: Tensor) -> Tensor:
        """Return the parameters after one update, whose means go into the state."""
        state["step"] = self.next_step(state["step"])
        if state.get("decays", True):
            gradient = self.decay_gradient(values, gradient)
            values = self.decay_values(values, rate)
        gradient = gradient.to(state["mean"].dtype)
        state["mean"] = self.next_mean(state["mean"], gradient)
        state["square"] = self.next_square(state["square"], gradient)
        moved = self.move(values, rate, self.direction(state).to(values.dtype))
        return self.decay_moved(moved, rate) if state.get("decays", True) else moved

    def next_step(self, step: int) -> int:
        """Return the number of an update from that of the last one."""
        return step + 1

    def betas(self) -> tuple[float, float]:
        """Return the shares of both means that are kept."""
        return float(self.choices.adam_beta1), float(self.choices.adam_beta2)

    def adam_epsilon(self) -> float:
        """Return the epsilon."""
        return float(self.choices.adam_epsilon)

    def decay(self) -> float:
        """Return the weight decay."""
        return self.sizes.weight_decay

    def decay_gradient(self, values: Tensor, gradient: Tensor) -> Tensor:
        """Add a coupled decay to the gradient."""
        coupled = self.choices.weight_decay == "coupled"
        return gradient + self.decay() * values if coupled else gradient

    def decay_moved(self, values: Tensor, rate: Tensor) -> Tensor:
        """Take a decoupled decay off the parameters that an update moved, where it comes last."""
        late = self.choices.weight_decay == "decoupled-after"
        return values - rate * self.decay() * values if late else values

    def corrections(self, step: int) -> tuple[float, float]:
        """Return what both means are divided by."""
        if self.choices.bias_correction == "none":
            return 1.0, 1.0
        first, second = self.betas()
        return 1.0 - first**step, 1.0 - second**step

    def arrays(self, gradients: Tensor, groups: Tensor) -> list[Tensor]:
        """Return the gradients (N,) of each array."""
        return list(torch.split(gradients, groups.tolist()))

    def clip(self, module: Node, gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
        """Return gradients (N,) whose norm is at most the limit."""
        return self.shorten(gradients, self.gradient_norm(gradients, groups), limit)

    def clip_epsilon(self) -> float:
        """Return what is added to the norm."""
        return self.choices.clip_epsilon if isinstance(self.choices.clip_epsilon, float) else 0.0

    @abstractmethod
    def decay_values(self, values: Tensor, rate: Tensor) -> Tensor:
        """Take a decoupled decay off the parameters."""

    @abstractmethod
    def next_mean(self, mean: Tensor, gradient: Tensor) -> Tensor:
        """Return the running mean of gradients with one more."""

    @abstractmethod
    def next_square(self, square: Tensor, gradient: Tensor) -> Tensor:
        """Return the running mean of squared gradients with one more."""

    @abstractmethod
    def direction(self, state: State) -> Tensor:
        """Return the update at a rate of 1."""

    @abstractmethod
    def move(self, values: Tensor, rate: Tensor, direction: Tensor) -> Tensor:
        """Return the parameters moved by an update."""

    @abstractmethod
    def gradient_norm(self, gradients: Tensor, groups: Tensor) -> Tensor:
        """Return the norm of all gradients."""

    @abstractmethod
    def shorten(self, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
        """Return the gradients, shortened where their norm is above the limit."""
