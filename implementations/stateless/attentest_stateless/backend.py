"""The backend of the functional design: who holds the weights, and where each lies in the packs."""

from collections.abc import Callable, Sequence

from torch import Tensor, arange, nn, zeros

from attentest_spec import Limits, Place, Sizes, Table, nested
from attentest_spec.torch import Recipe, TorchBackend, cached_language_model
from attentest_stateless import model

ATTENTION: Table = {
    "query.weight": Place("qkv", span="query"),
    "key.weight": Place("qkv", span="key"),
    "value.weight": Place("qkv", span="value"),
    "output.weight": "out",
}
FEED_FORWARD: Table = {
    "gate.weight": Place("wide", part=(0, 2)),
    "inner.weight": Place("wide", part=(1, 2)),
    "outer.weight": "narrow",
}
MIXTURE: Table = {
    "router.weight": "router",
    "router.bias": "balance",
    "experts.*.gate.weight": Place("wides[*]", part=(0, 2)),
    "experts.*.inner.weight": Place("wides[*]", part=(1, 2)),
    "experts.*.outer.weight": "narrows[*]",
    **nested("shared_expert", "", FEED_FORWARD),
}
NORMS = (
    "self_attention_norm",
    "self_attention_branch_norm",
    "feed_forward_norm",
    "feed_forward_branch_norm",
)
BLOCK: Table = {
    **nested("self_attention", "", ATTENTION),
    **nested("feed_forward", "", FEED_FORWARD),
    **{
        f"{name}.gain": Place("norms", layout="n d -> (n d)", part=(number, len(NORMS)))
        for number, name in enumerate(NORMS)
    },
}
MODEL: Table = {
    "embedding.weight": "embedding",
    "generator.weight": "embedding",
    "norm.gain": "norm",
    **nested("layers.*", "layers.*", BLOCK),
}


class Held(nn.Module):
    """Weights, and the function that is called with them."""

    def __init__(self, weights: dict[str, Tensor], function: Callable[..., Tensor]) -> None:
        super().__init__()
        for name, weight in weights.items():
            self.register_parameter(name, nn.Parameter(weight))
        self._function = function

    def forward(self, *inputs: Tensor | None) -> Tensor:
        """Return what the function makes of the weights and the inputs."""
        return self._function(dict(self.named_parameters()), *inputs)


class Model(nn.Module):
    """The weights of all blocks, of the embedding and of the last norm."""

    def __init__(self, config: model.Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(model.initial_embedding(config))
        self.layers = nn.ModuleList(_held_block(config) for _ in range(config.layers))
        self.norm = nn.Parameter(zeros(config.width))

    def forward(
        self, tokens: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Return the logits (B, T, V) for tokens (B, T)."""
        return model.logits(*self.weights(), tokens, keep, positions)

    def weights(self) -> tuple[model.Config, Tensor, Sequence[model.Layer], Tensor]:
        """Return the constants and all weights, as the functions take them."""
        layers = [dict(layer.named_parameters()) for layer in self.layers]
        return self.config, self.embedding, layers, self.norm


def _config(sizes: Sizes) -> model.Config:
    return model.Config(
        sizes.d_model,
        sizes.heads,
        sizes.kv_heads or sizes.heads,
        sizes.d_ff,
        sizes.layers,
        sizes.target_vocabulary,
    )


def _held_block(config: model.Config) -> Held:
    return Held(
        model.initial_layer(config), lambda layer, *inputs: model.block(config, layer, *inputs)
    )


def _some(config: model.Config, *names: str) -> dict[str, Tensor]:
    """Return those of the weights of a block that one of its parts has."""
    weights = model.initial_layer(config)
    return {name: weights[name] for name in names}


def _attention(sizes: Sizes) -> Held:
    config = model.Config(sizes.d_model, sizes.heads, sizes.kv_heads or sizes.heads)
    return Held(
        _some(config, "qkv", "out"),
        lambda layer, *inputs: model.attention(config, layer, *inputs),
    )


def _attend(
    built: Held,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    positions: Tensor | None = None,
) -> Tensor:
    """Attend from one sequence to itself: the limits say that all three are one."""
    output: Tensor = built(query, mask, positions)
    return output


def _feed_forward(sizes: Sizes) -> Held:
    config = model.Config(sizes.d_model, inner=sizes.d_ff)
    return Held(_some(config, "wide", "narrow"), model.network)


def _mixture(sizes: Sizes) -> Held:
    config = model.Config(
        sizes.d_model,
        inner=sizes.d_ff,
        experts=sizes.experts,
        chosen=sizes.chosen_experts,
        shared=sizes.shared_inner or sizes.d_ff,
    )
    return Held(model.initial_mixture(config), lambda weights, x: model.mixture(config, weights, x))


def _rms(sizes: Sizes) -> Held:
    config = model.Config(sizes.d_model)
    return Held(
        {"norm": zeros(config.width)},
        lambda weights, x: model.rms(x, weights["norm"], config.epsilon),
    )


def _rotary(sizes: Sizes) -> Callable[[Tensor, Tensor | None], Tensor]:
    config = model.Config(sizes.d_model, sizes.heads)

    def rotary(x: Tensor, positions: Tensor | None = None) -> Tensor:
        places = arange(x.shape[2], device=x.device)[None] if positions is None else positions
        return model.turn(x.transpose(1, 2), places, config.base).transpose(1, 2)

    return rotary


def _step(
    built: Model, past: Tensor, tokens: Tensor, keep: Tensor | None, positions: Tensor | None
) -> tuple[Tensor, Tensor]:
    return model.logits_after(*built.weights(), tokens, past, keep, positions)


backend = TorchBackend(
    name="stateless",
    title="decoder-only: functions of packed weights, norms on both sides, one tied matrix",
    profile="gemma",
    choices={
        "block_norms": "sandwich",
        "logit_cap": 30.0,
        "head_width": "d/h",
        "rms_epsilon_place": "inside-root",
        "rms_arithmetic": "as-computed",
        "rms_bias": "none",
        "mask_fill": "exact",
        "router_scores": "sigmoid",
        "routing_weights": "renormalised",
        "router_bias": "in-choice-alone",
        "shared_expert": "added",
        "routing_scale": 2.5,
        "routing_arithmetic": "as-computed",
        "cache_update": "functional",
        "cache_sessions": "independent",
    },
    limits=Limits(dropout=False, cross=False),
    recipes={
        "multi_head_attention": Recipe(build=_attention, call=_attend, parameters=ATTENTION),
        "rms_norm": Recipe(build=_rms, parameters={"gain": "norm"}),
        "rotary": Recipe(build=_rotary),
        "feed_forward": Recipe(build=_feed_forward, parameters=FEED_FORWARD),
        "mixture_of_experts": Recipe(build=_mixture, parameters=MIXTURE),
        "causal_layer": Recipe(build=lambda sizes: _held_block(_config(sizes)), parameters=BLOCK),
        "language_model": Recipe(build=lambda sizes: Model(_config(sizes)), parameters=MODEL),
        "cached_language_model": cached_language_model(
            lambda sizes: Model(_config(sizes)),
            start=lambda built, rows: model.empty(built.config, built.embedding, rows),
            step=_step,
            reorder=lambda built, past, rows: past[:, :, rows],
            parameters=MODEL,
        ),
    },
)
