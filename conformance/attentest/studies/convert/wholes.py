"""Whole models that are converted: of an encoder and a decoder, or decoder-only."""

from collections.abc import Mapping

import numpy as np

from attentest.analysis.identify.reach import ARITHMETICS
from attentest.analysis.undeclared import effective_choices
from attentest.harness.errors import NotConvertible
from attentest.harness.tolerances import distance
from attentest.results.text import line
from attentest_spec import CHOICES, Backend, Choices, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import draw, head_width, shapes

MODEL, DECODER_ONLY = "model", "language_model"

WHOLE = (MODEL, DECODER_ONLY)
"""The components that a whole model may be; the first that two backends share is converted."""

SETTLED_BY_ENTRIES = (
    "head_width",
    "norm_bias",
    "norm_sharing",
    "feed_forward_bias",
    "projection_bias",
    "generator_bias",
    "tying",
    "key_heads",
    "rotary_pairs",
)
"""Choices that entries settle: shapes, zeros and equal arrays show what they cost, and rows that
are turned together can be reordered."""

WITHOUT_EFFECT = ("fully_masked_row",)
"""Choices that no pair of sentences shows that each have a real token."""

_TRIED = Sizes(heads=6, kv_heads=3, target_vocabulary=11, max_length=9, trained_length=4)
"""Sizes at which all options differ: heads that are no power of two, a text beyond the window.

Heads are as wide as those of the model, of which a scale of the scores may be a number.
"""

_EQUAL = 1e-12
"""Largest difference of outputs that are the same."""


def whole_of(source: Backend, target: Backend) -> str:
    """Return the component that is converted between two backends; NotConvertible for none."""
    provided = [[one for one in WHOLE if one in each.components] for each in (source, target)]
    for backend, own in zip((source, target), provided, strict=True):
        if not own:
            raise NotConvertible(
                f"{line(str(backend.name))} provides no model, and only whole models are converted."
            )
    shared = [one for one in provided[0] if one in provided[1]]
    if not shared:
        raise NotConvertible(
            f"{line(str(source.name))} provides {provided[0][0]} and {line(str(target.name))} "
            f"{provided[1][0]}: a checkpoint of one is none of the other."
        )
    return shared[0]


def differing(source: Backend, target: Backend, whole: str, sizes: Sizes) -> list[str]:
    """Return which choices differ that decide what is computed with equal parameters of `sizes`."""
    ours, theirs = effective_choices(source), effective_choices(target)
    known = [
        name
        for name in CHOICES
        if ours[name] != theirs[name] and name not in SETTLED_BY_ENTRIES + WITHOUT_EFFECT
    ]
    if whole == DECODER_ONLY:
        wide = _TRIED.but(d_model=_TRIED.heads * head_width(sizes, ours))
        known = _with_effect(ours, theirs, known, wide)
    return [f"{name} ({ours[name]} and {theirs[name]})" for name in known]


def _with_effect(ours: Choices, theirs: Choices, names: list[str], sizes: Sizes) -> list[str]:
    """Return those of the choices that change parameters or outputs of a decoder-only model.

    A part that rounds to float32 is the same one in another precision, as a whole model is.
    """
    exact = ours.but(**dict.fromkeys(ARITHMETICS, "as-computed"))
    others = {name: theirs[name] for name in names if name not in ARITHMETICS}
    shown = [name for name, value in others.items() if _changes(exact, {name: value}, sizes)]
    rest = {name: value for name, value in others.items() if name not in shown}
    return [*shown, *(rest if _changes(exact, rest, sizes) else ())]


def _changes(choices: Choices, others: Mapping[str, Value], sizes: Sizes) -> bool:
    """Say whether the reference of decoder-only models is another one with the `others` made."""
    changed = choices.but(**others)
    if shapes(DECODER_ONLY, sizes, choices) != shapes(DECODER_ONLY, sizes, changed):
        return True
    parameters = draw(DECODER_ONLY, sizes, choices, np.random.default_rng(0))
    tokens = np.random.default_rng(1).integers(0, sizes.target_vocabulary, size=(2, 9))
    one, other = (
        language_model(Setting(sizes, each, parameters), tokens) for each in (choices, changed)
    )
    return distance(one, other) > _EQUAL
