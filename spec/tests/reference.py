"""Torch's own layers with canonical parameters, a second implementation beside the oracles.

Nothing here shares a line with the oracles; the packed projections and torch's polarity of masks
(True = hidden) are dealt with in this file alone.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest_spec.choices import PAPER, Value
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(
    d_model=6, heads=2, d_ff=11, layers=3, source_vocabulary=17, target_vocabulary=13, max_length=19
)
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu-tanh": partial(functional.gelu, approximate="tanh"),
    "gelu-sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": functional.silu,
    "relu-squared": lambda x: functional.relu(x) * x,
}
TORCH = {"projection_bias": "present", "tying": "none"}
"""Choices that torch's layers cannot make otherwise."""


def setting(
    component: str, rng: np.random.Generator, sizes: Sizes = SIZES, **choices: Value
) -> Setting:
    """Draw random parameters for `component`, norm gains and biases included."""
    chosen = PAPER.but(**TORCH).but(**choices)
    return Setting(sizes, chosen, draw(component, sizes, chosen, rng))


def tensor(array: Array) -> Tensor:
    """Copy an array into a tensor."""
    return torch.from_numpy(np.array(array))


def hidden(keep: Array | None, queries: int, heads: int) -> Tensor | None:
    """Turn a mask (True = kept) into torch's per-head form (True = hidden)."""
    if keep is None:
        return None
    batch, keys = keep.shape[0], keep.shape[-1]
    full = np.broadcast_to(~keep, (batch, heads, queries, keys))
    return tensor(full.reshape(batch * heads, queries, keys))


def encoder_layer(given: Setting) -> nn.TransformerEncoderLayer:
    """Return torch's encoder layer with the parameters of `given`."""
    sizes = given.sizes
    layer = nn.TransformerEncoderLayer(
        sizes.d_model, sizes.heads, sizes.d_ff, dropout=0.0, batch_first=True,
        activation=ACTIVATIONS[given.choices.activation],
        layer_norm_eps=given.choices.norm_epsilon,
        norm_first=given.choices.norm_placement == "pre", dtype=torch.float64,
    )  # fmt: skip
    layer.load_state_dict(_state(given, {"self_attention": "self_attn"}))
    return layer.eval()


def decoder_layer(given: Setting) -> nn.TransformerDecoderLayer:
    """Return torch's decoder layer with the parameters of `given`."""
    sizes = given.sizes
    layer = nn.TransformerDecoderLayer(
        sizes.d_model, sizes.heads, sizes.d_ff, dropout=0.0, batch_first=True,
        activation=ACTIVATIONS[given.choices.activation],
        layer_norm_eps=given.choices.norm_epsilon,
        norm_first=given.choices.norm_placement == "pre", dtype=torch.float64,
    )  # fmt: skip
    attentions = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
    layer.load_state_dict(_state(given, attentions))
    return layer.eval()


def encoder(given: Setting) -> nn.TransformerEncoder:
    """Return torch's encoder; its layers are replaced, as it fills a stack with copies."""
    layers = [encoder_layer(given.under(f"layers.{n}")) for n in range(given.sizes.layers)]
    stack = nn.TransformerEncoder(
        layers[0], len(layers), norm=_final_norm(given), enable_nested_tensor=False
    )
    stack.layers = nn.ModuleList(layers)
    return stack.eval()


def decoder(given: Setting) -> nn.TransformerDecoder:
    """Return torch's decoder; its layers are replaced, as it fills a stack with copies."""
    layers = [decoder_layer(given.under(f"layers.{n}")) for n in range(given.sizes.layers)]
    stack = nn.TransformerDecoder(layers[0], len(layers), norm=_final_norm(given))
    stack.layers = nn.ModuleList(layers)
    return stack.eval()


def array(result: Tensor) -> Floats:
    """Return a tensor's values; it must carry a graph, or torch took its inference shortcut."""
    assert result.requires_grad
    values: Floats = result.detach().numpy()
    return values


def _final_norm(given: Setting) -> nn.LayerNorm | None:
    if given.choices.final_norm == "none":
        return None
    norm = nn.LayerNorm(given.sizes.d_model, given.choices.norm_epsilon, dtype=torch.float64)
    norm.load_state_dict({"weight": tensor(given["norm.gain"]), "bias": tensor(given["norm.bias"])})
    return norm


def _state(given: Setting, attentions: Mapping[str, str]) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for canonical, own in attentions.items():
        for kind in ("weight", "bias"):
            parts = [given[f"{canonical}.{one}.{kind}"] for one in ("query", "key", "value")]
            state[f"{own}.in_proj_{kind}"] = tensor(np.concatenate(parts))
            state[f"{own}.out_proj.{kind}"] = tensor(given[f"{canonical}.output.{kind}"])
    for canonical, own in _norms(decoder="cross_attention" in attentions).items():
        state[f"{own}.weight"] = tensor(given[f"{canonical}.gain"])
        state[f"{own}.bias"] = tensor(given[f"{canonical}.bias"])
    for canonical, own in {"inner": "linear1", "outer": "linear2"}.items():
        for kind in ("weight", "bias"):
            state[f"{own}.{kind}"] = tensor(given[f"feed_forward.{canonical}.{kind}"])
    return state


def _norms(*, decoder: bool) -> dict[str, str]:
    names = ["self_attention_norm", "feed_forward_norm"]
    if decoder:
        names.insert(1, "cross_attention_norm")
    return {name: f"norm{place}" for place, name in enumerate(names, start=1)}
