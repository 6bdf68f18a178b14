"""A configuration of litgpt at the sizes of a test, with all other settings as they are."""

from dataclasses import replace
from typing import Any

from litgpt.config import Config

from attentest_litgpt.reading import is_windowed
from attentest_spec import Sizes


def sized(config: Config, sizes: Sizes) -> Config:
    """Return the configuration at the `sizes`; impossible ones are for the library to refuse."""
    return replace(
        config,
        block_size=sizes.max_length,
        n_layer=sizes.layers,
        n_embd=sizes.d_model,
        n_head=sizes.heads,
        n_query_groups=sizes.kv_heads or None,
        head_size=None,
        vocab_size=sizes.target_vocabulary,
        padded_vocab_size=sizes.target_vocabulary,
        intermediate_size=sizes.d_ff,
        **_per_layer(config, sizes),
        **_scaled(config, sizes),
    )


def _per_layer(config: Config, sizes: Sizes) -> dict[str, Any]:
    """Return the settings of every layer: no window, and the one base, where layers differ."""
    found: dict[str, Any] = {}
    if config.sliding_window_size is not None:
        found["sliding_window_size"] = sizes.window
        found["sliding_window_indices"] = [int(is_windowed(config))] * max(sizes.layers, 0)
    if config.rope_local_base_freq is not None:
        found["rope_indices"] = [0] * max(sizes.layers, 0)
    return found


def _scaled(config: Config, sizes: Sizes) -> dict[str, Any]:
    """Return the settings of scaled rotary positions with the factor and length of the sizes."""
    if config.rope_condense_ratio != 1:
        return {"rope_condense_ratio": sizes.rotary_factor}
    own = {"factor": sizes.rotary_factor, "original_max_seq_len": sizes.trained_length}
    rule = config.rope_adjustments or {}
    changed = {name: own.get(name, value) for name, value in rule.items()}
    return {"rope_adjustments": changed} if rule else {}
