"""What a picture of a mistake looks at: the same question, put to the oracle and to the fault.

A view holds the inputs and picks from the answer a matrix that can be drawn. Nothing is random:
parameters and inputs come from seeds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from attentest.faults import Fault, fault_of, inject
from attentest.faults.reference_models import DECLARED
from attentest_spec import Backend, Choices, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats

SIZES = Sizes(source_vocabulary=7, target_vocabulary=7)
SEED = 5
SMALL = 1e-9

Ask = Callable[..., Any]
"""A component that can be called: its oracle, or the specimen with the fault in it."""


@dataclass(frozen=True)
class Pair:
    """What is right and what is wrong, as matrices of one shape.

    `hidden` says which cells a mask hides, `across` what the rows of curves stand over.
    """

    right: Array
    wrong: Array
    hidden: Array | None = None
    across: Array | None = None

    @property
    def turned(self) -> Array:
        """Where one of the two is zero, or False, and the other is not."""
        return _something(self.right) != _something(self.wrong)


def _something(values: Array) -> Array:
    return ~(np.abs(values.astype(float)) < SMALL)


@dataclass(frozen=True)
class Kind:
    """A way to draw: its panel, how it is read, and the words that stand for one side.

    With `difference`, a third panel shows wrong less right.
    """

    panel: str
    reading: str
    told: Callable[[Pair, Array], str]
    difference: bool = False


@dataclass(frozen=True, kw_only=True)
class View:
    """One question to a component, and how its answer is drawn.

    `rows` and `columns` name the axes of the matrix; `about` is a sentence on the inputs. With
    `plain_norms`, gains are 1 and biases 0, as at birth.
    """

    component: str
    look: Callable[[Ask], Array]
    kind: Kind
    rows: str
    columns: str
    about: str = ""
    sizes: Sizes = SIZES
    plain_norms: bool = False
    choices: Mapping[str, Value] = field(default_factory=dict)
    hidden: Array | None = None
    across: Array | None = None


def compared(slug: str, view: View) -> Pair:
    """Return what `view` shows of the fault `slug`, right and wrong.

    Raises UnknownName where there is no such fault, ValueError where the two cannot be laid side
    by side or where no difference can be seen.
    """
    fault = shown(slug, view)
    right, wrong = answers(fault, view, inject(fault, fault.models[0]))
    if right.shape != wrong.shape:
        raise ValueError(f"{slug}: the shape is {right.shape} right and {wrong.shape} wrong")
    visible = 5e-3 * np.abs(right[np.isfinite(right)].astype(float)).max(initial=0.0)
    if np.allclose(right, wrong, rtol=0.0, atol=max(visible, SMALL)):
        raise ValueError(f"{slug} looks the same right and wrong: it needs another picture")
    return Pair(right, wrong, view.hidden, view.across)


def shown(slug: str, view: View) -> Fault:
    """Return the fault `slug` under the choices of `view`."""
    fault = fault_of(slug)
    return replace(fault, choices={**view.choices, **fault.choices})


def answers(fault: Fault, view: View, backend: Backend) -> tuple[Array, Array]:
    """Return what the oracle and `backend` show under the choices of `fault`."""
    choices = Choices.of({**DECLARED, **fault.choices})
    parameters = _parameters(view, choices)
    part = backend.build(view.component, view.sizes)
    part.load(parameters)
    oracle = partial(ORACLES[view.component], Setting(view.sizes, choices, parameters))
    return np.asarray(view.look(oracle)), np.asarray(view.look(part))


def _parameters(view: View, choices: Choices) -> dict[str, Floats]:
    drawn = draw(view.component, view.sizes, choices, np.random.default_rng(SEED))
    if not view.plain_norms:
        return drawn
    gains = {name for name in drawn if name.endswith("gain")}
    biases = {name.removesuffix("gain") + "bias" for name in gains}
    plain = {name: np.ones_like(drawn[name]) for name in gains}
    return drawn | plain | {name: np.zeros_like(drawn[name]) for name in biases}


# Inputs ------------------------------------------------------------------------------------------


def numbers(*shape: int, seed: int = 0) -> Floats:
    """Return signed numbers of the given shape, about 1 in size."""
    return np.random.default_rng(seed).normal(size=shape).round(2)


def keep(*keys: int) -> Array:
    """Return a padding mask (1, 1, 1, K) that keeps the keys marked by 1."""
    return np.array(keys, dtype=bool)[None, None, None]


def causal(length: int) -> Array:
    """Return the causal mask (1, 1, T, T)."""
    return np.tri(length, dtype=bool)[None, None]


# What several views have in common
X = numbers(1, 4, 6)
WORDS = np.array([[5, 3, 6, 2]])
LAST_IS_PAD = keep(1, 1, 1, 0)
LOGITS = {"output": "logits"}


# Questions ---------------------------------------------------------------------------------------


def influence(ask: Ask, inputs: Array) -> Floats:
    """Return how far each position of the output moves when one of the input is changed.

    `ask` takes `inputs`, numbers (B, L, D) or tokens (B, L), and gives (B, T, D). Rows are the
    positions of the output, sentence by sentence, and columns those of the input.
    """
    before = np.asarray(ask(inputs))
    columns = []
    for place in np.ndindex(inputs.shape[:2]):
        moved = inputs.copy()
        moved[place] = _moved(inputs[place])
        columns.append(np.abs(np.asarray(ask(moved)) - before).max(axis=-1).ravel())
    return np.stack(columns, axis=1)


def _moved(old: Array) -> Array:
    """Return other numbers, or the next token that is not the pad 0."""
    if old.dtype.kind == "i":
        return old % (SIZES.source_vocabulary - 1) + 1
    return old + numbers(*old.shape, seed=9)


def padded(ask: Ask, source: list[int], target: Array, pad: int, most: int) -> Floats:
    """Return how far 0 to `most` pads after the source move the last step: (most + 1, V)."""
    batch = (np.array([source + [pad] * count]) for count in range(most + 1))
    last = np.stack([np.asarray(ask(tokens, target))[0, -1] for tokens in batch])
    moved: Floats = last - last[0]
    return moved
