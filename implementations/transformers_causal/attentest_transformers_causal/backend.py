"""Backends of the decoder-only models of transformers, each made of one configuration."""

from dataclasses import replace

from transformers import LlamaConfig, PreTrainedConfig

from attentest_spec import Limits, Place, Table
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend, cached_language_model
from attentest_transformers_causal import model as library
from attentest_transformers_causal.reading import Reading, read
from attentest_transformers_causal.sizes import recipe, small

COMPONENTS = ("language_model", "causal_layer", "cached_language_model")
BLOCK = "layers.*."
KERNELS = ("eager", "sdpa")
"""The attention kernels of the library: written out, and PyTorch's fused function."""


def of_config(config: PreTrainedConfig, kernel: str = "eager", name: str = "") -> TorchBackend:
    """Return the language model of a configuration as a backend, with one attention kernel.

    It is built at small sizes with random weights, whatever the sizes of the configuration are;
    all other settings are its own. The choices are read with the kernel "eager". Raises NotJudged,
    a ValueError with the reason, for a design that the specification does not describe.
    """
    return backend_of(config, read(config), kernel, name)


def backend_of(
    config: PreTrainedConfig, reading: Reading, kernel: str, name: str = "", changed: str = ""
) -> TorchBackend:
    """Return the backend of a configuration that has been read; `changed` are other settings."""
    small(config, kernel)
    whole = recipe(config, kernel, reading.table)
    kind = type(config).__name__.removesuffix("Config")
    cached = {
        "cached_language_model": cached_language_model(
            whole.build,
            start=library.empty_cache,
            step=library.step,
            reorder=library.reorder,
            parameters=reading.table,
        )
    }
    return TorchBackend(
        name=name or f"{config.model_type}_{kernel}",
        title=f"Hugging Face transformers' {kind} language model, with its attention {kernel}"
        + (f" and {changed}" if changed else ""),
        choices=_choices(reading, kernel),
        limits=Limits(
            cross=False,
            inner=reading.inner,
            positions=_positions(config),
            single=() if reading.exact else COMPONENTS,
        ),
        recipes={
            "language_model": whole,
            "causal_layer": Recipe(
                build=lambda sizes: whole.build(sizes.but(layers=1)),
                call=library.block,
                parameters=_first_block(reading.table),
            ),
            **(cached if _has_cache(config, reading) else {}),
        },
    )


def _has_cache(config: PreTrainedConfig, reading: Reading) -> bool:
    """Say whether the family has a cache that can be judged.

    With ALiBi a family may count distances in real tokens: padding between them is not read yet.
    """
    biased = str(reading.choices.get("relative_bias", "none")).startswith("alibi")
    return library.takes_cache(config) and not biased


def _first_block(table: Table) -> Table:
    """Return the parameter map of the first block, under the names of a block."""
    inside = {name.removeprefix(BLOCK): one for name, one in table.items() if BLOCK in name}
    return {
        name: replace(place, name=place.name.replace("*", "0", 1))
        for name, place in inside.items()
        if isinstance(place, Place)  # as all are that `nested` has moved
    }


def _positions(config: PreTrainedConfig) -> tuple[str, ...]:
    kinds = ("none", "offset", "shared", "per-sample")
    return kinds if library.takes_positions(config) else kinds[:1]


def _choices(reading: Reading, kernel: str) -> dict[str, Value]:
    """Return the choices with one kernel: the fused one rounds no scores."""
    fused = {"softmax_arithmetic": "as-computed"} if kernel == "sdpa" else {}
    cache = {"cache_update": "in-place", "cache_sessions": "independent"}
    return {**reading.choices, **cache, **fused}


def eager() -> TorchBackend:
    """Return the library's Llama with the attention that is written out."""
    return of_config(LlamaConfig(), "eager", "transformers_causal")


def sdpa() -> TorchBackend:
    """Return the library's Llama with PyTorch's fused attention."""
    return of_config(LlamaConfig(), "sdpa", "transformers_causal_sdpa")
