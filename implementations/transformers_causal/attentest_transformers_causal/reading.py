"""The design choices of a model, from its configuration, its modules and its numbers.

What the configuration and the modules say is tried first. What they do not say (which columns of a
head are turned together, where a norm is applied) has few options, and those are taken under which
the specification gives the numbers of the model. A model that no options explain is not judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedConfig

from attentest_spec import Choices, Sizes, Table
from attentest_spec.choices import Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.torch import TorchBackend
from attentest_transformers_causal.norms import EXACT, FITS
from attentest_transformers_causal.options import options_of
from attentest_transformers_causal.sizes import OTHER, SMALL, recipe, small
from attentest_transformers_causal.structure import NotJudged, Structure
from attentest_transformers_causal.tables import shown_by, tables


@dataclass(frozen=True)
class Reading:
    """The choices of a family, its parameter map, and the fixed ratio of its network if any."""

    choices: Mapping[str, Value]
    table: Table
    inner: float | None = None
    exact: bool = True


def read(config: PreTrainedConfig) -> Reading:
    """Return the choices and the parameter map of a configuration's model.

    Raises NotJudged, with the reason, for a model that the specification has no words for.
    """
    found = Structure.of(small(config, "eager").double())
    options = options_of(config, found)
    inner = _fixed_inner(found)
    sizes = _with_inner(SMALL, inner)
    closest = np.inf
    for table, of_norms in tables(found, sizes):
        if unnamed := found.unnamed(table):
            raise NotJudged(f"no canonical parameter is {', '.join(unnamed[:4])}")
        known = {**of_norms, **shown_by(table)}
        every = [{**one, **known} for one in options.all()]
        trial = _Trial.of(config, every[0], table, sizes)
        for choices in every if trial else ():
            difference = trial.difference(choices) if trial else np.inf
            closest = min(closest, difference)
            if difference < FITS:
                return _settled(config, choices, table, inner, difference)
    raise NotJudged(f"no choices of the specification give its numbers (closest: {closest:.1g})")


def _with_inner(sizes: Sizes, inner: float | None) -> Sizes:
    return sizes if inner is None else sizes.but(d_ff=int(inner * sizes.d_model))


def _settled(
    config: PreTrainedConfig,
    choices: dict[str, Value],
    table: Table,
    inner: float | None,
    difference: float,
) -> Reading:
    """Return the reading with its arithmetic, after a second look at other sizes."""
    trial = _Trial.of(config, choices, table, _with_inner(OTHER, inner))
    again = trial.difference(choices) if trial else np.inf
    if again >= FITS:
        raise NotJudged("its design depends on its sizes")
    exact = max(difference, again) < EXACT
    single: dict[str, Value] = {}
    if not exact:
        if choices.get("attention_rotary") == "query-and-key":
            single["rotary_arithmetic"] = "float32"
        single["softmax_arithmetic"] = "float32"
    explained = exact or len(single) > 0
    return Reading({**choices, **single}, table, inner, explained)


def _fixed_inner(found: Structure) -> float | None:
    """Return the ratio of the network's width to the model's where the sizes do not set it."""
    last = found.inside(found.network[-1]) if found.network else None
    wide = int(last.weight.numel()) // SMALL.d_model if last is not None else 0  # type: ignore[operator, union-attr]
    if wide in (0, SMALL.d_ff):
        return None
    return wide / SMALL.d_model


@dataclass(frozen=True)
class _Trial:
    """The logits of a model for random parameters, which the specification may give or not."""

    sizes: Sizes
    parameters: Mapping[str, Floats]
    tokens: Array
    logits: Floats

    @classmethod
    def of(
        cls, config: PreTrainedConfig, choices: Mapping[str, Value], table: Table, sizes: Sizes
    ) -> "_Trial | None":
        """Return the trial of a parameter map; None where the parameters do not fit."""
        recipes = {"language_model": recipe(config, "eager", table)}
        backend = TorchBackend(name="trial", title="", choices=choices, recipes=recipes)
        own, rng = backend.sizes_of(sizes), np.random.default_rng(3)
        tokens: Array = rng.integers(0, sizes.target_vocabulary, size=(2, 11))
        parameters = draw("language_model", own, Choices.of(backend.choices), rng)
        try:
            part = backend.build("language_model", own)
            part.load(parameters)
        except (ValueError, KeyError):
            return None
        return cls(own, parameters, tokens, part(tokens))

    def difference(self, choices: Mapping[str, Value]) -> float:
        """Return the largest difference from the specification, relative to the largest logit."""
        given = Setting(self.sizes, Choices.of(choices), self.parameters)
        expected = language_model(given, self.tokens)
        return float(np.abs(self.logits - expected).max() / np.abs(expected).max())
