"""A configuration at the sizes of a test, and whether the library can build and call it."""

from typing import Any

import torch
from transformers import PreTrainedConfig

from attentest_spec import Sizes, Table
from attentest_spec.contract import Unsupported
from attentest_spec.torch import Recipe
from attentest_transformers_causal import model as library
from attentest_transformers_causal.structure import NotJudged

SMALL = Sizes(
    d_model=64, heads=4, kv_heads=2, d_ff=40, layers=2, target_vocabulary=19, max_length=24,
    window=4, trained_length=8, rotary_factor=4.0,
)  # fmt: skip
OTHER = SMALL.but(d_model=96, heads=3, kv_heads=1, d_ff=52, layers=5)
"""Two sizes whose heads differ in width, so that a constant is no function of it."""

LARGE = 400_000
"""The number of parameters from which on a model at small sizes is not small."""

_SCALINGS = {
    "default": "none",
    "linear": "linear",
    "dynamic": "dynamic-ntk",
    "yarn": "yarn",
    "llama3": "llama3",
}


def configured(config: PreTrainedConfig, sizes: Sizes) -> PreTrainedConfig:
    """Return the configuration at the `sizes`."""
    scaled = scaling(config) != "none"
    require_pairs(config, sizes)
    return library.resized(
        config,
        width=sizes.d_model,
        heads=sizes.heads,
        key_heads=sizes.kv_heads,
        inner=sizes.d_ff,
        layers=sizes.layers,
        vocabulary=sizes.target_vocabulary,
        length=sizes.max_length,
        window=sizes.window,
        factor=sizes.rotary_factor if scaled else 0.0,
        trained_length=sizes.trained_length,
        dropout=sizes.dropout,
    )


def rotary_part(config: PreTrainedConfig) -> float:
    """Return the part of the columns of a head that is turned, 1 for all of them."""
    if columns := getattr(config, "rotary_dim", None):
        return float(columns / (config.hidden_size // config.num_attention_heads))
    return float(library.rope(config).get("partial_rotary_factor") or 1.0)


def require_pairs(config: PreTrainedConfig, sizes: Sizes) -> None:
    """Raise Unsupported for heads of which the turned part is no even number of columns."""
    part = rotary_part(config)
    if part < 1 and sizes.heads > 0:
        columns = part * (sizes.d_model // sizes.heads)
        if columns < 2 or columns % 2:
            raise Unsupported(f"{columns:g} columns of a head would be turned: no pairs")


def scaling(config: PreTrainedConfig) -> str:
    """Return the option of `rotary_scaling`; NotJudged for a rule that is none."""
    kind = library.rope(config).get("rope_type", "default")
    if kind not in _SCALINGS:
        raise NotJudged(f"its rotary positions are scaled by the rule {kind}")
    return _SCALINGS[kind]


def small(config: PreTrainedConfig, kernel: str) -> Any:
    """Return the model at small sizes; NotJudged where the library cannot build and call it."""
    try:
        with torch.device("meta"):
            count = library.built(configured(config, SMALL), kernel).num_parameters()
        if count > LARGE:
            raise NotJudged(f"at small sizes it still has {count} parameters")
        built = library.built(configured(config, SMALL), kernel)
        library.logits(built.double(), torch.arange(5)[None])
    except NotJudged:
        raise
    except Exception as failure:  # the library raises errors of many types
        text = " ".join(str(failure.__cause__ or failure).split())
        raise NotJudged(f"in float64 at small sizes it raises {text[:120]}") from failure
    return built


def recipe(config: PreTrainedConfig, kernel: str, table: Table) -> Recipe:
    """Return how the language model of a configuration is built, called and mapped."""
    return Recipe(
        build=lambda sizes: library.built(configured(config, sizes), kernel),
        call=library.logits,
        parameters=table,
    )
