"""Faults of the chapter `layer_norm`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

OUTSIDE = {"norm_epsilon_place": "added-to-deviation"}
UNBIASED = {"norm_variance": "unbiased"}


def gain_and_bias(module: Node) -> tuple[Tensor, Tensor]:
    """Return the two parameters, whatever the specimen calls them."""
    gain, bias = module.parameters()
    return gain, bias


def names(module: Node) -> tuple[str, str]:
    """Return what the specimen calls gain and bias."""
    gain, bias = (name for name, _ in module.named_parameters())
    return gain, bias


@fault(
    "layer_norm.mean-kept",
    clause="layer_norm.formula",
    wrong="The mean is not taken out.",
    effect="Rows keep their centre; inputs around zero hide it.",
)
def centre(self: Seams, x: Tensor, mean: Tensor) -> Tensor:
    return x


@fault(
    "layer_norm.divided-by-variance",
    clause="layer_norm.formula",
    wrong="Deviations are divided by the variance, not by its root.",
    effect="Large rows come out small and small ones large; unit scale hides it.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / (variance + self.epsilon())


@fault(
    "layer_norm.mean-absolute-deviation",
    clause="layer_norm.formula",
    wrong="Deviations are divided by the mean of their sizes, not by the root of their squares.",
    effect="Rows come out a quarter too large, more or less.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return centred.abs().mean(dim=-1, keepdim=True).square()


@fault(
    "layer_norm.epsilon-place-outside",
    clause="layer_norm.epsilon-place",
    origin="B060",
    wrong="Epsilon is added to the deviation and was declared to stand inside the root.",
    effect="The same at unit scale; several times too large where activations are small.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / (self.root(variance) + self.epsilon())


@fault(
    "layer_norm.epsilon-place-inside",
    clause="layer_norm.epsilon-place",
    origin="B060",
    wrong="Epsilon stands inside the root and was declared to be added to the deviation.",
    effect="The same at unit scale; far too small where activations are small.",
    choices=OUTSIDE,
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / torch.sqrt(variance + self.epsilon())


@fault(
    "layer_norm.sample-deviation",
    clause="layer_norm.variance",
    origin="B059",
    wrong="Squared deviations are divided by the width less one; the width was declared.",
    effect="13 % off at width 4, 0.1 % at width 512.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return centred.square().sum(dim=-1, keepdim=True) / (centred.shape[-1] - 1)


@fault(
    "layer_norm.population-deviation",
    clause="layer_norm.variance",
    origin="B059",
    wrong="Squared deviations are divided by the width; the width less one was declared.",
    effect="13 % off at width 4, 0.1 % at width 512.",
    choices=UNBIASED,
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return centred.square().mean(dim=-1, keepdim=True)


@fault(
    "layer_norm.epsilon-of-another-library",
    clause="layer_norm.epsilon",
    wrong="Epsilon is 1e-6 where 1e-5 is declared.",
    effect="Small activations of a converted model are shifted; unit scale hides it.",
)
def epsilon(self: Seams) -> float:
    return 1e-6


@fault(
    "layer_norm.epsilon-squared",
    clause="layer_norm.epsilon",
    wrong="Epsilon is squared before it is added.",
    effect="The guard against small deviations is ten thousand times weaker than declared.",
)
def epsilon(self: Seams) -> float:
    return float(self.choices.norm_epsilon) ** 2


@fault(
    "layer_norm.epsilon-as-floor",
    clause="layer_norm.epsilon",
    wrong="The variance is held above epsilon, and epsilon is not added to it.",
    effect="Constant rows are safe, ordinary ones slightly too large.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / torch.sqrt(variance.clamp(min=self.epsilon()))


@fault(
    "layer_norm.bias-before-gain",
    clause="layer_norm.gain-and-bias",
    wrong="The bias is added before the gain multiplies.",
    effect="Invisible while the gain is 1 or the bias 0.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = gain_and_bias(module)
    return gain.to(normalised) * (normalised + bias.to(normalised))


@fault(
    "layer_norm.gain-dropped",
    clause="layer_norm.gain-and-bias",
    origin="B069",
    wrong="The gain is not applied.",
    effect="Invisible at birth; a column can never be turned down.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    return normalised + gain_and_bias(module)[1].to(normalised)


@fault(
    "layer_norm.bias-dropped",
    clause="layer_norm.gain-and-bias",
    origin="B069",
    wrong="The bias is not applied.",
    effect="Invisible at birth; rows stay centred on zero.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    return normalised * gain_and_bias(module)[0].to(normalised)


@fault(
    "layer_norm.gain-and-bias-swapped",
    clause="layer_norm.gain-and-bias",
    wrong="The two parameters have changed places.",
    effect="Every output of a loaded checkpoint is wrong.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = gain_and_bias(module)
    return bias.to(normalised) * normalised + gain.to(normalised)


@fault(
    "layer_norm.gain-along-positions",
    clause="layer_norm.gain-and-bias",
    wrong="Where there are as many positions as columns, the gain is laid along the positions.",
    effect="Other lengths are right; at this one every position has a gain of its own.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = (one.to(normalised) for one in gain_and_bias(module))
    if normalised.dim() > 1 and normalised.shape[-2] == normalised.shape[-1]:
        return gain[:, None] * normalised + bias
    return gain * normalised + bias


@fault(
    "layer_norm.squeezed",
    clause="layer_norm.shapes",
    wrong="Axes of length one are dropped from the output.",
    effect="A batch of one, or a sentence of one word, changes its shape.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.layer_norm(module, x).squeeze()


@fault(
    "layer_norm.always-float32",
    clause="layer_norm.shapes",
    wrong="The output is float32, whatever came in.",
    effect="float64 loses half of its digits, halves are mixed with floats from here on.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.layer_norm(module, x).float()


@fault(
    "layer_norm.over-time-and-features",
    clause="layer_norm.per-position",
    origin="B063",
    wrong="Mean and variance run over positions and columns together.",
    effect="Every word depends on the length of its sentence, on pads and on the future.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    flat = x.reshape(*x.shape[:-2], 1, -1)
    centred = flat - flat.mean(dim=-1, keepdim=True)
    normalised = self.sound.normalise(centred, self.sound.variance(centred))
    return self.sound.affine(module, normalised.reshape(x.shape))


@fault(
    "layer_norm.deviation-over-sentence",
    clause="layer_norm.per-position",
    origin="B063",
    wrong="The mean is that of the row, the deviation that of the sentence.",
    effect="A loud word makes all others quiet.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    single = self.sound.variance(centred)
    return single.mean(dim=-2, keepdim=True).expand_as(single) if single.dim() > 1 else single


@fault(
    "layer_norm.deviation-over-batch",
    clause="layer_norm.per-position",
    wrong="The deviation is that of all sentences of the batch.",
    effect="A sentence depends on the ones it was batched with.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    single = self.sound.variance(centred)
    return single.mean(dim=0, keepdim=True).expand_as(single)


@fault(
    "layer_norm.root-mean-square",
    clause="layer_norm.shift-law",
    wrong="The deviation is taken about zero, though the mean is taken out above.",
    effect="Right for rows around zero; a shifted row comes out small.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    wide = self.sound.widen(x)
    size = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.epsilon())
    normalised = (wide - self.sound.mean(wide)) / size
    return self.sound.affine(module, normalised).to(x.dtype)


@fault(
    "layer_norm.mean-of-one-more",
    clause="layer_norm.shift-law",
    wrong="The mean is divided by the width plus one.",
    effect="A share of the mean stays in every row, the more so the narrower it is.",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    return x.sum(dim=-1, keepdim=True) / (x.shape[-1] + 1)


@fault(
    "layer_norm.not-scaled",
    clause="layer_norm.scale-law",
    wrong="Rows are centred and not divided by their deviation.",
    effect="The size of the input comes through, and deep stacks blow up.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred


@fault(
    "layer_norm.sign-lost",
    clause="layer_norm.scale-law",
    wrong="Deviations lose their sign.",
    effect="Above and below the mean look the same.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return self.sound.normalise(centred, variance).abs()


@fault(
    "layer_norm.statistics-remembered",
    clause="layer_norm.scale-law",
    wrong="The deviation of the first call of a shape is kept and used for the next ones.",
    effect="The first call is right; later ones carry its scale.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    kept = self.memory.setdefault(f"{tuple(centred.shape)}", self.sound.variance(centred))
    remembered: Tensor = kept.detach().to(centred)
    return remembered


@fault(
    "layer_norm.no-epsilon",
    clause="layer_norm.constant-row-finite",
    wrong="Epsilon is left out.",
    effect="Pads and fresh zeros become NaN.",
)
def epsilon(self: Seams) -> float:
    return 0.0


@fault(
    "layer_norm.epsilon-relative",
    clause="layer_norm.constant-row-finite",
    wrong="Epsilon multiplies the variance in place of being added to it.",
    effect="Ordinary rows hide it; a row without variance is 0 / 0.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / torch.sqrt(variance * (1.0 + self.epsilon()))


@fault(
    "layer_norm.bare-root",
    clause="layer_norm.constant-row-gradient",
    origin="B061",
    wrong="The root is differentiated at zero, with epsilon added outside it.",
    effect="Values are right; one constant row makes every gradient NaN.",
    choices=OUTSIDE,
    kind="gradient",
)
def root(self: Seams, variance: Tensor) -> Tensor:
    return variance.sqrt()


@fault(
    "layer_norm.hypotenuse",
    clause="layer_norm.constant-row-gradient",
    origin="B061",
    wrong="The divisor is the hypotenuse of a deviation and the root of epsilon.",
    effect="Values are right; the deviation's slope at zero is infinite, times zero.",
    kind="gradient",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    guard = torch.full_like(variance, self.epsilon() ** 0.5)
    return centred / torch.hypot(variance.sqrt(), guard)


@fault(
    "layer_norm.epsilon-lost-in-half",
    clause="layer_norm.constant-row-half-precision",
    origin="B065",
    wrong="Everything is computed in the half precision itself, where 1e-12 is zero.",
    effect="In float16 a row of zeros is 0 / 0.",
    choices={"norm_epsilon": 1e-12},
)
def widen(self: Seams, x: Tensor) -> Tensor:
    return x


@fault(
    "layer_norm.random-gain",
    clause="layer_norm.birth",
    wrong="A loop that initialises every parameter has also drawn the gain.",
    effect="Columns start at random sizes and signs.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    nn.init.normal_(gain_and_bias(built)[0])
    built.how = self
    return built


@fault(
    "layer_norm.zero-gain",
    clause="layer_norm.birth",
    wrong="The gain is born as zero.",
    effect="Every row starts as zeros, and nothing before it gets a gradient.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    nn.init.zeros_(gain_and_bias(built)[0])
    built.how = self
    return built


@fault(
    "layer_norm.one-pass-variance",
    clause="layer_norm.large-offset",
    wrong="The variance is the mean of the squares less the square of the mean.",
    effect="Far from zero it has lost its digits, and may be negative.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    wide = self.sound.widen(x)
    mean = self.sound.mean(wide)
    variance = wide.square().mean(dim=-1, keepdim=True) - mean.square()
    normalised = self.sound.normalise(wide - mean, variance)
    return self.sound.affine(module, normalised).to(x.dtype)


@fault(
    "layer_norm.mean-in-float32",
    clause="layer_norm.large-offset",
    wrong="The mean of a float64 row is taken in float32.",
    effect="What rounding left of it stays in the row; a row far from zero shows it.",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    return self.sound.mean(x.float()).to(x.dtype)


@fault(
    "layer_norm.float32-in-bfloat16",
    clause="layer_norm.float32",
    wrong="float32 is narrowed to bfloat16 on the way.",
    effect="Five digits are lost, silently.",
)
def widen(self: Seams, x: Tensor) -> Tensor:
    wide = self.sound.widen(x)
    return wide.bfloat16() if x.dtype == torch.float32 else wide


@fault(
    "layer_norm.float32-sum-in-float16",
    clause="layer_norm.float32",
    wrong="The mean of a float32 row is taken in float16.",
    effect="The centre is off by a thousandth of the values.",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    if x.dtype != torch.float32:
        return self.sound.mean(x)
    return self.sound.mean(x.half()).to(x.dtype)


@fault(
    "layer_norm.squares-overflow",
    clause="layer_norm.half-precision",
    wrong="float16 is not widened before it is squared.",
    effect="Rows beyond 256 have an infinite variance and come out as the bias.",
)
def widen(self: Seams, x: Tensor) -> Tensor:
    return x


@fault(
    "layer_norm.not-narrowed-back",
    clause="layer_norm.half-precision",
    wrong="Half precision is widened to float32 and does not come back.",
    effect="What follows is asked to multiply unlike precisions.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    sound = self.sound.layer_norm(module, x)
    return sound if x.dtype == torch.float64 else sound.float()


@fault(
    "layer_norm.deviation-constant-in-backward",
    clause="layer_norm.gradient",
    wrong="The variance is detached from the graph.",
    effect="Values are right; the gradient misses what scaling takes away.",
    kind="gradient",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return self.sound.variance(centred.detach())


@fault(
    "layer_norm.mean-constant-in-backward",
    clause="layer_norm.gradient",
    wrong="The mean is detached from the graph.",
    effect="Values are right; the gradient has a mean that it should not have.",
    kind="gradient",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    return self.sound.mean(x.detach())


@fault(
    "layer_norm.gain-detached",
    clause="layer_norm.gradient",
    wrong="The gain is detached from the graph.",
    effect="Values are right; the gain stays as it was born.",
    kind="gradient",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = gain_and_bias(module)
    return gain.detach().to(normalised) * normalised + bias.to(normalised)


@fault(
    "layer_norm.parameters-plain",
    clause="layer_norm.parameters-trained",
    origin="B067",
    wrong="The bias is held as a plain array, not as a parameter.",
    effect="It is never trained, not saved and not moved.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    _, name = names(built)
    plain = getattr(built, name).detach()
    delattr(built, name)
    built.__dict__[name] = plain
    built.how = self
    return built


@fault(
    "layer_norm.gain-frozen",
    clause="layer_norm.parameters-trained",
    wrong="The gain is a parameter that asks for no gradient.",
    effect="It stays as it was born.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    gain_and_bias(built)[0].requires_grad_(False)
    built.how = self
    return built


@fault(
    "layer_norm.epsilon-trained",
    clause="layer_norm.parameters-trained",
    wrong="Epsilon is a parameter too.",
    effect="The optimiser moves it, below zero if it likes.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    built.register_parameter("guard", nn.Parameter(torch.tensor(self.epsilon())))
    built.how = self
    return built


@fault(
    "layer_norm.centred-in-place",
    clause="layer_norm.input-untouched",
    wrong="The mean is taken out of the caller's own array.",
    effect="The residual path adds a centred input.",
)
def centre(self: Seams, x: Tensor, mean: Tensor) -> Tensor:
    return x.data.sub_(mean) if x.requires_grad else x.sub_(mean)


@fault(
    "layer_norm.output-written-back",
    clause="layer_norm.input-untouched",
    wrong="The output is also written into the input.",
    effect="Whoever held the input holds the output.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    result = self.sound.layer_norm(module, x)
    x.data.copy_(result)
    return result
