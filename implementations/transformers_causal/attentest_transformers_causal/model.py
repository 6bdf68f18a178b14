"""The decoder-only models of transformers at other sizes, and how they and their blocks are called.

Shapes: B batch, T positions, D model width, V vocabulary.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedConfig

KEY_HEADS = ("num_key_value_heads", "num_kv_heads")
INNER = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
_DERIVED = (
    "model_type", "transformers_version", "_name_or_path", "pad_token_id",
    "layer_types", "attention_layers", "no_rope_layers",
)  # fmt: skip
"""Settings that follow from others, or are none."""


def resized(
    config: PreTrainedConfig,
    *,
    width: int,
    heads: int,
    key_heads: int,
    inner: int,
    layers: int,
    vocabulary: int,
    length: int,
    window: int = 3,
    factor: float = 0.0,
    trained_length: int = 0,
    dropout: float = 0.0,
) -> PreTrainedConfig:
    """Return the configuration at other sizes, with the same design.

    Where layers differ in kind, all of them are of full attention. `factor` and `trained_length`
    are those of scaled rotary positions. There is no id for padding, whose row would not be
    trained. Raises what the library raises for impossible sizes.
    """
    whole = config.to_dict()
    known = set(whole) | set(config.attribute_map)
    head = width // max(heads, 1)
    wanted: dict[str, Any] = {
        "hidden_size": width,
        "word_embed_proj_dim": width,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "vocab_size": vocabulary,
        "max_position_embeddings": length,
        "head_dim": head,
        "use_cache": False,
        "attention_types": [[["global"], layers]],
        **dict.fromkeys(KEY_HEADS, key_heads or heads),
        **dict.fromkeys(INNER, inner),
        **{name: dropout for name in whole if _is_dropout(name, whole[name])},
        **_windowed(config, layers, window),
    }
    if whole.get("rotary_dim"):
        share = whole["rotary_dim"] / (config.hidden_size // config.num_attention_heads)
        wanted["rotary_dim"] = round(share * head)
    if factor and whole.get("rope_parameters"):
        wanted["rope_parameters"] = _scaled(rope(config), factor, trained_length)
    kept = {name: one for name, one in config.to_diff_dict().items() if name not in _DERIVED}
    aliases = set(config.attribute_map.values())
    own = {name: one for name, one in wanted.items() if name in known and name not in aliases}
    for name, alias in config.attribute_map.items():
        kept.pop(alias if name in own else "", None)
    return _made(type(config), {**kept, **own})


def _made(kind: type[PreTrainedConfig], settings: Mapping[str, Any]) -> PreTrainedConfig:
    """Return a configuration without a padding id, or with the default where one is required."""
    try:
        return kind(**{**settings, "pad_token_id": None})
    except Exception:  # the library's own validation has errors of many types
        return kind(**settings)


def _is_dropout(name: str, value: object) -> bool:
    return isinstance(value, float) and ("dropout" in name or name.endswith("pdrop"))


def _windowed(config: PreTrainedConfig, layers: int, window: int) -> dict[str, Any]:
    """Return the settings of the sliding window: none where some layers have full attention."""
    kinds = set(getattr(config, "layer_types", None) or ())
    found: dict[str, Any] = {}
    if kinds:
        kind = "sliding_attention" if kinds == {"sliding_attention"} else "full_attention"
        found["layer_types"] = [kind] * layers
    if getattr(config, "sliding_window", None):
        found["sliding_window"] = window
    return found


def rope(config: PreTrainedConfig) -> dict[str, Any]:
    """Return the settings of rotary positions, those of full attention where there are several."""
    found = dict(getattr(config, "rope_parameters", None) or {})
    inner = found.get("full_attention", found)
    return dict(inner) if isinstance(inner, Mapping) else {}


def _scaled(settings: Mapping[str, Any], factor: float, trained_length: int) -> dict[str, Any]:
    return {**settings, "factor": factor, "original_max_position_embeddings": trained_length}


def built(config: PreTrainedConfig, kernel: str) -> Any:
    """Build the model of a configuration, with the attention `kernel` "eager" or "sdpa"."""
    config._attn_implementation = kernel
    return model_class(config)(config).eval()


def model_class(config: PreTrainedConfig) -> Any:
    """Return the class of language models that the library has for the configuration."""
    names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return getattr(transformers, names[config.model_type])


def takes_positions(config: PreTrainedConfig) -> bool:
    """Say whether positions can be given to the model."""
    return "position_ids" in inspect.signature(model_class(config).forward).parameters


def logits(
    model: Any, tokens: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
) -> Tensor:
    """Return logits (B, T, V) for tokens (B, T); `keep` (B, T) is True for real tokens.

    Positions that begin again would be read as several documents where there is no mask, so there
    is one.
    """
    return _called(model, keep, positions, input_ids=tokens).logits  # type: ignore[no-any-return]


def takes_cache(config: PreTrainedConfig) -> bool:
    """Say whether the models of a configuration can be given keys and values of earlier tokens."""
    kind = transformers.AutoModelForCausalLM._model_mapping[type(config)]
    return "past_key_values" in inspect.signature(kind.forward).parameters


def empty_cache(model: Any, rows: int) -> DynamicCache:
    """Return a cache of the library without tokens, with rings of keys where there is a window."""
    return DynamicCache(config=model.config)


def step(
    model: Any,
    cache: DynamicCache,
    tokens: Tensor,
    keep: Tensor | None,
    positions: Tensor | None,
) -> tuple[Tensor, DynamicCache]:
    """Return logits (B, N, V) for new tokens (B, N) after a cache, which they are added to.

    `keep` (B, L) is True for the real ones of all tokens so far.
    """
    if positions is not None and keep is None:
        keep = tokens.new_ones(len(tokens), cache.get_seq_length() + tokens.shape[1])
    given = {"past_key_values": cache, "use_cache": True}
    return _called(model, keep, positions, input_ids=tokens, **given).logits, cache


def reorder(model: Any, cache: DynamicCache, rows: Tensor) -> DynamicCache:
    """Return the cache after its rows were exchanged by the library, in place."""
    cache.reorder_cache(rows)
    return cache


def _called(model: Any, keep: Tensor | None, positions: Tensor | None, **inputs: Any) -> Any:
    given: dict[str, Any] = {"use_cache": False, **inputs}
    first: Tensor = inputs["input_ids"]
    if positions is not None:
        given["position_ids"] = positions
        keep = first.new_ones(first.shape[:2], dtype=torch.bool) if keep is None else keep
    if keep is not None:
        given["attention_mask"] = keep.long()
    return model(**given)


def blocks(model: Any) -> tuple[str, nn.ModuleList]:
    """Return the name and the list of the blocks; ValueError where there is no such list."""
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == model.config.num_hidden_layers:
            return name, module
    raise ValueError("it has no list of blocks")


def block(
    model: Any, x: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
) -> Tensor:
    """Return the output (B, T, D) of the first block for x (B, T, D).

    The library's own model calls it, and makes its mask and its rotary turns: what reaches the
    block is exchanged for x, and its output is kept.
    """
    found: list[Tensor] = []
    with _exchanged(blocks(model)[1][0], x, found):
        tokens = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
        _called(model, keep, positions, input_ids=tokens)
    return found[0]


@contextmanager
def _exchanged(inner: nn.Module, x: Tensor, found: list[Tensor]) -> Iterator[None]:
    def give(module: nn.Module, given: Any, named: Any) -> Any:
        if given:
            return (x, *given[1:]), named
        return given, {**named, "hidden_states": x}

    def keep(module: nn.Module, given: Any, output: Any) -> None:
        found.append(output[0] if isinstance(output, tuple | list) else output)

    before = inner.register_forward_pre_hook(give, with_kwargs=True)
    after = inner.register_forward_hook(keep)
    try:
        yield
    finally:
        before.remove()
        after.remove()
