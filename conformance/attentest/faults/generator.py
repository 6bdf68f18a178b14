"""Faults of the chapter `generator`."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node
from attentest_spec.choices import Value

LOGARITHMS = {"output": "log-probabilities"}
LOGITS = {"output": "logits"}
SCALED = {"logit_scale": "inverse-sqrt-d"}
CAPPED: dict[str, Value] = {"logit_cap": 3.0, "output": "logits"}


@fault("generator.bias-dropped", "formula", seam="generator_logits")
def bias_dropped(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The bias is not added. Frequent tokens lose their prior."""
    return self.correct.generator_logits(module, x) - self.correct.generator_logits(module, x * 0)


@fault(
    "generator.bias-undeclared",
    "generator-bias",
    seam="make_generator",
    choices={"generator_bias": "none"},
)
def bias_undeclared(self: Hooks) -> Node:
    """A random bias exists where none is declared. A checkpoint without one keeps it."""
    present = self.choices.but(generator_bias="present")
    built = type(self.correct)(self.sizes, present).make_generator()
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault("generator.temperature", "formula", seam="generator_logits")
def temperature(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Logits are divided by the root of the width.

    The best token stays; all probabilities change.
    """
    return self.correct.generator_logits(module, x) * float(x.shape[-1] ** -0.5)


@fault(
    "generator.probabilities-for-logits",
    "output",
    seam="generator_output",
    origin="B091",
    choices=LOGITS,
)
def probabilities_for_logits(self: Hooks, logits: Tensor) -> Tensor:
    """Probabilities are returned where logits are declared.

    A loss with a softmax of its own cannot come near zero; the best token stays the best.
    """
    return torch.softmax(logits, dim=-1)


@fault("generator.softmax-missing", "output", seam="generator_output")
def softmax_missing(self: Hooks, logits: Tensor) -> Tensor:
    """Logits are returned where probabilities are declared. Nothing sums to one."""
    return logits


@fault("generator.softmax-over-steps", "normalised", seam="generator_output")
def softmax_over_steps(self: Hooks, logits: Tensor) -> Tensor:
    """The softmax runs over the steps. Steps compete with each other, tokens do not."""
    return torch.softmax(logits, dim=-2)


@fault("generator.sigmoid", "normalised", seam="generator_output")
def sigmoid(self: Hooks, logits: Tensor) -> Tensor:
    """Every token has a sigmoid of its own. Probabilities do not sum to one."""
    return torch.sigmoid(logits)


@fault("generator.last-step-alone", "shapes", seam="generator")
def last_step_alone(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Only the last step is returned. Right for generation, useless for training."""
    return self.correct.generator(module, x)[:, -1]


@fault("generator.one-token-short", "shapes", seam="generator_logits")
def one_token_short(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is one token too narrow. The last token can never be predicted."""
    return self.correct.generator_logits(module, x)[..., :-1]


@fault("generator.always-float32", "shapes", seam="generator")
def always_float32(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is float32, whatever came in. float64 loses half of its digits."""
    return self.correct.generator(module, x).float()


@fault("generator.centred-over-steps", "position-wise", seam="generator_logits")
def centred_over_steps(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Logits are centred over the steps. The future leaks into the past."""
    logits = self.correct.generator_logits(module, x)
    return logits - logits.mean(dim=-2, keepdim=True)


@fault("generator.scaled-by-batch", "position-wise", seam="generator_logits")
def scaled_by_batch(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Logits are divided by the maximum of the batch. Samples affect each other."""
    logits = self.correct.generator_logits(module, x)
    return logits / logits.abs().amax()


@fault("generator.overflow", "stable-for-large-logits", seam="generator_output")
def overflow(self: Hooks, logits: Tensor) -> Tensor:
    """The maximum is not subtracted before exp. Logits above 709 give NaN."""
    powers = logits.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "generator.logarithm-of-softmax",
    "stable-for-large-logits",
    seam="generator_output",
    choices=LOGARITHMS,
)
def logarithm_of_softmax(self: Hooks, logits: Tensor) -> Tensor:
    """The logarithm is taken of rounded probabilities. Unlikely tokens have an infinite loss."""
    return torch.softmax(logits, dim=-1).log()


@fault(
    "generator.normaliser-detached",
    "gradient",
    seam="generator_output",
    choices=LOGARITHMS,
    kind="gradient",
)
def normaliser_detached(self: Hooks, logits: Tensor) -> Tensor:
    """The sum of the softmax is detached. Values are right; no token's logit is pushed down."""
    return logits - torch.logsumexp(logits, dim=-1, keepdim=True).detach()


@fault("generator.state-detached", "gradient", seam="generator_logits", kind="gradient")
def state_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The decoder's state is detached from the graph. Nothing before the generator is trained."""
    return self.correct.generator_logits(module, x.detach())


@fault("generator.bias-detached", "gradient", seam="generator_logits", kind="gradient")
def bias_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The bias is detached from the graph. It is never trained."""
    bias = self.correct.generator_logits(module, x * 0)
    return self.correct.generator_logits(module, x) - bias + bias.detach()


@fault("generator.float32-in-bfloat16", "float32", seam="generator_logits")
def float32_in_bfloat16(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The logits of a float32 call are rounded to bfloat16. Five digits are lost, silently."""
    logits = self.correct.generator_logits(module, x)
    return logits.bfloat16().to(x.dtype) if x.dtype == torch.float32 else logits


@fault("generator.float32-softmax-in-half", "float32", seam="generator_output")
def float32_softmax_in_half(self: Hooks, logits: Tensor) -> Tensor:
    """The softmax of a float32 call is returned through float16. Unlikely tokens round to zero."""
    correct = self.correct.generator_output(logits)
    return correct.half().to(logits.dtype) if logits.dtype == torch.float32 else correct


@fault("generator.logit-scale-missing", "logit-scale", seam="scale_state", choices=SCALED)
def logit_scale_missing(self: Hooks, x: Tensor) -> Tensor:
    """The decoder's output goes into the linear map unscaled where a factor is declared.

    A model with tied matrices is far too sure of itself.
    """
    return x


@fault("generator.logit-scale-undeclared", "logit-scale", seam="scale_state")
def logit_scale_undeclared(self: Hooks, x: Tensor) -> Tensor:
    """The decoder's output is divided by the root of the model width.

    The best token stays the best, and every probability is wrong.
    """
    return x / float(x.shape[-1] ** 0.5)


@fault("generator.logit-scale-without-root", "logit-scale", seam="scale_state", choices=SCALED)
def logit_scale_without_root(self: Hooks, x: Tensor) -> Tensor:
    """The state is divided by the model width, not its root. All tokens are about as likely."""
    return x / x.shape[-1]


@fault("generator.bias-scaled", "logit-scale", seam="generator", choices=SCALED)
def bias_scaled(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The factor is applied to the bias too. Frequent tokens lose their prior."""
    logits = self.correct.generator_logits(module, x)
    return self.correct.generator_output(logits / x.shape[-1] ** 0.5)


@fault("generator.ids-up-to-a-thousand", "formula", seam="generator_logits")
def ids_up_to_a_thousand(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Ids from 1,000 on have the logits of the id a thousand below. Rare words are never found."""
    logits = self.correct.generator_logits(module, x)
    place = torch.arange(logits.shape[-1], device=logits.device) % 1000
    return logits[..., place]


@fault("generator.cap-left-out", "logit-cap", seam="cap_logits", origin="M119", choices=CAPPED)
def cap_left_out(self: Hooks, logits: Tensor) -> Tensor:
    """The cap of the logits is left out. The best token stays, and all probabilities change."""
    return logits


@fault("generator.cap-as-a-factor", "logit-cap", seam="cap_logits", origin="M118", choices=CAPPED)
def cap_as_a_factor(self: Hooks, logits: Tensor) -> Tensor:
    """Logits are multiplied by the tanh, and the cap is not. Large ones are not bounded at all."""
    return logits * torch.tanh(logits / float(self.choices.logit_cap))


@fault("generator.cap-cuts", "logit-cap", seam="cap_logits", choices=CAPPED)
def cap_cuts(self: Hooks, logits: Tensor) -> Tensor:
    """Logits are cut at the cap in place of being bounded softly. Large ones get no gradient."""
    cap = float(self.choices.logit_cap)
    return logits.clamp(-cap, cap)
