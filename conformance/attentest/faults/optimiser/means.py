"""Faults in the two means of Adam, in their correction and in what is divided."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, State

INSIDE = {"adam_epsilon_place": "inside-root"}


@fault("optimiser.uphill", "first-update", seam="move")
def uphill(self: Hooks, values: Tensor, rate: Tensor, direction: Tensor) -> Tensor:
    """The update is added. The loss grows at every step."""
    return self.correct.move(values, rate, -direction)


@fault("optimiser.half-a-step", "first-update", seam="move")
def half_a_step(self: Hooks, values: Tensor, rate: Tensor, direction: Tensor) -> Tensor:
    """Every update is halved, as for two batches. The rate is not the one that was set."""
    return self.correct.move(values, rate, 0.5 * direction)


@fault("optimiser.betas-swapped", "beta1", seam="betas")
def betas_swapped(self: Hooks) -> tuple[float, float]:
    """The two betas are swapped. Gradients are averaged over long, and their squares hardly."""
    first, second = self.correct.betas()
    return second, first


@fault("optimiser.no-momentum", "beta1", seam="next_mean")
def no_momentum(self: Hooks, mean: Tensor, gradient: Tensor) -> Tensor:
    """The mean is the last gradient. Updates follow the noise of one batch."""
    return gradient * (1.0 - self.betas()[0])


@fault("optimiser.sum-for-mean", "beta1", seam="next_mean")
def sum_for_mean(self: Hooks, mean: Tensor, gradient: Tensor) -> Tensor:
    """New gradients are not multiplied by 1 - beta1. Updates are ten times too long."""
    return self.betas()[0] * mean + gradient


@fault("optimiser.beta2-of-libraries", "beta2", seam="betas")
def beta2_of_libraries(self: Hooks) -> tuple[float, float]:
    """The second beta is the default of libraries, 0.999. Early large gradients stay for long."""
    return self.correct.betas()[0], 0.999


@fault("optimiser.largest-square", "beta2", seam="next_square")
def largest_square(self: Hooks, square: Tensor, gradient: Tensor) -> Tensor:
    """The largest mean so far is used, as in AMSGrad. Updates never become longer again."""
    return square.maximum(self.correct.next_square(square, gradient))


@fault("optimiser.no-mean-of-squares", "beta2", seam="next_square")
def no_mean_of_squares(self: Hooks, square: Tensor, gradient: Tensor) -> Tensor:
    """Squares are not averaged. After a large gradient the next updates are too long."""
    return gradient.square() * (1.0 - self.betas()[1])


@fault("optimiser.sum-of-squares", "beta2", seam="next_square")
def sum_of_squares(self: Hooks, square: Tensor, gradient: Tensor) -> Tensor:
    """Squares are summed up, as in AdaGrad. Updates become shorter and shorter."""
    return square + (1.0 - self.betas()[1]) * gradient.square()


@fault("optimiser.epsilon-of-libraries", "epsilon", seam="adam_epsilon")
def epsilon_of_libraries(self: Hooks) -> float:
    """The epsilon is the default of libraries, 1e-8. Parameters with tiny gradients hardly move."""
    return 1e-8


@fault("optimiser.epsilon-of-a-norm", "epsilon", seam="adam_epsilon")
def epsilon_of_a_norm(self: Hooks) -> float:
    """The epsilon is that of the layer norm. Rows of rare tokens are hardly trained."""
    return 1e-5


@fault("optimiser.no-epsilon", "epsilon", seam="adam_epsilon")
def no_epsilon(self: Hooks) -> float:
    """The epsilon is zero. Noise in unused parameters moves them as far as signals do."""
    return 0.0


@fault("optimiser.epsilon-inside", "epsilon-place", seam="direction")
def epsilon_inside(self: Hooks, state: State) -> Tensor:
    """The epsilon is added inside the root. It acts as its own root: 3e-5 for 1e-9."""
    first, second = self.corrections(state["step"])
    divisor: Tensor = (state["square"] / second + self.adam_epsilon()).sqrt()
    return state["mean"] / first / divisor


@fault("optimiser.epsilon-uncorrected", "epsilon-place", seam="direction")
def epsilon_uncorrected(self: Hooks, state: State) -> Tensor:
    """The epsilon is added before the correction. It is seven times as large at first."""
    first, second = self.corrections(state["step"])
    divisor: Tensor = state["square"].sqrt() + self.adam_epsilon()
    return state["mean"] / first * math.sqrt(second) / divisor.clamp_min(1e-300)


@fault("optimiser.epsilon-outside", "epsilon-place", seam="direction", choices=INSIDE)
def epsilon_outside(self: Hooks, state: State) -> Tensor:
    """The epsilon is added outside of the root, and declared inside. It has nearly no effect."""
    first, second = self.corrections(state["step"])
    divisor: Tensor = (state["square"] / second).sqrt() + self.adam_epsilon()
    return state["mean"] / first / divisor


@fault("optimiser.no-correction", "bias-correction", seam="corrections")
def no_correction(self: Hooks, step: int) -> tuple[float, float]:
    """Both means are used as they are. The first updates have another length."""
    return 1.0, 1.0


@fault("optimiser.first-mean-alone-corrected", "bias-correction", seam="corrections")
def first_mean_alone_corrected(self: Hooks, step: int) -> tuple[float, float]:
    """The mean of squares is not corrected. The first updates are seven times too long."""
    return self.correct.corrections(step)[0], 1.0


@fault("optimiser.second-mean-alone-corrected", "bias-correction", seam="corrections")
def second_mean_alone_corrected(self: Hooks, step: int) -> tuple[float, float]:
    """The mean of gradients is not corrected. The first updates are ten times too short."""
    return 1.0, self.correct.corrections(step)[1]


@fault("optimiser.correction-of-step-one", "bias-correction", seam="next_step")
def correction_of_step_one(self: Hooks, step: int) -> int:
    """The count of updates stays at 1. Every update but the first is too long."""
    return 1


@fault("optimiser.counted-twice", "bias-correction", seam="next_step")
def counted_twice(self: Hooks, step: int) -> int:
    """Every update counts twice. The correction ends too early."""
    return step + 2


@fault("optimiser.counted-from-zero", "bias-correction", seam="corrections", kind="loud")
def counted_from_zero(self: Hooks, step: int) -> tuple[float, float]:
    """The correction counts updates from 0. The first one divides by zero."""
    first, second = self.correct.corrections(step - 1)
    return 1.0 / (1.0 / first), 1.0 / (1.0 / second)


@fault("optimiser.count-saturates", "steady-gradient", seam="corrections")
def count_saturates(self: Hooks, step: int) -> tuple[float, float]:
    """The count is kept in a byte. After 255 updates the correction starts again."""
    return self.correct.corrections(1 + (step - 1) % 255)


@fault("optimiser.rate-fades", "steady-gradient", seam="direction")
def rate_fades(self: Hooks, state: State) -> Tensor:
    """The optimiser lowers the rate by itself, by 1e-3 of the count. Late updates are shorter."""
    return self.correct.direction(state) / (1.0 + 1e-3 * (state["step"] - 1))


@fault("optimiser.root-missing", "scale-invariance", seam="direction")
def root_missing(self: Hooks, state: State) -> Tensor:
    """The root is left out. Small gradients give huge updates, and large ones tiny."""
    first, second = self.corrections(state["step"])
    divisor: Tensor = state["square"] / second + self.adam_epsilon()
    return state["mean"] / first / divisor


@fault("optimiser.plain-descent", "scale-invariance", seam="direction")
def plain_descent(self: Hooks, state: State) -> Tensor:
    """The mean of gradients is not divided. Large gradients throw the weights away."""
    mean: Tensor = state["mean"] / self.corrections(state["step"])[0]
    return mean


@fault("optimiser.square-over-all", "own-means", seam="next_square")
def square_over_all(self: Hooks, square: Tensor, gradient: Tensor) -> Tensor:
    """Squares are averaged over all parameters. Those with small gradients hardly move."""
    every: Tensor = gradient.square().mean().expand_as(gradient).sqrt()
    return self.correct.next_square(square, every)


@fault("optimiser.clipped-inside", "own-means", seam="gradient_of")
def clipped_inside(self: Hooks, gradient: Tensor) -> Tensor:
    """The optimiser clips all gradients to a norm of 1. One large gradient shortens the others."""
    length: Tensor = torch.linalg.vector_norm(gradient).clamp_min(1.0)
    return gradient / length


@fault("optimiser.zero-by-zero", "zero-gradients", seam="direction")
def zero_by_zero(self: Hooks, state: State) -> Tensor:
    """The root of zero divides zero. Parameters without a gradient become NaN."""
    first, second = self.corrections(state["step"])
    root: Tensor = (state["square"] / second).sqrt()
    return state["mean"] / first / root


@fault("optimiser.noise-for-zeros", "zero-gradients", seam="gradient_of")
def noise_for_zeros(self: Hooks, gradient: Tensor) -> Tensor:
    """Gradients of zero are replaced by a small number. Unused parameters drift at full rate."""
    return gradient.masked_fill(gradient == 0, 1e-6)


@fault("optimiser.huge-gradients-overflow", "extreme-gradients", seam="next_square")
def huge_gradients_overflow(self: Hooks, square: Tensor, gradient: Tensor) -> Tensor:
    """Squares are cut at 1e10, as if in half precision. Large gradients give huge updates."""
    return self.correct.next_square(square, gradient).clamp_max(1e10)
