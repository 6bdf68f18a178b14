"""A backend without a framework: NumPy, which computes in float64."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attentest_spec import Gradient, Limits, Part, Sizes
from attentest_spec.choices import Value
from attentest_spec.contract import Input, Output, Unsupported
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Floats


def attention(held: Mapping[str, Floats], *inputs: Any) -> tuple[Floats, Floats]:
    """Compute attention with powers of two instead of e."""
    query, key, value, mask = inputs
    scores = np.einsum("bhqe,bhke->bhqk", query, key) * (np.log2(np.e) / query.shape[-1] ** 0.5)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    peak = scores.max(axis=-1, keepdims=True)
    powers = np.exp2(scores - np.where(np.isfinite(peak), peak, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights: Floats = powers / np.where(total == 0, 1.0, total)
    output: Floats = np.einsum("bhqk,bhkg->bhqg", weights, value)
    return output, weights


def layer_norm(held: Mapping[str, Floats], x: Floats) -> Floats:
    """Normalise by NumPy's mean and variance."""
    spread = np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)
    normalised: Floats = (x - np.mean(x, axis=-1, keepdims=True)) / spread
    return held["gain"] * normalised + held["bias"]


Compute = Callable[..., Any]
_PARTS: Mapping[str, tuple[Compute, Callable[[Sizes], dict[str, Floats]]]] = {
    "attention": (attention, lambda sizes: {}),
    "layer_norm": (
        layer_norm,
        lambda sizes: {"gain": np.ones(sizes.d_model), "bias": np.zeros(sizes.d_model)},
    ),
}


@dataclass
class ArrayPart:
    """A function of arrays and the arrays it holds; of what frameworks offer it has nothing."""

    compute: Compute
    held: dict[str, Array]
    capabilities: Collection[str] = ()

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute in float64, and round to the precision of the first input."""
        given = np.asarray(inputs[0]).dtype
        wide = [
            one.astype(np.float64) if isinstance(one, np.ndarray) and one.dtype != bool else one
            for one in inputs
        ]
        held = {name: array.astype(np.float64) for name, array in self.held.items()}
        result = self.compute(held, *wide)
        if isinstance(result, tuple):
            return tuple(one.astype(given) for one in result)
        return result.astype(given)

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Take copies of the parameters."""
        if set(parameters) != set(self.held):
            raise ValueError(f"It holds {sorted(self.held)}, and was given {sorted(parameters)}.")
        for name, array in parameters.items():
            if array.shape != self.held[name].shape:
                raise ValueError(f"{name} has the shape {self.held[name].shape}.")
            self.held[name] = array.copy()

    def export(self) -> dict[str, Array]:
        """Return copies of the parameters."""
        return {name: array.copy() for name, array in self.held.items()}

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Refuse."""
        raise Unsupported("no gradients")

    def train(self) -> None:
        """Refuse."""
        raise Unsupported("no modes")

    def eval(self) -> None:
        """Refuse."""
        raise Unsupported("no modes")

    def reloaded(self) -> Part:
        """Refuse."""
        raise Unsupported("no state")

    def copied(self, how: str) -> Part:
        """Refuse."""
        raise Unsupported("no copies")

    def moved(self, precision: str = "", device: str = "") -> Part:
        """Refuse."""
        raise Unsupported("no moves")

    def placed(self, inputs: tuple[Input, ...], device: str) -> str:
        """Refuse."""
        raise Unsupported("no devices")

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Refuse."""
        raise Unsupported("no inventory")

    def global_state(self) -> Mapping[str, Any]:
        """Refuse."""
        raise Unsupported("no global state")


@dataclass(frozen=True)
class ArrayBackend:
    """The backend of plain arrays."""

    name: str = "plain-arrays"
    title: str = "attention in powers of two and a layer norm, in NumPy, without any capability"
    choices: Mapping[str, Value] = field(default_factory=lambda: {"fully_masked_row": "zero"})
    limits: Limits = field(default_factory=lambda: Limits(dropout=False))
    components: Collection[str] = tuple(_PARTS)

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> Part:
        """Build one of its components."""
        compute, birth = _PARTS[component]
        held = {name: array.astype(dtype(precision)) for name, array in birth(sizes).items()}
        return ArrayPart(compute, held)


MEMBERS = (ArrayBackend(),)
