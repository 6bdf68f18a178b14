"""The choices that a table and the shapes behind it decide."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.norm_kinds import numbers_of_rms
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.mapping import Table, locate
from attentest_spec.parameters import shapes
from attentest_spec.setting import Floats

_ATTENTION = {
    "multi_head_attention": ("",),
    "encoder_layer": ("self_attention.",),
    "decoder_layer": ("self_attention.", "cross_attention."),
    "encoder": ("layers.0.self_attention.",),
    "decoder": ("layers.0.self_attention.", "layers.0.cross_attention."),
    "model": (
        "encoder.layers.0.self_attention.",
        "decoder.layers.0.self_attention.",
        "decoder.layers.0.cross_attention.",
    ),
}
_BIASES = {
    "norm_bias": r"norm\.bias$",
    "feed_forward_bias": r"(inner|outer)\.bias$",
    "generator_bias": r"generator\.bias$",
}
"""Endings of the names of biases that a choice leaves out, the component before them."""
_STACKS = {"encoder": ("",), "decoder": ("",), "model": ("encoder.", "decoder.")}


def settled(
    component: str,
    table: Table,
    own: Mapping[str, Floats],
    sizes: Sizes,
    kind: str = "",
    fired: Sequence[Fired] = (),
) -> dict[str, Value]:
    """Return what `table` and the shapes of the module's `own` parameters decide.

    `kind` is that of the norms, "" where it is not known, and `fired` are calls of submodules.
    """
    found: dict[str, Value] = {}
    attentions = _ATTENTION.get(component, ())
    if attentions:
        found["projection_bias"] = _biases(attentions, table, own)
        found["head_width"] = _head_width(f"{attentions[0]}query.weight", table, own, sizes)
        if sizes.kv_heads:  # as the shapes of the code show, whatever its size is
            found["key_heads"] = "fewer"
    layers = [start.removesuffix("self_attention.") for start in attentions if "self" in start]
    if layers:
        shared = all(_shares(start, table) for start in layers)
        found["norm_sharing"] = "shared" if shared else "separate"
    if component in _STACKS:
        final = any(f"{start}norm.gain" in table for start in _STACKS[component])
        found["final_norm"] = "present" if final else "none"
    found |= _without_biases(component, table, own, sizes)
    networks = [f"{start}feed_forward." for start in layers]
    networks += [""] * (component == "feed_forward")
    if any(_there(f"{start}gate.weight", table, own) for start in networks):
        found["feed_forward_gate"] = "gated"
    if kind == "rms":
        found |= {"norm_kind": "rms", "rms_bias": found.pop("norm_bias", "present")}
    if component == "multi_head_attention" and _there("sink.score", table, own):
        found["attention_sink"] = "per-head"
    if component == "multi_head_attention" and _there("relative_bias.weight", table, own):
        found["relative_bias"] = "buckets"
    if component == "multi_head_attention" and _there("query_norm.gain", table, own):
        found |= _norms_of_heads(table, own, sizes, fired)
    if component == "mixture_of_experts":
        found |= _experts(table, own)
    if component == "rms_norm":
        found["rms_bias"] = "present" if _there("bias", table, own) else "none"
    if component == "model":
        found["tying"] = _tying(table, own)
        if _there("source_embedding_norm.gain", table, own):
            found["embedding_norm"] = "present"
    if component == "positional_encoding" or _there("source_positions.weight", table, own):
        found["positional_encoding"] = "learned"
        name = "weight" if component == "positional_encoding" else "source_positions.weight"
        if offset := _offset(name, table, own, sizes):
            found["position_offset"] = float(offset)
    return found


def _norms_of_heads(
    table: Table, own: Mapping[str, Floats], sizes: Sizes, fired: Sequence[Fired]
) -> dict[str, Value]:
    """Return whether norms of queries and keys are of each head, their bias and their epsilon."""
    gain = locate("query_norm.gain", table).name
    if _is_idle(gain, fired):
        return {}
    width = own[gain].size
    each = width == sizes.d_model // sizes.heads
    found: dict[str, Value] = {
        "query_key_norm": "per-head" if each else "whole-projection",
        "rms_bias": "present" if _there("query_norm.bias", table, own) else "none",
    }
    for one in fired:
        if one.path and one.path == gain.rpartition(".")[0] and found["rms_bias"] == "none":
            found |= numbers_of_rms(one, {"gain": own[gain].reshape(-1)})
    return found


def _is_idle(gain: str, fired: Sequence[Fired]) -> bool:
    """Say whether the norm with this `gain` is a module that no call reaches, as one turned off."""
    paths = {one.path for one in fired}
    return bool(paths) and "." in gain and gain.rpartition(".")[0] not in paths


def _experts(table: Table, own: Mapping[str, Floats]) -> dict[str, Value]:
    """Return the gate of the experts, the shared expert, and whether the router has a bias."""
    gated, biased = (_there(name, table, own) for name in ("experts.0.gate.weight", "router.bias"))
    shared = "none"
    if _there("shared_expert.outer.weight", table, own):
        shared = "gated" if _there("shared_gate.weight", table, own) else "added"
    return {
        **({"feed_forward_gate": "gated"} if gated else {}),
        "router_bias": "in-scores" if biased else "none",
        "shared_expert": shared,
    }


def _offset(name: str, table: Table, own: Mapping[str, Floats], sizes: Sizes) -> int:
    """Return how many rows the table of positions has besides one for each position."""
    if not _there(name, table, own):
        return 0
    rows = own[locate(name, table).name].shape
    return int(max(rows[0], sizes.max_length) - sizes.max_length)


def _biases(attentions: tuple[str, ...], table: Table, own: Mapping[str, Floats]) -> str:
    """Return the option; the key's bias changes no softmax, and is often the one left out."""
    found = {
        role
        for start in attentions
        for role in ("query", "key", "value", "output")
        if _there(f"{start}{role}.bias", table, own)
    }
    if found == {"output"}:
        return "output-alone"
    if found == {"query", "value", "output"}:
        return "all-but-key"
    if found == {"query", "key", "value"}:
        return "all-but-output"
    return "present" if found else "none"


def _without_biases(
    component: str, table: Table, own: Mapping[str, Floats], sizes: Sizes
) -> dict[str, Value]:
    """Return the choices about biases that are left out where the paper, or a default, has them."""
    every = [f"{component}.{name}" for name in shapes(component, sizes, Choices())]
    found: dict[str, Value] = {}
    for choice, ending in _BIASES.items():
        names = [name for name in every if re.search(ending, name)]
        if names and not any(_there(name.partition(".")[2], table, own) for name in names):
            found[choice] = "none"
    return found


def _head_width(
    query: str, table: Table, own: Mapping[str, Floats], sizes: Sizes
) -> Literal["d", "d/h"]:
    rows = (
        len(locate(query, table).read(own, sizes.heads, sizes.kv_heads))
        if _there(query, table, own)
        else 0
    )
    return "d" if rows == sizes.d_model * sizes.heads and sizes.heads > 1 else "d/h"


def _there(name: str, table: Table, own: Mapping[str, Floats]) -> bool:
    try:
        names = locate(name, table).names(own)
    except KeyError:
        return False
    return bool(own.keys() & set(names))


def _shares(start: str, table: Table) -> bool:
    first, second = (f"{start}{one}_norm.gain" for one in ("self_attention", "feed_forward"))
    return locate(first, table) == locate(second, table)


def _tying(table: Table, own: Mapping[str, Floats]) -> str:
    places = [
        locate(f"{one}.weight", table)
        for one in ("source_embedding", "target_embedding", "generator")
    ]
    source, target, generator = (memory(own[place.name]) for place in places)
    if source == target:
        return "all-three" if target == generator else "embeddings"
    return "target-and-output" if target == generator else "none"


def memory(values: Floats) -> int:
    """Return the address of `values`: tied parameters have one."""
    return values.__array_interface__["data"][0]  # type: ignore[no-any-return]  # untyped
