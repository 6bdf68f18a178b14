"""The components that show each choice."""

from collections.abc import Mapping

from attentest.analysis.identify.parts import has
from attentest.harness.arithmetic import SINGLE
from attentest_spec import Choices

REACH: Mapping[str, tuple[str, ...]] = {
    "norm_kind": ("residual",),
    "norm_placement": ("residual",),
    "final_norm": ("encoder", "decoder"),
    "norm_epsilon_place": ("layer_norm",),
    "norm_variance": ("layer_norm",),
    "norm_epsilon": ("layer_norm",),
    "norm_bias": ("layer_norm",),
    "norm_sharing": ("encoder_layer", "decoder_layer"),
    "embedding_scale": ("embedding",),
    "positional_encoding": ("positional_encoding",),
    "position_offset": ("positional_encoding",),
    "position_arithmetic": ("positional_encoding",),
    "embedding_norm": ("model",),
    "head_width": ("multi_head_attention",),
    "mask_fill": ("attention",),
    "fully_masked_row": ("attention",),
    "softmax_arithmetic": ("attention",),
    "activation": ("feed_forward",),
    "feed_forward_bias": ("feed_forward",),
    "projection_bias": ("multi_head_attention",),
    "logit_scale": ("generator",),
    "output": ("generator",),
    "generator_bias": ("generator",),
    "tying": ("model",),
    "padding_side": ("padded_batch",),
    "sequence_marks": ("padded_batch",),
    "loss_input": ("loss",),
    "smoothed_mass": ("loss",),
    "loss_normaliser": ("loss",),
    "loss_measure": ("loss",),
    "loss_without_targets": ("loss",),
    "schedule": ("learning_rate",),
    "first_step": ("learning_rate",),
    "adam_beta1": ("optimiser",),
    "adam_beta2": ("optimiser",),
    "adam_epsilon": ("optimiser",),
    "adam_epsilon_place": ("optimiser",),
    "bias_correction": ("optimiser",),
    "weight_decay": ("optimiser",),
    "clip_epsilon": ("gradient_clipping",),
    "key_heads": ("multi_head_attention",),
    "attention_causality": ("multi_head_attention",),
    "feed_forward_gate": ("feed_forward",),
    "router_scores": ("mixture_of_experts",),
    "routing_weights": ("mixture_of_experts",),
    "router_bias": ("mixture_of_experts",),
    "shared_expert": ("mixture_of_experts",),
    "routing_scale": ("mixture_of_experts",),
    "routing_arithmetic": ("mixture_of_experts",),
    "rms_epsilon_place": ("rms_norm",),
    "rms_epsilon": ("rms_norm",),
    "rms_weight": ("rms_norm",),
    "rms_bias": ("rms_norm",),
    "rms_arithmetic": ("rms_norm",),
    "rotary_pairs": ("rotary",),
    "rotary_base": ("rotary",),
    "rotary_width": ("rotary",),
    "rotary_partial": ("rotary",),
    "rotary_scaling": ("rotary",),
    "rotary_magnitude": ("rotary",),
    "rotary_direction": ("rotary",),
    "rotary_arithmetic": ("rotary",),
}
"""The smallest components that show each choice; whatever contains them shows it too."""

ARITHMETICS = {
    **SINGLE,
    "position_arithmetic": "positional_encoding",
    "rotary_arithmetic": "rotary",
}
"""The choices about arithmetic, each with the component that rounds."""


NETWORKS = ("feed_forward", "mixture_of_experts")
"""The components that consist of feed-forward networks alone, so that nothing else is silenced."""

NOT_MEASURED = ("cached_decoding", "causal_layer", "language_model", "cached_language_model")
"""Components whose choices their parts show; the first is called more simply as a model."""


def of_one_shape(choices: Choices) -> set[str]:
    """Return the choices whose options have parameters of one shape, which `choices` have."""
    return {axis for axis in ("rms_weight", "router_bias") if choices[axis] != "none"}


OF_KIND: Mapping[str, tuple[str, ...]] = {
    "layer": ("norm_epsilon_place", "norm_variance", "norm_epsilon", "norm_bias"),
    "rms": ("rms_epsilon_place", "rms_epsilon", "rms_weight", "rms_bias", "rms_arithmetic"),
}
"""The choices of each kind of norm, which the norms of the other kind do not show."""


def axes_of(component: str) -> list[str]:
    """Return the choices that `component` shows, those of its parts included."""
    if component in NOT_MEASURED:
        return []
    return [axis for axis, least in REACH.items() if any(has(component, one) for one in least)]
