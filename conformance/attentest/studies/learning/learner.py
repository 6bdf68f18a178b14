"""The model that is trained: whole, decoder-only, or an encoder inside a classifier."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from attentest.harness.subject import guarded
from attentest.studies.learning.continuation import Continuation
from attentest.studies.learning.regime import Regime
from attentest_spec import PAPER, Backend, Choices, Gradient, Part, Setting, Sizes, Unsupported
from attentest_spec.contract import Input, Output
from attentest_spec.embedding import embedding
from attentest_spec.masks import padding_mask
from attentest_spec.parameters import Shapes, shapes, tied
from attentest_spec.positional_encoding import positional_encoding
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Mask


@dataclass(frozen=True)
class Layout:
    """The parameters that are trained, by their canonical names, under some sizes and choices.

    `component` is "model", "language_model" or "encoder"; around an encoder lie the parameters of a
    classifier.
    """

    component: str
    sizes: Sizes
    choices: Choices

    @cached_property
    def shapes(self) -> Shapes:
        """The shapes of the parameters."""
        table = shapes(self.component, self.sizes, self.choices)
        if self.component != "encoder":
            return table
        width, answers = self.sizes.d_model, self.sizes.target_vocabulary
        return {
            "embedding.weight": (self.sizes.source_vocabulary, width),
            **{f"encoder.{name}": shape for name, shape in table.items()},
            "classifier.weight": (answers, width),
            "classifier.bias": (answers,),
        }

    @cached_property
    def twins(self) -> dict[str, str]:
        """The parameters that are tied to another one, with its name."""
        table = tied(self.component, self.sizes, self.choices)
        if self.component != "encoder":
            return table
        return {f"encoder.{name}": f"encoder.{root}" for name, root in table.items()}

    @property
    def output(self) -> str:
        """The kind of output that is trained on, an option of the choice `output`."""
        return "logits" if self.component == "encoder" else self.choices.output

    def count(self) -> int:
        """Return how many numbers are trained."""
        return sum(prod(shape) for name, shape in self.shapes.items() if name not in self.twins)


class Trainable(Protocol):
    """The methods of a :class:`~attentest_spec.Part` that a training needs."""

    capabilities: Collection[str]

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute the output, or one of the named methods."""

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set the parameters."""

    def export(self) -> dict[str, Array]:
        """Return copies of the parameters."""

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull a cotangent back to the parameters."""

    def train(self) -> None:
        """Switch to training mode."""

    def eval(self) -> None:
        """Switch to evaluation mode."""


def build(backend: Backend, regime: Regime) -> Trainable:
    """Build the model that `regime` trains: a backend's own, which may be wrapped."""
    component = regime.component
    with guarded(f"building {component}"):
        part = backend.build(component, regime.sizes, precision=regime.precision)
    match component:
        case "encoder":
            return Classifier(part, regime)
        case "language_model":
            return Continuation(part, regime.sizes.source_pad)
        case _:
            return part


class Classifier:
    """An encoder with an embedding before it and a mean and a linear layer behind it, as a part.

    It is called as a model is: source (B, S) and a target (B, 1) that is not read give (B, 1, V),
    logits of the answer. What is not the encoder is the spec's, under the choices of the paper.
    """

    def __init__(self, encoder: Part, regime: Regime) -> None:
        self._encoder = encoder
        self._sizes = regime.sizes
        self._number = dtype(regime.precision)
        self._own: dict[str, Array] = {}
        self.capabilities: Collection[str] = encoder.capabilities

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set the parameters, those of the encoder under its name."""
        inner = {name: values for name, values in parameters.items() if _is_inner(name)}
        self._own = {name: one for name, one in parameters.items() if name not in inner}
        self._encoder.load({name.partition(".")[2]: one for name, one in inner.items()})

    def export(self) -> dict[str, Array]:
        """Refuse: what lies around the encoder has no initialisation of its own."""
        raise Unsupported("a classifier has no weights of its own to start at: use equal ones")

    def train(self) -> None:
        """Switch to training mode."""
        self._encoder.train()

    def eval(self) -> None:
        """Switch to evaluation mode."""
        self._encoder.eval()

    def __call__(self, *inputs: Input, method: str = "") -> Array:
        """Return the logits (B, 1, V)."""
        if method:
            raise Unsupported(f"a classifier has no method {method}")
        source = _tokens(inputs)
        x, mask = self._embedded(source)
        return self._answer(self._mean(self._encoder(x, mask), mask))

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull a cotangent (B, 1, V) back to the parameters."""
        source, pulled = _tokens(inputs), cotangent[:, 0]
        x, mask = self._embedded(source)
        share = _share(mask).astype(self._number)
        inner = (pulled @ self._own["classifier.weight"])[:, None] * share
        found = self._encoder.vjp((x, mask), inner)
        mean = self._mean(found.output, mask)
        to_x = found.inputs[0]
        table = np.zeros_like(self._own["embedding.weight"])
        if to_x is not None:
            np.add.at(table, source, to_x * self._number.type(self._sizes.d_model**0.5))
        return Gradient(
            output=self._answer(mean),
            inputs=(None, None),
            parameters={
                "embedding.weight": table,
                **{f"encoder.{name}": one for name, one in found.parameters.items()},
                "classifier.weight": pulled.T @ mean,
                "classifier.bias": pulled.sum(axis=0),
            },
        )

    def _embedded(self, source: Array) -> tuple[Array, Mask]:
        table = self._own["embedding.weight"].astype(np.float64)
        given = Setting(self._sizes, PAPER, {"weight": table})
        x = positional_encoding(given, embedding(given, source))
        return x.astype(self._number), padding_mask(given, source, self._sizes.source_pad)

    def _mean(self, states: Array, mask: Mask) -> Array:
        """Return the mean of the states (B, S, D) that are no padding, as (B, D)."""
        mean: Array = (states * _share(mask).astype(self._number)).sum(axis=1)
        return mean

    def _answer(self, mean: Array) -> Array:
        logits: Array = mean @ self._own["classifier.weight"].T + self._own["classifier.bias"]
        return logits[:, None]


def _is_inner(name: str) -> bool:
    return name.startswith("encoder.")


def _tokens(inputs: tuple[Input, ...]) -> Array:
    source = inputs[0]
    assert isinstance(source, np.ndarray)
    return source


def _share(mask: Mask) -> Array:
    """Return the share of every position in the mean, (B, S, 1), for a mask (B, 1, 1, S)."""
    keep = mask[:, 0, 0, :, None]
    share: Array = keep / keep.sum(axis=1, keepdims=True)
    return share
