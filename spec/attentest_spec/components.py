"""The components: parts of a Transformer that have a contract of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

CHAPTERS = (
    "masks",
    "attention",
    "multi_head_attention",
    "positional_encoding",
    "embedding",
    "layer_norm",
    "rms_norm",
    "feed_forward",
    "mixture_of_experts",
    "residual",
    "encoder",
    "decoder",
    "generator",
    "model",
    "initialisation",
    "batch",
    "loss",
    "schedule",
    "optimiser",
    "cache",
    "decoding",
    "rotary",
    "language_model",
)
"""The chapters of the spec, in reading order."""


@dataclass(frozen=True)
class Component:
    """One component: its chapter, the names of its inputs, and the components it contains.

    `more` names inputs that may follow, under choices that have them. What is `on_host` prepares
    data on the CPU, before they are moved to a device.
    """

    name: str
    chapter: str
    inputs: tuple[str, ...]
    contains: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    on_host: bool = False


_PARTS = (
    Component("padding_mask", "masks", ("tokens", "pad")),
    Component("causal_mask", "masks", ("length",)),
    Component("target_mask", "masks", ("tokens", "pad"), ("padding_mask", "causal_mask")),
    Component("attention", "attention", ("query", "key", "value", "mask")),
    Component(
        "multi_head_attention",
        "multi_head_attention",
        ("query", "key", "value", "mask"),
        ("attention",),
        more=("positions",),
    ),
    Component("positional_encoding", "positional_encoding", ("x",)),
    Component("embedding", "embedding", ("tokens",)),
    Component("layer_norm", "layer_norm", ("x",)),
    Component("rms_norm", "rms_norm", ("x",)),
    Component("feed_forward", "feed_forward", ("x",)),
    Component("mixture_of_experts", "mixture_of_experts", ("x",), ("feed_forward",)),
    Component("residual", "residual", ("x", "sublayer"), ("layer_norm", "rms_norm")),
    Component(
        "encoder_layer",
        "encoder",
        ("x", "mask"),
        ("multi_head_attention", "feed_forward", "residual"),
    ),
    Component("encoder", "encoder", ("x", "mask"), ("encoder_layer", "layer_norm", "rms_norm")),
    Component(
        "decoder_layer",
        "decoder",
        ("x", "memory", "source_mask", "target_mask"),
        ("multi_head_attention", "feed_forward", "residual"),
    ),
    Component(
        "decoder",
        "decoder",
        ("x", "memory", "source_mask", "target_mask"),
        ("decoder_layer", "layer_norm", "rms_norm"),
    ),
    Component("generator", "generator", ("x",)),
    Component(
        "model",
        "model",
        ("source", "target"),
        ("target_mask", "embedding", "positional_encoding", "encoder", "decoder", "generator"),
        ("encode", "decode"),
    ),
    Component(
        "batch", "batch", ("source", "target"), ("padding_mask", "target_mask"), on_host=True
    ),
    Component("padded_batch", "batch", ("tokens", "lengths"), on_host=True),
    Component("packed_batch", "batch", ("tokens", "lengths"), on_host=True),
    Component("loss", "loss", ("output", "target")),
    Component("learning_rate", "schedule", ("step",)),
    Component("optimiser", "optimiser", ("parameters", "gradients", "rates")),
    Component(
        "grouped_optimiser",
        "optimiser",
        ("parameters", "gradients", "rates", "groups", "kinds", "present", "saved"),
        ("optimiser",),
    ),
    Component("gradient_clipping", "optimiser", ("gradients", "groups", "limit")),
    Component(
        "cached_decoding",
        "cache",
        ("source", "target", "chunks", "after", "origin"),
        ("model",),
    ),
    Component("greedy_decoding", "decoding", ("scores", "begin", "length")),
    Component("beam_search", "decoding", ("scores", "begin", "length", "beams")),
    Component("sampling", "decoding", ("logits",)),
    Component("rotary", "rotary", ("x", "positions")),
    Component(
        "causal_layer",
        "language_model",
        ("x", "mask", "positions"),
        ("multi_head_attention", "feed_forward", "layer_norm", "rms_norm"),
    ),
    Component(
        "language_model",
        "language_model",
        ("tokens", "mask", "positions"),
        ("embedding", "positional_encoding", "causal_layer", "generator"),
    ),
    Component(
        "cached_language_model",
        "language_model",
        ("tokens", "mask", "positions", "chunks", "after", "origin"),
        ("language_model",),
    ),
)

COMPONENTS: Mapping[str, Component] = {component.name: component for component in _PARTS}


@cache
def inside(name: str) -> frozenset[str]:
    """Return every component that `name` contains, at any depth, itself included."""
    found = {name}
    for part in COMPONENTS[name].contains:
        found |= inside(part)
    return frozenset(found)
