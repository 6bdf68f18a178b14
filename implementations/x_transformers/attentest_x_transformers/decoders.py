"""Backends of the decoder-only models of x-transformers, each made of the options of one."""

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attentest_spec import Limits, Place, Sizes, Table, nested
from attentest_spec.torch import Recipe, TorchBackend, cached_language_model
from attentest_x_transformers import arguments
from attentest_x_transformers.library import x_transformers as library
from attentest_x_transformers.options import choices_of, filled

_HEADS_IN_TURN = {
    "query": Place("to_q", layout="(r g e) d -> (g r e) d"),
    "key": Place("to_k"),
    "value": Place("to_v"),
    "output": Place("to_out", layout="d (r g e) -> d (g r e)"),
}
"""Attention whose query head h reads the head h mod G of keys: its query heads are exchanged."""

LAYERS = 24
"""The largest number of mapped layers: the library numbers sublayers, not layers."""

EXACT_SLOPES = 8
"""The largest number of heads whose slopes of ALiBi are exact: the library keeps them in float32,
and the fused kernel computes with them in float64."""


def of_decoder(*options: str, name: str = "x_transformers_decoder") -> TorchBackend:
    """Return `TransformerWrapper(attn_layers=Decoder(..))` with the `options` as a backend.

    An option is the name of an argument of the library: of `Decoder`, or `tie_embedding` of the
    wrapper; `no_abs_pos_emb` is its `use_abs_pos_emb=False`. Numbers follow the sizes, and the
    model has random weights. Raises ValueError for an option that is not known.
    """
    choices = choices_of(options)
    table = _table(options)
    block = {
        one.removeprefix("layers.0."): replace(place, name=place.name.removeprefix("attn_layers."))
        for one, place in table.items()
        if one.startswith("layers.0.") and isinstance(place, Place)
    }

    def build(sizes: Sizes) -> Any:
        return library.TransformerWrapper(
            num_tokens=sizes.target_vocabulary,
            max_seq_len=sizes.max_length,
            attn_layers=_stack(options, sizes),
            emb_dropout=sizes.dropout,
            tie_embedding="tie_embedding" in options,
            use_abs_pos_emb="no_abs_pos_emb" not in options,
        )

    learned, alibi = choices["positional_encoding"] != "none", "alibi_pos_bias" in options
    return TorchBackend(
        name=name,
        title=f"x-transformers' decoder-only model with {', '.join(options) or 'its defaults'}",
        choices=choices,
        limits=Limits(
            layers=LAYERS,
            heads=EXACT_SLOPES if alibi and "attn_flash" in options else None,
            cross=False,
            positions=("none",) if alibi else Limits().positions,
        ),
        recipes={
            "language_model": Recipe(build, _logits, parameters=table),
            "causal_layer": Recipe(
                lambda sizes: _stack(options, sizes.but(layers=1), pre_norm_has_final_norm=False),
                lambda built, x, keep=None, positions=None: built(x, mask=keep, pos=positions),
                parameters=block,
            ),
            "cached_language_model": cached_language_model(
                build,
                start=lambda model, rows: Past(None, None),
                step=_step_of_rows if learned else _step,
                reorder=_reordered,
                parameters=table,
            ),
        },
    )


def _stack(options: tuple[str, ...], sizes: Sizes, **fixed: Any) -> Any:
    given = arguments.layers(sizes) | filled(options, sizes) | fixed
    return library.Decoder(dim=sizes.d_model, verbose=False, **given)


def _logits(
    model: Any, tokens: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
) -> Any:
    return model(tokens, mask=keep, pos=positions)


class Past(NamedTuple):
    """The library's cache, None before the first tokens, and the positions (B, L) of its tokens."""

    kept: Any
    positions: Tensor | None


def _step(
    model: Any, past: Past, tokens: Tensor, keep: Tensor | None, positions: Tensor | None
) -> tuple[Tensor, Past]:
    """Continue texts; the keys are kept as they were projected, and turned by all positions."""
    if positions is not None and past.positions is not None:
        positions = torch.cat([past.positions, positions], dim=1)
    logits, kept = _called(model, past.kept, tokens, keep, positions)
    return logits, Past(kept, positions)


def _step_of_rows(
    model: Any, past: Past, tokens: Tensor, keep: Tensor | None, positions: Tensor | None
) -> tuple[Tensor, Past]:
    """Continue texts whose positions are rows: those of the new tokens are looked up."""
    logits, kept = _called(model, past.kept, tokens, keep, positions)
    return logits, Past(kept, None)


def _called(model: Any, kept: Any, tokens: Tensor, keep: Any, positions: Any) -> Any:
    return model(
        tokens,
        mask=keep,
        pos=positions,
        cache=kept,
        input_not_include_cache=True,
        cache_age=tokens.shape[1],
        return_intermediates=True,
    )


def _reordered(model: Any, past: Past, rows: Tensor) -> Past:
    """Return the past with the rows (B,) of its keys and values; the library has no function."""
    inner = [
        replace(one, cached_kv=tuple(kept[rows] for kept in one.cached_kv))
        for one in past.kept.attn_intermediates
    ]
    places = None if past.positions is None else past.positions[rows]
    return Past(replace(past.kept, attn_intermediates=inner), places)


def _table(options: tuple[str, ...]) -> dict[str, str | Place]:
    """Return the parameter map of a model with the `options`."""
    rms, shared = "use_rmsnorm" in options, "attn_kv_heads" in options
    norm: Table = {"gain": "g"} if rms else {"gain": Place("gamma", plus=1.0)}
    plain = {"query": "to_q", "key": "to_k", "value": "to_v", "output": "to_out"}
    heads: dict[str, str | Place] = dict(_HEADS_IN_TURN if shared else plain)
    if "attn_head_learned_sink" in options:
        layout = "(r g) -> (g r)" if shared else ""
        heads["sink.score"] = Place("attend.head_attn_sink", layout=layout)
    network: dict[str, str | Place] = {"inner": "ff.0.0", "outer": "ff.2"}
    if "ff_glu" in options:
        network["inner"] = Place("ff.0.proj", part=(0, 2))
        network["gate"] = Place("ff.0.proj", part=(1, 2))
    table: dict[str, str | Place] = {
        "embedding": "token_emb.emb",
        "positions": "pos_emb.emb",
        "generator": "token_emb.emb" if "tie_embedding" in options else "to_logits",
    }
    stack = nested("norm", "final_norm", norm)
    for number in range(2 * LAYERS):
        kind, inner = (("self_attention", heads), ("feed_forward", network))[number % 2]
        layer = f"layers.{number // 2}"
        stack |= nested(f"{layer}.{kind}", f"layers.{number}.1", inner)
        stack |= nested(f"{layer}.{kind}_norm", f"layers.{number}.0.0", norm)
        if "sandwich_norm" in options:
            stack |= nested(f"{layer}.{kind}_branch_norm", f"layers.{number}.0.1", norm)
    return table | nested("", "attn_layers", stack)


alibi = of_decoder(
    "alibi_pos_bias", "no_abs_pos_emb", "attn_flash", "tie_embedding", "ff_relu_squared",
    name="x_transformers_alibi",
)  # fmt: skip
rotary = of_decoder(
    "use_rmsnorm", "sandwich_norm", "ff_glu", "ff_swish", "rotary_pos_emb", "attn_kv_heads",
    "attn_softclamp_logits", "attn_head_learned_sink",
    name="x_transformers_rotary",
)  # fmt: skip
