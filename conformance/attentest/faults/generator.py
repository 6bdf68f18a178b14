"""Faults of the chapter `generator`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

LOGARITHMS = {"output": "log-probabilities"}
LOGITS = {"output": "logits"}
SCALED = {"logit_scale": "inverse-sqrt-d"}


@fault(
    "generator.bias-dropped",
    clause="generator.formula",
    wrong="The bias is not added.",
    effect="Frequent tokens have no head start.",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.generator_logits(module, x) - self.sound.generator_logits(module, x * 0)


@fault(
    "generator.bias-undeclared",
    clause="generator.generator-bias",
    wrong="The linear map has a bias, random at birth, where none is declared.",
    effect="A checkpoint without one leaves it as it is, and some tokens are said unasked.",
    choices={"generator_bias": "none"},
)
def make_generator(self: Seams) -> Node:
    present = self.choices.but(generator_bias="present")
    built = type(self.sound)(self.sizes, present).make_generator()
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault(
    "generator.temperature",
    clause="generator.formula",
    wrong="Logits are divided by the root of the model width.",
    effect="The best token stays the best, and every probability is wrong.",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.generator_logits(module, x) * float(x.shape[-1] ** -0.5)


@fault(
    "generator.probabilities-for-logits",
    clause="generator.output",
    origin="B091",
    wrong="Probabilities are returned where logits are declared.",
    effect="A loss with a softmax of its own cannot come near zero; the best token stays the best.",
    choices=LOGITS,
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=-1)


@fault(
    "generator.softmax-missing",
    clause="generator.output",
    wrong="Logits are returned where probabilities are declared.",
    effect="Nothing sums to one.",
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    return logits


@fault(
    "generator.softmax-over-steps",
    clause="generator.normalised",
    wrong="The softmax runs over the steps, not over the vocabulary.",
    effect="Steps compete with each other and tokens do not.",
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=-2)


@fault(
    "generator.sigmoid",
    clause="generator.normalised",
    wrong="Every token has a sigmoid of its own.",
    effect="Each lies between 0 and 1; they do not sum to one.",
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    return torch.sigmoid(logits)


@fault(
    "generator.last-step-alone",
    clause="generator.shapes",
    wrong="Only the last step is returned.",
    effect="Right for generation, useless for training.",
)
def generator(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.generator(module, x)[:, -1]


@fault(
    "generator.one-token-short",
    clause="generator.shapes",
    wrong="The output is as wide as the vocabulary less one.",
    effect="The last token can never be said.",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.generator_logits(module, x)[..., :-1]


@fault(
    "generator.always-float32",
    clause="generator.shapes",
    wrong="The output is float32, whatever came in.",
    effect="float64 loses half of its digits.",
)
def generator(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.generator(module, x).float()


@fault(
    "generator.centred-over-steps",
    clause="generator.position-wise",
    wrong="Logits are centred over the steps.",
    effect="The future is shown to the past.",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    logits = self.sound.generator_logits(module, x)
    return logits - logits.mean(dim=-2, keepdim=True)


@fault(
    "generator.scaled-by-batch",
    clause="generator.position-wise",
    wrong="Logits are divided by the largest of the batch.",
    effect="A sentence depends on the ones it was batched with.",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    logits = self.sound.generator_logits(module, x)
    return logits / logits.abs().amax()


@fault(
    "generator.overflow",
    clause="generator.stable-for-large-logits",
    wrong="Exponentials are taken without the largest logit taken out.",
    effect="Infinity over infinity from a logit of 710 on.",
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    powers = logits.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "generator.logarithm-of-softmax",
    clause="generator.stable-for-large-logits",
    wrong="The logarithm is taken of probabilities that have rounded to zero.",
    effect="Unlikely tokens have a loss of infinity.",
    choices=LOGARITHMS,
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=-1).log()


@fault(
    "generator.normaliser-detached",
    clause="generator.gradient",
    wrong="The sum of the softmax is detached from the graph.",
    effect="Values are right; tokens are pulled up and none is pushed down.",
    choices=LOGARITHMS,
    kind="gradient",
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    return logits - torch.logsumexp(logits, dim=-1, keepdim=True).detach()


@fault(
    "generator.state-detached",
    clause="generator.gradient",
    wrong="The decoder's state is detached from the graph.",
    effect="Nothing before the generator is trained.",
    kind="gradient",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.generator_logits(module, x.detach())


@fault(
    "generator.bias-detached",
    clause="generator.gradient",
    wrong="The bias is detached from the graph.",
    effect="It stays as it was born.",
    kind="gradient",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    bias = self.sound.generator_logits(module, x * 0)
    return self.sound.generator_logits(module, x) - bias + bias.detach()


@fault(
    "generator.float32-in-bfloat16",
    clause="generator.float32",
    wrong="The logits of a float32 call are rounded to bfloat16.",
    effect="Five digits are lost, silently.",
)
def generator_logits(self: Seams, module: Node, x: Tensor) -> Tensor:
    logits = self.sound.generator_logits(module, x)
    return logits.bfloat16().to(x.dtype) if x.dtype == torch.float32 else logits


@fault(
    "generator.float32-softmax-in-half",
    clause="generator.float32",
    wrong="The softmax of a float32 call is returned through float16.",
    effect="Unlikely tokens round to zero.",
)
def generator_output(self: Seams, logits: Tensor) -> Tensor:
    sound = self.sound.generator_output(logits)
    return sound.half().to(logits.dtype) if logits.dtype == torch.float32 else sound


@fault(
    "generator.logit-scale-missing",
    clause="generator.logit-scale",
    wrong="The decoder's output goes into the linear map unscaled where a factor is declared.",
    effect="A model with tied matrices is far too sure of itself.",
    choices=SCALED,
)
def scale_state(self: Seams, x: Tensor) -> Tensor:
    return x


@fault(
    "generator.logit-scale-undeclared",
    clause="generator.logit-scale",
    wrong="The decoder's output is divided by the root of the model width.",
    effect="The best token stays the best, and every probability is wrong.",
)
def scale_state(self: Seams, x: Tensor) -> Tensor:
    return x / x.shape[-1] ** 0.5


@fault(
    "generator.logit-scale-without-root",
    clause="generator.logit-scale",
    wrong="The decoder's output is divided by the model width, not by its root.",
    effect="All tokens are about as likely.",
    choices=SCALED,
)
def scale_state(self: Seams, x: Tensor) -> Tensor:
    return x / x.shape[-1]


@fault(
    "generator.bias-scaled",
    clause="generator.logit-scale",
    wrong="The factor is applied to the logits, bias included.",
    effect="Frequent tokens lose their head start.",
    choices=SCALED,
)
def generator(self: Seams, module: Node, x: Tensor) -> Tensor:
    logits = self.sound.generator_logits(module, x)
    return self.sound.generator_output(logits / x.shape[-1] ** 0.5)
