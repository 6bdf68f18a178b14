"""The distribution of every parameter of a new model, by its canonical name."""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated

from attentest_spec.setting import Floats, Setting

PACKED = ("query", "key", "value")
EMBEDDINGS = ("source_embedding.weight", "target_embedding.weight")
GENERATOR = "generator.weight"


@dataclass(frozen=True)
class Distribution:
    """A distribution around 0: `kind` is "normal", "uniform" or "zero"."""

    kind: str
    deviation: float = 0.0

    @property
    def bound(self) -> float:
        """The largest magnitude of a uniform number."""
        return self.deviation * sqrt(3)


def distribution(given: Setting, name: str, shape: tuple[int, ...]) -> Distribution | None:
    """Return the distribution of the parameter `name` of a model; None where none is declared.

    Norms are not drawn, and positions, sinks and tied vocabularies are left open.
    """
    choices = given.choices
    if name in EMBEDDINGS:
        return None if choices.tying != "none" else _embedding(given, shape)
    if name == GENERATOR:
        tied = choices.tying in ("all-three", "target-and-output")
        rule = choices.generator_initialisation
        return None if tied else _matrix(given, rule, fans(given, name, shape))
    if "norm" in name or "positions" in name or name.endswith("sink.score"):
        return None
    if name.endswith("bias"):
        return _bias(given, name)
    drawn = _matrix(given, "as-matrices", fans(given, name, shape))
    if drawn is None or not ends_sublayer(name):
        return drawn
    return Distribution(drawn.kind, drawn.deviation * residual_factor(given))


def scaled(
    given: Setting, name: str, values: Annotated[Floats, "*shape"]
) -> Annotated[Floats, "*shape"]:
    """Return the initial `values` (..) of a parameter over the deviation that is declared.

    Raises ValueError where none is declared, or the deviation is 0.
    """
    declared = distribution(given, name, values.shape)
    if declared is None or not declared.deviation:
        raise ValueError(f"No deviation is declared for {name}.")
    quotient: Floats = values / declared.deviation
    return quotient


def fans(given: Setting, name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of inputs and outputs that a matrix (out, in) is drawn by."""
    outputs, inputs = shape
    packed = given.choices.initialisation_packing == "packed" and is_packed(name)
    return inputs, 3 * outputs if packed else outputs


def is_packed(name: str) -> bool:
    """Say whether `name` is a projection of query, key or value."""
    part = name.split(".")
    return len(part) > 1 and part[-2] in PACKED


def ends_sublayer(name: str) -> bool:
    """Say whether the matrix is the last one of a sublayer, before the residual sum."""
    return name.endswith((".output.weight", ".outer.weight"))


def residual_factor(given: Setting) -> float:
    """Return the factor of the deviation of matrices before a residual sum."""
    if given.choices.residual_initialisation == "none":
        return 1.0
    return 1 / sqrt(2 * given.sizes.layers)


def _matrix(given: Setting, rule: str, fan: tuple[int, int]) -> Distribution | None:
    inputs, outputs = fan
    wanted = given.choices.initialisation if rule == "as-matrices" else rule
    rules = {
        "xavier-uniform": Distribution("uniform", sqrt(2 / (inputs + outputs))),
        "xavier-normal": Distribution("normal", sqrt(2 / (inputs + outputs))),
        "torch-linear": Distribution("uniform", 1 / sqrt(3 * inputs)),
        "normal-0.02": Distribution("normal", 0.02),
    }
    return rules.get(wanted)


def _embedding(given: Setting, shape: tuple[int, ...]) -> Distribution | None:
    rule = given.choices.embedding_initialisation
    if rule == "as-matrices":
        rows, width = shape
        return _matrix(given, rule, (width, rows))
    rules = {
        "normal-1": Distribution("normal", 1.0),
        "normal-inverse-sqrt-d": Distribution("normal", given.sizes.d_model**-0.5),
        "normal-0.02": Distribution("normal", 0.02),
    }
    return rules.get(rule)


def _bias(given: Setting, name: str) -> Distribution | None:
    if given.choices.bias_initialisation == "unspecified":
        return None
    if given.choices.bias_initialisation == "zeros":
        return Distribution("zero")
    sizes = given.sizes
    inputs = sizes.d_ff if name.endswith("outer.bias") else sizes.d_model
    if name.endswith(".output.bias") and given.choices.head_width == "d":
        inputs = sizes.d_model * sizes.heads
    return Distribution("uniform", 1 / sqrt(3 * inputs))
