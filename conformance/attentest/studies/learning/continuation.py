"""A decoder-only model that is trained on the tasks of whole models: it continues the source."""

from collections.abc import Collection, Mapping

import numpy as np

from attentest_spec import Gradient, Part, Unsupported
from attentest_spec.contract import Input, Output
from attentest_spec.setting import Array, Mask


class Continuation:
    """A decoder-only model as a part that is called with source (B, S) and target (B, T).

    It reads both as one text, (B, S + T), and returns what it says after the tokens of the target,
    (B, T, V). Padding of the source is in the middle of the text and is masked.
    """

    def __init__(self, model: Part, pad: int) -> None:
        self._model = model
        self._pad = pad
        self.capabilities: Collection[str] = model.capabilities

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set the parameters."""
        self._model.load(parameters)

    def export(self) -> dict[str, Array]:
        """Return copies of the parameters."""
        return self._model.export()

    def train(self) -> None:
        """Switch to training mode."""
        self._model.train()

    def eval(self) -> None:
        """Switch to evaluation mode."""
        self._model.eval()

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Return the output (B, T, V) behind the source."""
        if method:
            raise Unsupported(f"a decoder-only model has no method {method}")
        source, target = _tokens(inputs)
        output = self._model(*self._text(source, target))
        assert isinstance(output, np.ndarray)
        return output[:, source.shape[1] :]

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull a cotangent (B, T, V) back to the parameters."""
        source, target = _tokens(inputs)
        length = source.shape[1]
        whole = np.pad(cotangent, ((0, 0), (length, 0), (0, 0)))
        found = self._model.vjp(self._text(source, target), whole)
        return Gradient(found.output[:, length:], (None, None), found.parameters)

    def _text(self, source: Array, target: Array) -> tuple[Array, Mask | None, None]:
        """Return the tokens (B, S + T), the mask of real tokens or none, and no positions."""
        keep = source != self._pad
        mask = np.concatenate([keep, np.ones(target.shape, dtype=bool)], axis=1)
        tokens = np.concatenate([source, target], axis=1)
        return tokens, None if keep.all() else mask, None


def _tokens(inputs: tuple[Input, ...]) -> tuple[Array, Array]:
    source, target = inputs
    assert isinstance(source, np.ndarray)
    assert isinstance(target, np.ndarray)
    return source, target
