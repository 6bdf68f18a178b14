"""Views for the pictures of mistakes: one call, made on the reference and on the faulty code.

A view contains the inputs and selects a matrix of the output to draw. Parameters and inputs come
from fixed seeds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from attentest.faults import Fault, fault_of, inject
from attentest.faults.reference_models import DECLARED, REFERENCE_MODELS, reference_backend
from attentest_spec import Backend, Choices, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats

SIZES = Sizes(source_vocabulary=7, target_vocabulary=7)
SEED = 5
SMALL = 1e-9

Ask = Callable[..., Any]
"""A component that can be called: its reference, or the reference model with the fault."""


@dataclass(frozen=True)
class Pair:
    """The correct and the wrong result, as matrices of one shape.

    `hidden` marks the cells that a mask hides, `across` is the horizontal axis of curves.
    """

    right: Array
    wrong: Array
    hidden: Array | None = None
    across: Array | None = None

    @property
    def changed(self) -> Array:
        """The cells where one of the two is zero, or False, and the other is not."""
        return _nonzero(self.right) != _nonzero(self.wrong)


def _nonzero(values: Array) -> Array:
    return ~(np.abs(values.astype(float)) < SMALL)


@dataclass(frozen=True)
class Kind:
    """A kind of picture: its panel, a legend, and a function that describes one side in text.

    With `difference`, a third panel shows the wrong values minus the correct ones.
    """

    panel: str
    reading: str
    describe: Callable[[Pair, Array], str]
    difference: bool = False


@dataclass(frozen=True, kw_only=True)
class View:
    """One call of a component, and how its result is drawn.

    `rows` and `columns` name the axes of the matrix; `about` is a sentence about the inputs. With
    `plain_norms`, gains are 1 and biases 0, as after initialisation. With `initial`, what is asked
    is the parameter of a name, in a new model of either side that begins with the same seed.
    """

    component: str
    look: Callable[[Ask], Array]
    kind: Kind
    rows: str
    columns: str
    about: str = ""
    sizes: Sizes = SIZES
    plain_norms: bool = False
    initial: bool = False
    choices: Mapping[str, Value] = field(default_factory=dict)
    hidden: Array | None = None
    across: Array | None = None


def compare(slug: str, view: View) -> Pair:
    """Return the correct and the wrong result of `view` for the fault `slug`.

    Raises UnknownName if there is no such fault, ValueError if the shapes differ or if no
    difference is visible.
    """
    fault = fault_in(slug, view)
    right, wrong = answers(fault, view, inject(fault, fault.models[0]))
    if right.shape != wrong.shape:
        raise ValueError(f"{slug}: the right shape is {right.shape}, the wrong one {wrong.shape}")
    visible = 5e-3 * np.abs(right[np.isfinite(right)].astype(float)).max(initial=0.0)
    if np.allclose(right, wrong, rtol=0.0, atol=max(visible, SMALL)):
        raise ValueError(f"{slug} is not visible: it needs another picture")
    return Pair(right, wrong, view.hidden, view.across)


def fault_in(slug: str, view: View) -> Fault:
    """Return the fault `slug` under the choices of `view`."""
    fault = fault_of(slug)
    return replace(fault, choices={**view.choices, **fault.choices})


def answers(fault: Fault, view: View, backend: Backend) -> tuple[Array, Array]:
    """Return the results of the reference and of `backend` under the choices of `fault`."""
    if view.initial:
        correct = reference_backend(REFERENCE_MODELS[fault.models[0]], fault.choices)
        return _first_numbers(view, correct), _first_numbers(view, backend)
    choices = Choices.of({**DECLARED, **fault.choices})
    parameters = _parameters(view, choices)
    part = backend.build(view.component, view.sizes)
    part.load(parameters)
    oracle = partial(ORACLES[view.component], Setting(view.sizes, choices, parameters))
    return np.asarray(view.look(oracle)), np.asarray(view.look(part))


def _first_numbers(view: View, backend: Backend) -> Array:
    """Return what the view shows of a model that was built and not loaded."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        held = backend.build(view.component, view.sizes).export()
    return np.asarray(view.look(held.__getitem__))


def _parameters(view: View, choices: Choices) -> dict[str, Floats]:
    random = draw(view.component, view.sizes, choices, np.random.default_rng(SEED))
    if not view.plain_norms:
        return random
    gains = {name for name in random if name.endswith("gain")}
    biases = {name.removesuffix("gain") + "bias" for name in gains}
    plain = {name: np.ones_like(random[name]) for name in gains}
    return random | plain | {name: np.zeros_like(random[name]) for name in biases}


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


# Inputs of several views
X = numbers(1, 4, 6)
WORDS = np.array([[5, 3, 6, 2]])
LAST_IS_PAD = keep(1, 1, 1, 0)
LOGITS = {"output": "logits"}


# Measures ----------------------------------------------------------------------------------------


def influence(ask: Ask, inputs: Array) -> Floats:
    """Return how much each position of the output changes when one of the input is changed.

    `ask` takes `inputs`, numbers (B, L, D) or tokens (B, L), and returns (B, T, D). Rows are the
    positions of the output, sequence by sequence, and columns those of the input.
    """
    before = np.asarray(ask(inputs))
    columns = []
    for place in np.ndindex(inputs.shape[:2]):
        changed = inputs.copy()
        changed[place] = _other(inputs[place])
        columns.append(np.abs(np.asarray(ask(changed)) - before).max(axis=-1).ravel())
    return np.stack(columns, axis=1)


def _other(old: Array) -> Array:
    """Return other numbers, or the next token that is not the pad 0."""
    if old.dtype.kind == "i":
        return old % (SIZES.source_vocabulary - 1) + 1
    return old + numbers(*old.shape, seed=9)


def padding_effect(ask: Ask, source: list[int], target: Array, pad: int, most: int) -> Floats:
    """Return how 0 to `most` pads after the source change the last step: (most + 1, V)."""
    batch = (np.array([source + [pad] * count]) for count in range(most + 1))
    last = np.stack([np.asarray(ask(tokens, target))[0, -1] for tokens in batch])
    change: Floats = last - last[0]
    return change
