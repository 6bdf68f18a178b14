"""The formulas of all components on the inputs of a call."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.formulas import layers, model
from attentest.analysis.lines.formulas.attention import attention
from attentest.analysis.lines.formulas.experts import mixture_of_experts
from attentest.analysis.lines.formulas.feed_forward import feed_forward, wrapped
from attentest.analysis.lines.formulas.language_model import causal_layer, language_model
from attentest.analysis.lines.formulas.layer_norm import layer_norm
from attentest.analysis.lines.formulas.loss import loss
from attentest.analysis.lines.formulas.masks import causal, padding, whole_target_mask
from attentest.analysis.lines.formulas.multi_head_attention import multi_head_attention
from attentest.analysis.lines.formulas.positions import positions
from attentest.analysis.lines.formulas.rms_norm import rms_norm
from attentest.analysis.lines.formulas.rotary import rotary
from attentest.analysis.lines.formulas.sampling import sampling
from attentest.analysis.lines.formulas.vocabulary import embedding, generator

Inputs = Mapping[str, Any]


def build(formula: Formula, component: str, method: str, inputs: Inputs) -> None:
    """Add the formula of `component`, or of its `method`, on `inputs` by their names.

    Raises KeyError for a component without a formula, such as a schedule.
    """
    makers = _METHODS if method else _COMPONENTS
    makers[method or component](formula, _Leaves(formula, inputs))


class _Leaves:
    """The inputs of a call as steps of a formula."""

    def __init__(self, formula: Formula, inputs: Inputs) -> None:
        self._formula = formula
        self._inputs = inputs

    def __call__(self, name: str, axes: str) -> Step:
        """Return the input `name`, whose last axes are called `axes`."""
        value = np.asarray(self._inputs[name])
        return self._formula.leaf(name, value, axes[-value.ndim :])

    def optional(self, name: str, axes: str) -> Step | None:
        """Return the input `name`, None where there is none."""
        return None if self._inputs.get(name) is None else self(name, axes)

    def mask(self, name: str) -> Step | None:
        """Return the mask `name`, None where there is none."""
        value = self._inputs.get(name)
        return None if value is None else self._formula.leaf(name, value, "BHQK", f"the {name}")

    def demand_none(self, *names: str) -> None:
        """Raise KeyError where one of the inputs is given: the formula has no place for it."""
        for name in names:
            if self._inputs.get(name) is not None:
                raise KeyError(name)

    def number(self, name: str) -> int:
        """Return the number `name`."""
        return int(self._inputs[name])


def _attention(formula: Formula, given: _Leaves) -> Step:
    query, key, value = given("query", "BHQE"), given("key", "BHKE"), given("value", "BHKG")
    return attention(formula, "", query, key, value, mask=given.mask("mask"))


def _multi_head_attention(formula: Formula, given: _Leaves) -> Step:
    query, key, value = given("query", "BQD"), given("key", "BKD"), given("value", "BKD")
    return multi_head_attention(formula, "", query, key, value, mask=given.mask("mask"))


def _residual(formula: Formula, given: _Leaves) -> Step:
    x, square = given("x", "ABLD"), given("sublayer", "DC")

    def sublayer(inner: Step) -> Step:
        return formula.step(
            "", "branch", lambda x, w: x @ w, inner, square, text="sublayer(x)", axes=x.axes
        )

    return wrapped(formula, "norm", x, sublayer, "")


def _encoding(whole: Callable[..., Step]) -> Callable[[Formula, _Leaves], Step]:
    return lambda formula, given: whole(formula, "", given("x", "BLD"), given.mask("mask"))


def _decoding(whole: Callable[..., Step]) -> Callable[[Formula, _Leaves], Step]:
    def make(formula: Formula, given: _Leaves) -> Step:
        x, memory = given("x", "BTD"), given("memory", "BSD")
        return whole(formula, "", x, memory, given.mask("source_mask"), given.mask("target_mask"))

    return make


def _model(formula: Formula, given: _Leaves) -> Step:
    source, target = given("source", "BS"), given("target", "BT")
    return model.decode(formula, target, model.encode(formula, source), source)


def _language_model(formula: Formula, given: _Leaves) -> Step:
    given.demand_none("mask", "positions")
    return language_model(formula, given("tokens", "BL"))


def _causal_layer(formula: Formula, given: _Leaves) -> Step:
    given.demand_none("mask", "positions")
    return causal_layer(formula, given("x", "BLD"))


def _decode(formula: Formula, given: _Leaves) -> Step:
    target, memory, source = given("target", "BT"), given("memory", "BSD"), given("source", "BS")
    return model.decode(formula, target, memory, source)


_COMPONENTS: Mapping[str, Callable[[Formula, _Leaves], Step]] = {
    "padding_mask": lambda formula, given: padding(
        formula, given("tokens", "BS"), given.number("pad")
    ),
    "causal_mask": lambda formula, given: causal(formula, given.number("length")),
    "target_mask": lambda formula, given: whole_target_mask(
        formula, given("tokens", "BT"), given.number("pad")
    ),
    "attention": _attention,
    "multi_head_attention": _multi_head_attention,
    "layer_norm": lambda formula, given: layer_norm(formula, "", given("x", "ABLD")),
    "rms_norm": lambda formula, given: rms_norm(formula, "", given("x", "ABLD")),
    "feed_forward": lambda formula, given: feed_forward(formula, "", given("x", "ABLD")),
    "mixture_of_experts": lambda formula, given: mixture_of_experts(formula, given("x", "ABLD")),
    "residual": _residual,
    "embedding": lambda formula, given: embedding(formula, "", given("tokens", "BL")),
    "positional_encoding": lambda formula, given: positions(formula, "", given("x", "BLD")),
    "sampling": lambda formula, given: sampling(formula, given("logits", "BV")),
    "loss": lambda formula, given: loss(formula, given("output", "BTV"), given("target", "BT")),
    "generator": lambda formula, given: generator(formula, "", given("x", "ABLD")),
    "encoder_layer": _encoding(layers.encoder_layer),
    "encoder": _encoding(layers.encoder),
    "decoder_layer": _decoding(layers.decoder_layer),
    "decoder": _decoding(layers.decoder),
    "model": _model,
    "causal_layer": _causal_layer,
    "language_model": _language_model,
    "rotary": lambda formula, given: rotary(
        formula, "", given("x", "BHLE"), given.optional("positions", "BL")
    ),
}

_METHODS: Mapping[str, Callable[[Formula, _Leaves], Step]] = {
    "encode": lambda formula, given: model.encode(formula, given("source", "BS")),
    "decode": _decode,
}
