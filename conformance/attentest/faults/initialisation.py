"""Faults of the chapter `initialisation`: the first numbers of a model."""

import numpy as np
import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node
from attentest_spec.choices import Value
from attentest_spec.initialisation import Distribution, ends_sublayer, is_packed

XAVIER: dict[str, Value] = {"initialisation": "xavier-uniform"}
TORCH: dict[str, Value] = {"initialisation": "torch-linear"}
NORMAL: dict[str, Value] = {"initialisation": "normal-0.02"}
DEEP: dict[str, Value] = {**NORMAL, "residual_initialisation": "depth-scaled"}
OWN: dict[str, Value] = {"tying": "none"}

Shape = tuple[int, ...]


@fault("initialisation.fans-exchanged", clause="matrices", seam="fans_of", choices=TORCH)
def fans_exchanged(self: Hooks, name: str, shape: Shape) -> tuple[int, int]:
    """The number of outputs is taken for that of inputs.

    A matrix that is stored the other way round is drawn too small or too large.
    """
    inputs, outputs = self.correct.fans_of(name, shape)
    return outputs, inputs


@fault("initialisation.gain-of-relu", clause="matrices", seam="matrix_deviation", choices=XAVIER)
def gain_of_relu(self: Hooks, name: str, shape: Shape, declared: float) -> float:
    """All matrices are larger by sqrt(2), the gain of ReLU.

    Attention has no ReLU, and its scores begin twice as large.
    """
    return self.correct.matrix_deviation(name, shape, declared) * 2**0.5


@fault("initialisation.bound-is-deviation", clause="matrices", seam="draw_first", choices=XAVIER)
def bound_is_deviation(self: Hooks, kind: str, shape: Shape, deviation: float) -> Tensor:
    """The deviation is used as the bound of a uniform distribution.

    All numbers are smaller by sqrt(3).
    """
    return self.correct.draw_first(kind, shape, deviation / (3**0.5 if kind == "uniform" else 1))


@fault("initialisation.variance-is-deviation", clause="matrices", seam="draw_first", choices=NORMAL)
def variance_is_deviation(self: Hooks, kind: str, shape: Shape, deviation: float) -> Tensor:
    """The variance is given where the deviation is asked for.

    All numbers are almost zero.
    """
    return self.correct.draw_first(kind, shape, deviation**2)


@fault("initialisation.normal-for-uniform", clause="matrices", seam="draw_first", choices=XAVIER)
def normal_for_uniform(self: Hooks, kind: str, shape: Shape, deviation: float) -> Tensor:
    """Numbers are normal, and a uniform distribution is declared.

    A few are larger than any should be.
    """
    return self.correct.draw_first("normal", shape, deviation)


@fault("initialisation.uniform-for-normal", clause="matrices", seam="draw_first", choices=NORMAL)
def uniform_for_normal(self: Hooks, kind: str, shape: Shape, deviation: float) -> Tensor:
    """Numbers are uniform, and a normal distribution is declared.

    The deviation is right, and there are no tails.
    """
    return self.correct.draw_first("uniform", shape, deviation)


@fault("initialisation.drawn-as-one", clause="packing", seam="fans_of", choices=XAVIER)
def drawn_as_one(self: Hooks, name: str, shape: Shape) -> tuple[int, int]:
    """Query, key and value are drawn as one matrix, and separate ones are declared.

    Scores begin half as large.
    """
    inputs, outputs = self.correct.fans_of(name, shape)
    return inputs, 3 * outputs if is_packed(name) else outputs


@fault(
    "initialisation.drawn-one-by-one",
    clause="packing",
    seam="fans_of",
    choices={**XAVIER, "initialisation_packing": "packed"},
)
def drawn_one_by_one(self: Hooks, name: str, shape: Shape) -> tuple[int, int]:
    """Query, key and value are drawn one by one, and a packed matrix is declared.

    Scores begin twice as large.
    """
    return shape[1], shape[0]


@fault(
    "initialisation.depth-scaling-lost",
    clause="residual-scale",
    seam="residual_scale",
    origin="M032",
    choices=DEEP,
)
def depth_scaling_lost(self: Hooks, name: str) -> float:
    """The last matrices of the sublayers are as large as the others.

    A later initialisation has overwritten the scaling.
    """
    return 1.0


@fault(
    "initialisation.depth-without-two",
    clause="residual-scale",
    seam="residual_scale",
    choices=DEEP,
)
def depth_without_two(self: Hooks, name: str) -> float:
    """The scaling counts layers, and each has two branches.

    The last matrices are larger by sqrt(2).
    """
    return float(self.sizes.layers**-0.5) if ends_sublayer(name) else 1.0


@fault(
    "initialisation.all-matrices-scaled",
    clause="matrices",
    seam="residual_scale",
    choices=DEEP,
)
def all_matrices_scaled(self: Hooks, name: str) -> float:
    """All matrices are scaled by the depth.

    Deep models begin with almost no signal.
    """
    return float((2 * self.sizes.layers) ** -0.5)


@fault(
    "initialisation.generator-left-out",
    clause="generator",
    seam="first_matrix",
    choices={**NORMAL, **OWN, "generator_initialisation": "as-matrices"},
)
def generator_left_out(self: Hooks, name: str, shape: Shape, declared: Distribution) -> Tensor:
    """The generator keeps the numbers of torch's default.

    It is not a part of the stacks that are initialised.
    """
    if name != "generator.weight":
        return self.correct.first_matrix(name, shape, declared)
    return self.draw_first("uniform", shape, (3 * shape[1]) ** -0.5)


@fault(
    "initialisation.embeddings-of-one",
    clause="embeddings",
    seam="first_embedding",
    choices={**OWN, "embedding_initialisation": "normal-inverse-sqrt-d"},
)
def embeddings_of_one(self: Hooks, name: str, shape: Shape, declared: Distribution) -> Tensor:
    """Embeddings have a deviation of 1, and are multiplied by sqrt(d_model) too.

    Positions are drowned.
    """
    return self.draw_first("normal", shape, 1.0)


@fault(
    "initialisation.embeddings-overwritten",
    clause="embeddings",
    seam="first_embedding",
    origin="M032",
    choices={**OWN, "embedding_initialisation": "normal-inverse-sqrt-d"},
)
def embeddings_overwritten(self: Hooks, name: str, shape: Shape, declared: Distribution) -> Tensor:
    """A loop over all matrices draws the embeddings again, by Xavier.

    What the embedding had chosen is lost.
    """
    return self.draw_first("uniform", shape, (2 / sum(shape)) ** 0.5)


@fault(
    "initialisation.pad-row-overwritten",
    clause="pad-row",
    seam="first_pad_row",
    origin="M032",
    choices={
        **OWN,
        "embedding_initialisation": "normal-1",
        "pad_row_initialisation": "zero",
    },
)
def pad_row_overwritten(self: Hooks, values: Tensor, pad: int) -> Tensor:
    """The row of the pad id is drawn again after it had been set to zero.

    It gets no gradient, and stays random.
    """
    return values


@fault(
    "initialisation.row-zero-for-the-pad",
    clause="pad-row",
    seam="first_pad_row",
    choices={
        **OWN,
        "embedding_initialisation": "normal-1",
        "pad_row_initialisation": "zero",
    },
)
def row_zero_for_the_pad(self: Hooks, values: Tensor, pad: int) -> Tensor:
    """The row that is set to zero is the first one, whatever the pad id is.

    A word begins without a meaning, and padding with one.
    """
    values[0] = 0.0
    return values


@fault(
    "initialisation.biases-of-torch",
    clause="biases",
    seam="first_bias",
    choices={"bias_initialisation": "zeros"},
)
def biases_of_torch(self: Hooks, name: str, shape: Shape, declared: Distribution) -> Tensor:
    """Biases keep torch's default, and zeros are declared.

    Only matrices are initialised.
    """
    return self.draw_first("uniform", shape, (3 * self.sizes.d_model) ** -0.5)


@fault(
    "initialisation.biases-as-matrices",
    clause="biases",
    seam="first_bias",
    origin="M031",
    choices={"bias_initialisation": "zeros"},
)
def biases_as_matrices(self: Hooks, name: str, shape: Shape, declared: Distribution) -> Tensor:
    """A loop over all parameters draws biases with a deviation of 0.02.

    Loaded weights hide it.
    """
    return self.draw_first("normal", shape, 0.02)


def _after(self: Hooks, model: Node) -> Node:
    """Initialise the model correctly, and return it."""
    self.correct.initialise_model(model)
    return model


@fault("initialisation.norms-drawn", clause="norms", seam="initialise_model", origin="M031")
def norms_drawn(self: Hooks, model: Node) -> None:
    """A model-wide initialisation draws norms with a deviation of 0.02.

    Signals begin fifty times too small; loaded weights hide it.
    """
    for name, values in _after(self, model).named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(values, std=0.02)


@fault("initialisation.norms-of-zero", clause="norms", seam="initialise_model")
def norms_of_zero(self: Hooks, model: Node) -> None:
    """A loop that sets every vector to zero reaches the gains of the norms.

    The model begins with an output of zero, and no gradient.
    """
    for values in _after(self, model).parameters():
        if values.dim() == 1:
            torch.nn.init.zeros_(values)


@fault("initialisation.positive-numbers", clause="centred", seam="initialise_model")
def positive_numbers(self: Hooks, model: Node) -> None:
    """Matrices are drawn from 0 upwards.

    All columns move in the same direction.
    """
    for values in _after(self, model).parameters():
        if values.dim() > 1:
            torch.nn.init.uniform_(values, 0.0, 0.1)


@fault("initialisation.ones", clause="varied", seam="initialise_model")
def ones(self: Hooks, model: Node) -> None:
    """Matrices are filled with one number, as for a test.

    All columns learn the same.
    """
    for values in _after(self, model).parameters():
        if values.dim() > 1:
            torch.nn.init.constant_(values, 0.01)


@fault("initialisation.as-allocated", clause="varied", seam="initialise_model")
def as_allocated(self: Hooks, model: Node) -> None:
    """One matrix is left as it was allocated.

    Its numbers have any size, and are zeros in many runs.
    """
    layer = _after(self, model).decoder.layers[0].feed_forward
    values = next(one for one in layer.parameters() if one.dim() > 1)
    torch.nn.init.constant_(values, 0.0)
    values.data[0, 0] = 1e30


@fault("initialisation.heads-equal", clause="rows-differ", seam="first_matrix", choices=XAVIER)
def heads_equal(self: Hooks, name: str, shape: Shape, declared: Distribution) -> Tensor:
    """The first head of a projection is drawn, and repeated for the others.

    Heads that begin equal stay equal.
    """
    values = self.correct.first_matrix(name, shape, declared)
    if is_packed(name):
        values = values[: len(values) // self.sizes.heads].repeat(self.sizes.heads, 1)
    return values


@fault("initialisation.layers-copied", clause="matrices-differ", seam="initialise_model")
def layers_copied(self: Hooks, model: Node) -> None:
    """All layers of the encoder are copies of the first one.

    A stack begins as one layer that is applied several times.
    """
    first, *others = _after(self, model).encoder.layers
    for one in others:
        one.load_state_dict(first.state_dict())


@fault("initialisation.seed-in-the-constructor", clause="constructions-differ", seam="make_model")
def seed_in_the_constructor(self: Hooks) -> Node:
    """The constructor sets a seed before it draws.

    Five runs of an experiment are one run.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(42)
        return self.correct.make_model()


@fault("initialisation.own-generator", clause="same-seed", seam="draw_first", choices=XAVIER)
def own_generator(self: Hooks, kind: str, shape: Shape, deviation: float) -> Tensor:
    """Matrices are drawn from a generator that takes its seed from the clock.

    A run cannot be repeated, whatever seed its script sets.
    """
    with torch.random.fork_rng(devices=[]):
        torch.seed()
        return self.correct.draw_first(kind, shape, deviation)


@fault("initialisation.embedding-of-numpy", clause="same-seed", seam="initialise_model")
def embedding_of_numpy(self: Hooks, model: Node) -> None:
    """The embeddings are drawn by a generator of NumPy without a seed.

    Everything else repeats, so that the difference is taken for that of the hardware.
    """
    for name, values in _after(self, model).named_parameters():
        if "embedding" in name and values.dim() > 1:
            drawn = np.random.default_rng().normal(scale=0.05, size=tuple(values.shape))
            values.data.copy_(torch.from_numpy(drawn))
