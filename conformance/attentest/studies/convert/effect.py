"""The difference of the outputs of two models on drawn sequences."""

from dataclasses import dataclass

import numpy as np

from attentest.harness.errors import NotConvertible
from attentest.harness.tolerances import as_floats, distance, largest
from attentest.studies.convert.built import Built, finest
from attentest.studies.convert.entries import Arrays
from attentest.studies.convert.wholes import DECODER_ONLY
from attentest_spec import Backend, Sizes
from attentest_spec.precision import PRECISIONS, dtype
from attentest_spec.setting import Array

LONGEST = 7
"""Tokens of the drawn sentences, where the models take as many."""


@dataclass(frozen=True)
class Difference:
    """The largest difference of what two models compute, and the largest number among them."""

    what: str
    difference: float
    size: float

    def __str__(self) -> str:
        """Return both differences, absolute and relative."""
        relative = self.difference / self.size if self.size else self.difference
        return f"{self.what} by {self.difference:.3g} (relative {relative:.3g})"


@dataclass(frozen=True)
class Effect:
    """The distance between memory and output of two models, computed in `precision`.

    Where one of them does not answer, `apart` is empty and `failure` says why.
    """

    precision: str
    apart: tuple[Difference, ...] = ()
    failure: str = ""

    def __str__(self) -> str:
        """Return all differences in a sentence, or why there are none."""
        if self.failure:
            return f"The outputs of the two models could not be compared: {self.failure}"
        apart = " and in ".join(str(one) for one in self.apart)
        return f"On drawn sentences, in {self.precision}, the two models differ in {apart}."


def effect(
    source: Backend, state: Arrays, target: Backend, entries: Arrays, whole: str, sizes: Sizes
) -> Effect:
    """Compare the two models in the finest precision that both compute in."""
    precision = finest(source, target)
    lengths = (source.limits.length, target.limits.length, sizes.max_length, LONGEST)
    tokens = _sentences(sizes, min(one for one in lengths if one is not None))
    try:
        models = [
            _model(backend, held, whole, sizes, precision)
            for backend, held in ((source, state), (target, entries))
        ]
        compared = _texts if whole == DECODER_ONLY else _pairs
        return Effect(precision, compared(models, tokens))
    except NotConvertible as refusal:
        return Effect(precision, failure=str(refusal))


def _pairs(models: list[Built], tokens: tuple[Array, Array]) -> tuple[Difference, ...]:
    """Compare models of an encoder and a decoder."""
    memory = [as_floats(model.output(tokens[0], method="encode")) for model in models]
    output = [as_floats(model.output(*tokens)) for model in models]
    return _apart("the memory (encode)", *memory), _apart("the output", *output)


def _texts(models: list[Built], tokens: tuple[Array, Array]) -> tuple[Difference, ...]:
    """Compare decoder-only models, in which every token is a real one."""
    output = [as_floats(model.output(tokens[1], None, None)) for model in models]
    return (_apart("the output", *output),)


def _apart(what: str, one: Array, other: Array) -> Difference:
    difference = distance(one, other) if one.shape == other.shape else np.inf
    return Difference(what, difference, largest(one))


def _model(backend: Backend, held: Arrays, whole: str, sizes: Sizes, precision: str) -> Built:
    built = Built(backend, whole, backend.limits.fitted(sizes), precision)
    floats = {name for name, array in held.items() if array.dtype.name in PRECISIONS}
    kind = dtype(precision)
    built.restore({name: one.astype(kind) if name in floats else one for name, one in held.items()})
    return built


def _sentences(sizes: Sizes, length: int) -> tuple[Array, Array]:
    """Draw four sources and four targets (4, length), some with pads at the end."""
    rng = np.random.default_rng(0)
    drawn = []
    for vocabulary, pad in (
        (sizes.source_vocabulary, sizes.source_pad),
        (sizes.target_vocabulary, sizes.target_pad),
    ):
        tokens = rng.integers(0, max(vocabulary - 1, 1), size=(4, length))
        tokens = (tokens + (tokens >= pad)) % vocabulary
        if pad < vocabulary:
            tokens[0, (length + 1) // 2 :] = pad
        drawn.append(tokens)
    return drawn[0], drawn[1]
