"""The design choices of a model, from its configuration, its modules and its numbers.

What the configuration and the modules say is tried first. What they do not say (which columns of a
head are turned together, where a norm is applied) has few options, and those are taken under which
the specification gives the numbers of the model. A model that no options explain is not judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from transformers import PreTrainedConfig

from attentest_spec import Choices, Sizes, Table
from attentest_spec.choices import Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.torch import TorchBackend, TorchPart
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
        if trial is None:
            continue
        best = min(every, key=trial.difference)  # two forms of GELU are close
        closest = min(closest, trial.difference(best))
        if closest < FITS:
            return _settled(config, best, table, inner, closest)
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
    if trial is None or again >= FITS:
        raise NotJudged("its design depends on its sizes")
    exact = max(difference, again) < EXACT
    single: dict[str, Value] = {}
    if choices["positional_encoding"] == "learned":
        single["padded_positions"] = trial.padded_positions(choices)
    if not exact:
        if choices.get("attention_rotary") == "query-and-key":
            single["rotary_arithmetic"] = "float32"
        single["softmax_arithmetic"] = "float32"
    # One token has neither: what is not exact there is another part in float32.
    alone = trial.difference(choices, length=1)
    explained = alone < EXACT or choices.get("rms_arithmetic") == "float32"
    return Reading({**choices, **single}, table, inner, explained)


def _fixed_inner(found: Structure) -> float | None:
    """Return the ratio of the network's width to the model's where the sizes do not set it."""
    last = found.inside(found.network[-1]) if found.network else None
    wide = int(last.weight.numel()) // SMALL.d_model if last is not None else 0  # type: ignore[operator]
    if wide in (0, SMALL.d_ff):
        return None
    return wide / SMALL.d_model


@dataclass(frozen=True)
class _Trial:
    """A model with random parameters, whose logits the specification may give or not."""

    sizes: Sizes
    parameters: Mapping[str, Floats]
    tokens: Array
    part: TorchPart

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
        return cls(own, parameters, tokens, part)

    @cached_property
    def logits(self) -> Floats:
        """The logits of the model."""
        found: Floats = self.part(self.tokens)
        return found

    def difference(self, choices: Mapping[str, Value], length: int = 0) -> float:
        """Return the largest difference from the specification, relative to the largest logit.

        With a `length` it is that of the first tokens alone.
        """
        given = Setting(self.sizes, Choices.of(choices), self.parameters)
        tokens = self.tokens[:, :length] if length else self.tokens
        said = self.part(tokens) if length else self.logits
        expected = language_model(given, tokens)
        return float(np.abs(said - expected).max() / np.abs(expected).max())

    def padded_positions(self, choices: Mapping[str, Value]) -> str:
        """Return which positions tokens have after padding; in float32, where none is NaN."""
        mask = np.ones(self.tokens.shape, dtype=bool)
        mask[1, :4] = False
        part = self.part.moved(precision="float32")
        said = part(self.tokens, mask, None)

        def difference(option: str) -> float:
            declared = Choices.of({**choices, "padded_positions": option})
            expected = language_model(
                Setting(self.sizes, declared, self.parameters), self.tokens, mask
            )
            return float(np.abs(said - expected)[mask].max())

        return min(("columns", "real-tokens"), key=difference)
