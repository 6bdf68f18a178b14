"""How far the outputs of two models lie apart on drawn sentences."""

from dataclasses import dataclass

import numpy as np

from attentest.compare import as_floats, distance, largest
from attentest.convert.built import Built
from attentest.convert.entries import Arrays
from attentest_spec import Backend, Sizes
from attentest_spec.precision import PRECISIONS, dtype
from attentest_spec.setting import Array

LONGEST = 7
"""Tokens of the drawn sentences, where the models take as many."""


@dataclass(frozen=True)
class Apart:
    """The largest difference of what two models compute, and the largest number among them."""

    what: str
    difference: float
    size: float

    def __str__(self) -> str:
        """Return both differences, absolute and relative."""
        relative = self.difference / self.size if self.size else self.difference
        return f"{self.what} by {self.difference:.3g} (relative {relative:.3g})"


def apart(
    source: Backend, state: Arrays, target: Backend, entries: Arrays, sizes: Sizes
) -> tuple[str, list[Apart]]:
    """Compare the memory and the output of both models; return the precision it was done in.

    It is the finest that both compute in. Raises Refused where one of them does not answer.
    """
    both = set(source.limits.precisions) & set(target.limits.precisions)
    precision = next((one for one in PRECISIONS if one in both), "float32")
    models = [
        _model(backend, held, sizes, precision)
        for backend, held in ((source, state), (target, entries))
    ]
    shortest = (source.limits.length, target.limits.length, sizes.max_length, LONGEST)
    tokens = _sentences(sizes, min(one for one in shortest if one is not None))
    memory = [as_floats(model.output(tokens[0], method="encode")) for model in models]
    output = [as_floats(model.output(*tokens)) for model in models]
    return precision, [_apart("the memory (encode)", *memory), _apart("the output", *output)]


def _apart(what: str, one: Array, other: Array) -> Apart:
    difference = distance(one, other) if one.shape == other.shape else np.inf
    return Apart(what, difference, largest(one))


def _model(backend: Backend, held: Arrays, sizes: Sizes, precision: str) -> Built:
    built = Built(backend, backend.limits.fitted(sizes), precision)
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
        tokens = rng.integers(0, vocabulary - 1, size=(4, length))
        tokens += tokens >= pad
        tokens[0, (length + 1) // 2 :] = pad
        drawn.append(tokens)
    return drawn[0], drawn[1]
