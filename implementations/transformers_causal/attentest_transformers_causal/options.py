"""The choices that a configuration and its modules tell, and those of which one applies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from transformers import PreTrainedConfig

from attentest_spec.choices import Value
from attentest_transformers_causal import model as library
from attentest_transformers_causal.norms import norm_choices
from attentest_transformers_causal.sizes import SMALL, configured, rotary_part, scaling
from attentest_transformers_causal.structure import NotJudged, Structure
from attentest_transformers_causal.tables import embeddings, outer_norms

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "quick_gelu": "gelu-sigmoid",
    "silu": "silu",
    "swish": "silu",
    "sigmoid": "sigmoid",
    "relu2": "relu-squared",
}
_ACTIVATION_FIELDS = (
    "hidden_activation", "hidden_act", "activation_function", "activation", "afn", "ffn_act_fn",
)  # fmt: skip


@dataclass
class Options:
    """Settings that are known, and those of which one of several applies."""

    known: dict[str, Value] = field(default_factory=dict)
    open: list[list[Mapping[str, Value]]] = field(default_factory=list)

    def one_of(self, choice: str, *values: Value) -> None:
        """Add a choice with the values it may have, the likely one first."""
        different = list(dict.fromkeys(values))
        self.open.append([{choice: one} for one in different])

    def all(self) -> Iterator[dict[str, Value]]:
        """Yield all combinations, the likely one first."""
        for combined in product(*self.open):
            joined = dict(self.known)
            for one in combined:
                joined.update(one)
            yield joined


def options_of(config: PreTrainedConfig, found: Structure) -> Options:
    """Return the choices that the configuration and the modules tell, and those left open."""
    options = Options(
        {
            "attention_causality": "built-in",
            "mask_fill": "exact",
            "output": "logits",
            "key_heads": "fewer" if _has_key_heads(config) else "as-queries",
            "tying": "target-and-output" if _is_tied(found) else "none",
            "generator_bias": _generator_bias(found),
        }
    )
    before, after = outer_norms(found)
    options.known["embedding_norm"] = "present" if before else "none"
    options.known["final_norm"] = "present" if after else "none"
    _add_norms(options, found)
    _add_positions(options, config, found)
    _add_scores(options, config, found)
    for name, choice in (("final_logit_softcapping", "logit_cap"),):
        if cap := getattr(config, name, None):
            options.known[choice] = float(cap)
    options.one_of("embedding_scale", "none", "sqrt-d")
    configured = [getattr(config, name, None) for name in _ACTIVATION_FIELDS]
    named = [ACTIVATIONS[one] for one in configured if isinstance(one, str) and one in ACTIVATIONS]
    if any(isinstance(one, str) for one in configured) and not named:
        text = next(one for one in configured if isinstance(one, str))
        raise NotJudged(f"its activation is {text}")
    options.one_of("activation", *named, "gelu-tanh", "gelu")
    return options


def _has_key_heads(config: PreTrainedConfig) -> bool:
    return any(hasattr(config, name) for name in library.KEY_HEADS)


def _is_tied(found: Structure) -> bool:
    one, other = found.model.get_input_embeddings(), found.model.get_output_embeddings()
    if other is None:
        raise NotJudged("it has no linear map to logits")
    return one.weight is other.weight


def _generator_bias(found: Structure) -> str:
    bias = getattr(found.model.get_output_embeddings(), "bias", None)
    return "none" if bias is None else "present"


def _add_norms(options: Options, found: Structure) -> None:
    """Add which norms there are; every one is called with a row of numbers."""
    names = [f"{found.layers}.0.{one}" for one in found.norms]
    modules = [
        found.modules[one] for one in (*names, *outer_norms(found)[0], *outer_norms(found)[1])
    ]
    kinds = [norm_choices(one) for one in modules]
    if not kinds:
        raise NotJudged("it has no norms")
    if any(one != kinds[0] for one in kinds):
        raise NotJudged("its norms differ from one another")
    options.known.update(kinds[0])
    if not found.head_norms:
        return
    of_heads = [norm_choices(found.inside(one)) for one in found.head_norms]
    if any(one["norm_kind"] != "rms" for one in of_heads):
        raise NotJudged("its norms of queries and keys are layer norms")
    if any(one != of_heads[0] for one in of_heads):
        raise NotJudged("its norms of queries and keys differ")
    if kinds[0]["norm_kind"] == "rms" and of_heads[0] != kinds[0]:
        raise NotJudged("its norms of queries and keys are others than those of its blocks")
    options.known.update({n: v for n, v in of_heads[0].items() if n != "norm_kind"})
    width = found.inside(found.head_norms[0]).weight.numel()  # type: ignore[operator]
    each = width == SMALL.d_model // SMALL.heads
    options.known["query_key_norm"] = "per-head" if each else "whole-projection"
    options.one_of("query_key_norm_place", "before-rotation", "after-rotation")


def _add_positions(options: Options, config: PreTrainedConfig, found: Structure) -> None:
    """Add how positions enter: as rows, as turns, or as distances."""
    if len(embeddings(found)) > 1:
        options.known["positional_encoding"] = "learned"
        table = found.modules[embeddings(found)[1]]
        offset = int(table.weight.shape[0]) - SMALL.max_length  # type: ignore[index]
        if offset:
            options.known["position_offset"] = float(offset)
        return
    options.known["positional_encoding"] = "none"
    rope = library.rope(config)
    if rope or getattr(config, "rotary_dim", None):
        options.known |= _rotary(config, rope)
        options.one_of("rotary_pairs", "halves", "adjacent")
    else:
        options.one_of("relative_bias", "alibi", "none")


def _rotary(config: PreTrainedConfig, rope: Mapping[str, Any]) -> dict[str, Value]:
    part = rotary_part(config)
    base = float(rope.get("rope_theta") or getattr(config, "rope_theta", None) or 10_000.0)
    found: dict[str, Value] = {"attention_rotary": "query-and-key"}
    if base != 10_000.0:
        found["rotary_base"] = base
    if part < 1:
        found["rotary_width"] = part
    rule = scaling(config)
    return {**found, "rotary_scaling": rule} if rule != "none" else found


def _add_scores(options: Options, config: PreTrainedConfig, found: Structure) -> None:
    """Add the scale, the soft cap and the window of the scores."""
    attention = found.inside(found.attention)
    held = [getattr(attention, name, None) for name in ("scaling", "scale", "softmax_scale")]
    usual = (SMALL.d_model // SMALL.heads) ** -0.5
    constants = [float(one) for one in held if isinstance(one, float) and abs(one - usual) > 1e-9]
    options.one_of("score_scale", "inverse-sqrt-e", *constants, 1.0)
    if cap := getattr(config, "attn_logit_softcapping", None):
        options.known["score_cap"] = float(cap)
    if getattr(configured(config, SMALL), "sliding_window", None):
        options.one_of("attention_window", "with-query", "none")
