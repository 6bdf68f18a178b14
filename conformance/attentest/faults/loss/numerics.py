"""Faults in the arithmetic: softmax, logarithm, gradient and narrow formats."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

LOGARITHMS = {"loss_input": "log-probabilities"}
PROBABILITIES = {"loss_input": "probabilities"}


@fault("loss.softmax-twice", "input", seam="output_logarithms", origin="B091")
def softmax_twice(self: Hooks, output: Tensor) -> Tensor:
    """Logits go through a softmax and then through its logarithm. The loss stays high for ever."""
    return self.correct.output_logarithms(torch.softmax(output, dim=-1))


@fault("loss.softmax-missing", "input", seam="output_logarithms")
def softmax_missing(self: Hooks, output: Tensor) -> Tensor:
    """Logits are taken for log-probabilities. The loss falls below 0 without an end."""
    return output


@fault("loss.logarithm-missing", "input", seam="output_logarithms", choices=PROBABILITIES)
def logarithm_missing(self: Hooks, output: Tensor) -> Tensor:
    """Probabilities are taken for their logarithms. The loss lies between -1 and 0."""
    return output


@fault("loss.probabilities-as-logits", "input", seam="output_logarithms", choices=PROBABILITIES)
def probabilities_as_logits(self: Hooks, output: Tensor) -> Tensor:
    """Probabilities are taken for logits. A second softmax keeps the loss high for ever."""
    return torch.log_softmax(output, dim=-1)


@fault("loss.logarithm-twice", "input", seam="output_logarithms", choices=LOGARITHMS)
def logarithm_twice(self: Hooks, output: Tensor) -> Tensor:
    """Log-probabilities are taken for probabilities. Logarithms of negative numbers are NaN."""
    return output.log()


@fault("loss.softmax-over-steps", "formula", seam="output_logarithms")
def softmax_over_steps(self: Hooks, output: Tensor) -> Tensor:
    """The softmax runs over the steps. Steps compete with each other, words do not."""
    return self.correct.output_logarithms(output.transpose(1, 2)).transpose(1, 2)


@fault("loss.constant-in-the-logarithm", "formula", seam="output_logarithms")
def constant_in_the_logarithm(self: Hooks, output: Tensor) -> Tensor:
    """A constant of 1e-6 is added to the probabilities. The worst errors are trained least."""
    return (self.correct.output_logarithms(output).exp() + 1e-6).log()


@fault("loss.sign-missing", "formula", seam="target_losses")
def sign_missing(self: Hooks, logs: Tensor, target: Tensor) -> Tensor:
    """The sign is missing. Every step makes the target less likely."""
    return -self.correct.target_losses(logs, target)


@fault("loss.logits-limited", "shift-invariance", seam="output_logarithms")
def logits_limited(self: Hooks, output: Tensor) -> Tensor:
    """Logits are limited to 30 in size. Two large logits are the same."""
    return self.correct.output_logarithms(output.clamp(-30.0, 30.0))


@fault("loss.normaliser-penalised", "shift-invariance", seam="loss")
def normaliser_penalised(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """The square of the softmax's logarithmic sum is added, undeclared. Losses are too high."""
    keep = self.counted(target)
    penalty = torch.logsumexp(output, dim=-1).square()
    return self.correct.loss(module, output, target) + 1e-4 * (penalty * keep).sum()


@fault("loss.overflow", "large-logits", seam="output_logarithms")
def overflow(self: Hooks, output: Tensor) -> Tensor:
    """The maximum is not subtracted before exp. Logits above 709 give NaN."""
    return output - output.exp().sum(dim=-1, keepdim=True).log()


@fault("loss.logarithm-of-softmax", "large-logits", seam="output_logarithms")
def logarithm_of_softmax(self: Hooks, output: Tensor) -> Tensor:
    """The logarithm is taken of rounded probabilities. Unlikely targets have an infinite loss."""
    return torch.softmax(output, dim=-1).log()


@fault("loss.limited-to-a-hundred", "large-logits", seam="output_logarithms")
def limited_to_a_hundred(self: Hooks, output: Tensor) -> Tensor:
    """Logarithms end at -100. What is most wrong has no gradient."""
    return self.correct.output_logarithms(output).clamp(min=-100.0)


@fault("loss.logarithm-detached", "gradient", seam="output_logarithms", kind="gradient")
def logarithm_detached(self: Hooks, output: Tensor) -> Tensor:
    """The sum of the softmax is detached. Only the target's logit is trained, and always up."""
    logs = self.correct.output_logarithms(output)
    return output - (output - logs).detach()


@fault("loss.half-gradient", "gradient", seam="loss", kind="gradient")
def half_gradient(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """Half of the gradient is detached. The value is right, and every step too short."""
    found = self.correct.loss(module, output, target)
    return 0.5 * found + 0.5 * found.detach()


@fault("loss.smoothing-detached", "gradient", seam="target_losses", kind="gradient")
def smoothing_detached(self: Hooks, logs: Tensor, target: Tensor) -> Tensor:
    """The smoothing term is detached. It is reported and trains nothing."""
    hard = -logs.gather(-1, target.unsqueeze(-1)).squeeze(-1) * (1.0 - self.smoothing())
    return self.correct.target_losses(logs, target).detach() + hard - hard.detach()


@fault(
    "loss.target-alone-pulled", "gradient-sums-to-zero", seam="output_logarithms", kind="gradient"
)
def target_alone_pulled(self: Hooks, output: Tensor) -> Tensor:
    """The best logit is detached from the softmax. All logits drift upwards."""
    best = output == output.amax(dim=-1, keepdim=True)
    return self.correct.output_logarithms(torch.where(best, output.detach(), output))


@fault("loss.small-gradients-cut", "gradient-sums-to-zero", seam="loss", kind="gradient")
def small_gradients_cut(self: Hooks, module: Node, output: Tensor, target: Tensor) -> Tensor:
    """Gradients below a thousandth of the largest are dropped. Rare words are never pushed down."""
    held = output
    if output.requires_grad:
        held = output * 1.0
        held.register_hook(  # type: ignore[no-untyped-call]  # it has no types in torch
            lambda pulled: pulled * (pulled.abs() > 0.02 * pulled.abs().amax())
        )
    return self.correct.loss(module, held, target)


@fault("loss.bfloat16-in-float32", "float32", seam="output_logarithms")
def bfloat16_in_float32(self: Hooks, output: Tensor) -> Tensor:
    """The softmax of a float32 call is computed in bfloat16. Five digits are lost, silently."""
    rounded = output.bfloat16().to(output.dtype) if output.dtype == torch.float32 else output
    return self.correct.output_logarithms(rounded)


@fault("loss.float16-in-float32", "float32", seam="target_losses")
def float16_in_float32(self: Hooks, logs: Tensor, target: Tensor) -> Tensor:
    """The losses of a float32 call are stored as float16. Three digits are left of them."""
    losses = self.correct.target_losses(logs, target)
    return losses.half().to(losses.dtype) if logs.dtype == torch.float32 else losses


@fault("loss.half-sum-of-exponentials", "half-precision", seam="output_logarithms")
def half_sum_of_exponentials(self: Hooks, output: Tensor) -> Tensor:
    """In half precision the maximum is not subtracted, and the sum ends at 65,504.

    A few logits above 11 make the loss infinite in float16.
    """
    if output.dtype not in (torch.float16, torch.bfloat16):
        return self.correct.output_logarithms(output)
    powers = (output * 4.0).exp().to(output.dtype)
    return output - powers.sum(dim=-1, keepdim=True).log() / 4.0


@fault("loss.half-rounded-down", "half-precision", seam="target_losses")
def half_rounded_down(self: Hooks, logs: Tensor, target: Tensor) -> Tensor:
    """In half precision the losses are cut to whole numbers. What is nearly right has no loss."""
    losses = self.correct.target_losses(logs, target)
    narrow = losses.dtype in (torch.float16, torch.bfloat16)
    return losses.floor() if narrow else losses
