"""The design choices of a model, from its configuration, its modules and its numbers.

What the configuration and the modules say is tried first. What they do not say (which columns of a
head are turned together, where a norm is applied) has few options, and those are taken under which
the specification gives the numbers of the model. A model that no options explain is not judged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedConfig

from attentest_spec import Choices, Sizes, Table, nested
from attentest_spec.choices import Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.torch import Recipe, TorchBackend
from attentest_transformers_causal import model as library
from attentest_transformers_causal.structure import (
    ATTENTION,
    FEED_FORWARD,
    NotJudged,
    Structure,
    attention_tables,
    network_tables,
    norm_table,
)

SMALL = Sizes(
    d_model=64, heads=4, kv_heads=2, d_ff=40, layers=2, target_vocabulary=19, max_length=24,
    window=4, trained_length=8, rotary_factor=4.0,
)  # fmt: skip
OTHER = SMALL.but(d_model=96, heads=3, kv_heads=1, d_ff=52, layers=3)
"""Two sizes whose heads differ in width, so that a constant is no function of it."""

FITS = 1e-4
"""The largest difference of a reading that fits, relative to the largest logit: single precision
inside of the library gives 1e-6, and another design 1e-2."""

EXACT = 1e-11
"""The largest difference of numbers that are all computed in float64."""

LARGE = 400_000
"""The number of parameters from which on a model at small sizes is not small."""

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
}
_ACTIVATION_FIELDS = (
    "hidden_activation", "hidden_act", "activation_function", "activation", "afn", "ffn_act_fn",
)  # fmt: skip
_SCALINGS = {
    "default": "none",
    "linear": "linear",
    "dynamic": "dynamic-ntk",
    "yarn": "yarn",
    "llama3": "llama3",
}
_LAYOUTS: Mapping[str, tuple[tuple[Mapping[str, Value], tuple[str, ...]], ...]] = {
    "NANF": (
        ({"block_norms": "pre"}, (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm")),
        (
            {"block_norms": "pre", "block_layout": "parallel-two-norms"},
            (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm"),
        ),
    ),
    "NNAF": (
        (
            {"block_norms": "pre", "block_layout": "parallel-two-norms"},
            (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm"),
        ),
    ),
    "NAF": (
        ({"block_norms": "pre", "block_layout": "parallel-one-norm"}, (f"{ATTENTION}_norm",)),
    ),
    "ANFN": (
        ({"block_norms": "post"}, (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm")),
        ({"block_norms": "post-branch"}, (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm")),
    ),
    "NANNFN": (
        (
            {"block_norms": "sandwich"},
            (
                f"{ATTENTION}_norm", f"{ATTENTION}_branch_norm",
                f"{FEED_FORWARD}_norm", f"{FEED_FORWARD}_branch_norm",
            ),
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """The choices of a family, its parameter map, and the fixed ratio of its network if any."""

    choices: Mapping[str, Value]
    table: Table
    inner: float | None = None
    exact: bool = True


@dataclass
class _Options:
    """Settings that are known, and those of which one of several applies."""

    known: dict[str, Value] = field(default_factory=dict)
    open: list[list[Mapping[str, Value]]] = field(default_factory=list)

    def one_of(self, choice: str, *values: Value) -> None:
        """Add a choice with the values it may have, the likely one first."""
        unlike = list(dict.fromkeys(values))
        self.open.append([{choice: one} for one in unlike])

    def all(self) -> Iterator[dict[str, Value]]:
        """Yield all combinations, the likely one first."""
        for combined in product(*self.open):
            joined = dict(self.known)
            for one in combined:
                joined.update(one)
            yield joined


def configured(config: PreTrainedConfig, sizes: Sizes) -> PreTrainedConfig:
    """Return the configuration at the `sizes`."""
    scaled = _scaling(config) != "none"
    return library.resized(
        config,
        width=sizes.d_model,
        heads=sizes.heads,
        key_heads=sizes.kv_heads,
        inner=sizes.d_ff,
        layers=sizes.layers,
        vocabulary=sizes.target_vocabulary,
        length=sizes.max_length,
        window=sizes.window,
        factor=sizes.rotary_factor if scaled else 0.0,
        trained_length=sizes.trained_length,
        dropout=sizes.dropout,
    )


def read(config: PreTrainedConfig) -> Reading:
    """Return the choices and the parameter map of a configuration's model.

    Raises NotJudged, with the reason, for a model that the specification has no words for.
    """
    found = Structure.of(small(config, "eager").double())
    options = _options(config, found)
    inner = _fixed_inner(found)
    sizes = _with_inner(SMALL, inner)
    closest = np.inf
    for table, of_norms in _tables(found, sizes):
        if unnamed := found.unnamed(table):
            raise NotJudged(f"no canonical parameter is {', '.join(unnamed[:4])}")
        known = {**of_norms, **_shown_by(table)}
        every = [{**one, **known} for one in options.all()]
        trial = _Trial.of(config, every[0], table, sizes)
        for choices in every if trial else ():
            difference = trial.difference(choices) if trial else np.inf
            closest = min(closest, difference)
            if difference < FITS:
                return _settled(config, choices, table, inner, difference)
    raise NotJudged(f"no choices of the specification give its numbers (closest: {closest:.1g})")


def _with_inner(sizes: Sizes, inner: float | None) -> Sizes:
    return sizes if inner is None else sizes.but(d_ff=int(inner * sizes.d_model))


def small(config: PreTrainedConfig, kernel: str) -> Any:
    """Return the model at small sizes; NotJudged where the library cannot build and call it."""
    try:
        with torch.device("meta"):
            count = library.built(configured(config, SMALL), kernel).num_parameters()
        if count > LARGE:
            raise NotJudged(f"at small sizes it still has {count} parameters")
        built = library.built(configured(config, SMALL), kernel)
        library.logits(built.double(), torch.arange(5)[None])
    except NotJudged:
        raise
    except Exception as failure:  # the library raises errors of many types
        text = " ".join(str(failure.__cause__ or failure).split())
        raise NotJudged(f"in float64 at small sizes it raises {text[:120]}") from failure
    return built


def _settled(
    config: PreTrainedConfig,
    choices: dict[str, Value],
    table: Table,
    inner: float | None,
    difference: float,
) -> Reading:
    """Return the reading with its arithmetic, after a second look at other sizes."""
    trial = _Trial.of(config, choices, table, _with_inner(OTHER, inner))
    again = trial.difference(choices) if trial else np.inf
    if again >= FITS:
        raise NotJudged("its design depends on its sizes")
    exact = max(difference, again) < EXACT
    single: dict[str, Value] = {}
    if not exact:
        if choices.get("attention_rotary") == "query-and-key":
            single["rotary_arithmetic"] = "float32"
        single["softmax_arithmetic"] = "float32"
    explained = exact or len(single) > 0
    return Reading({**choices, **single}, table, inner, explained)


def _tables(
    found: Structure, sizes: Sizes
) -> Iterator[tuple[dict[str, Any], Mapping[str, Value]]]:
    """Yield the parameter maps with the choices that they imply: where the norms are."""
    if found.signature not in _LAYOUTS:
        raise NotJudged(f"the order of its norms and sublayers is {found.signature}")
    layouts = _LAYOUTS[found.signature]
    attentions = list(attention_tables(found))
    networks = list(network_tables(found, sizes.d_ff))
    outside = _outside(found)
    for attention, network, (choices, names) in product(attentions, networks, layouts):
        block = {**nested(ATTENTION, "", {**attention, **_head_norms(found)})}
        block |= nested(FEED_FORWARD, "", network)
        for canonical, own in zip(names, found.norms, strict=True):
            block |= norm_table(found.inside(own), canonical, own)
        yield {**outside, **nested("layers.*", f"{found.layers}.*", block)}, choices


def _outside(found: Structure) -> dict[str, Any]:
    """Return the table of what is outside of the blocks."""
    table: dict[str, Any] = {"embedding": _embeddings(found)[0]}
    if len(_embeddings(found)) > 1:
        table["positions"] = _embeddings(found)[1]
    before, after = _outer_norms(found)
    for canonical, names in (("embedding_norm", before), ("norm", after)):
        for name in names:
            table |= norm_table(found.modules[name], canonical, name)
    generator = found.model.get_output_embeddings()
    name = next(name for name, one in found.modules.items() if one is generator)
    return {**table, "generator": name}


def _embeddings(found: Structure) -> list[str]:
    """Return the names of the embedding, and of the table of positions where there is one."""
    of_tokens = found.model.get_input_embeddings()
    names = [one for one in found.outside if isinstance(found.modules[one], nn.Embedding)]
    own = [one for one in names if found.modules[one] is of_tokens]
    others = [one for one in names if found.modules[one] is not of_tokens]
    if len(own) != 1 or len(others) > 1:
        raise NotJudged(f"it has the embeddings {', '.join(names)}")
    return own + others


def _outer_norms(found: Structure) -> tuple[list[str], list[str]]:
    """Return the norms before the blocks and after them, at most one each."""
    start = next(at for at, one in enumerate(found.order) if one.startswith(f"{found.layers}."))
    norms = [one for one in found.outside if one.lower().find("norm") >= 0 or "ln" in one]
    norms = [one for one in norms if not isinstance(found.modules[one], nn.Embedding | nn.Linear)]
    before = [one for one in norms if found.order.index(one) < start]
    after = [one for one in norms if one not in before]
    if len(before) > 1 or len(after) > 1:
        raise NotJudged(f"it has the norms {', '.join(norms)}")
    return before, after


def _head_norms(found: Structure) -> dict[str, Any]:
    """Return the table of the norms of queries and keys."""
    table: dict[str, Any] = {}
    for name in found.head_norms:
        letter = name.rpartition(".")[2][:1]
        if letter not in "qk":
            raise NotJudged(f"its attention has the norm {name}")
        canonical = "query_norm" if letter == "q" else "key_norm"
        table |= norm_table(found.inside(name), canonical, name)
    return table


def _shown_by(table: Table) -> dict[str, Value]:
    """Return the choices that the parameters show: gates and biases."""
    names = [one.removeprefix("layers.*.") for one in table]
    biased = tuple(
        part
        for part in ("query", "key", "value", "output")
        if f"{ATTENTION}.{part}.bias" in names
    )
    kinds = {
        (): "none",
        ("query", "key", "value", "output"): "present",
        ("output",): "output-alone",
        ("query", "value", "output"): "all-but-key",
        ("query", "key", "value"): "all-but-output",
    }
    if biased not in kinds:
        raise NotJudged(f"its attention has biases of {', '.join(biased)} alone")
    parts = ("gate", "inner", "outer")
    maps = [one for one in parts if f"{FEED_FORWARD}.{one}.weight" in names]
    in_network = [one for one in maps if f"{FEED_FORWARD}.{one}.bias" in names]
    if in_network and in_network != maps:
        raise NotJudged(f"its network has a bias of {', '.join(in_network)} alone")
    return {
        "projection_bias": kinds[biased],
        "feed_forward_gate": "gated" if f"{FEED_FORWARD}.gate.weight" in names else "none",
        "feed_forward_bias": "present" if in_network else "none",
    }


def _fixed_inner(found: Structure) -> float | None:
    """Return the ratio of the network's width to the model's where the sizes do not set it."""
    last = found.inside(found.network[-1]) if found.network else None
    wide = int(last.weight.numel()) // SMALL.d_model if last is not None else 0  # type: ignore[operator, union-attr]
    if wide in (0, SMALL.d_ff):
        return None
    return wide / SMALL.d_model


def _options(config: PreTrainedConfig, found: Structure) -> _Options:
    """Return the choices that the configuration and the modules tell, and those left open."""
    options = _Options(
        {
            "attention_causality": "built-in",
            "mask_fill": "exact",
            "output": "logits",
            "key_heads": "fewer" if _has_key_heads(config) else "as-queries",
            "tying": "target-and-output" if _is_tied(found) else "none",
            "generator_bias": _generator_bias(found),
        }
    )
    before, after = _outer_norms(found)
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


def _add_norms(options: _Options, found: Structure) -> None:
    """Add which norms there are; every one is called with a row of numbers."""
    names = [f"{found.layers}.0.{one}" for one in found.norms]
    modules = [found.modules[one] for one in (*names, *sum(_outer_norms(found), []))]
    kinds = [_norm_choices(one) for one in modules]
    if not kinds:
        raise NotJudged("it has no norms")
    if any(one != kinds[0] for one in kinds):
        raise NotJudged("its norms differ from one another")
    options.known.update(kinds[0])
    if not found.head_norms:
        return
    of_heads = [_norm_choices(found.inside(one)) for one in found.head_norms]
    if any(one["norm_kind"] != "rms" for one in of_heads):
        raise NotJudged("its norms of queries and keys are layer norms")
    if any(one != of_heads[0] for one in of_heads):
        raise NotJudged("its norms of queries and keys differ")
    if kinds[0]["norm_kind"] == "rms" and of_heads[0] != kinds[0]:
        raise NotJudged("its norms of queries and keys are others than those of its blocks")
    options.known.update({n: v for n, v in of_heads[0].items() if n != "norm_kind"})
    width = found.inside(found.head_norms[0]).weight.numel()  # type: ignore[operator, union-attr]
    each = width == SMALL.d_model // SMALL.heads
    options.known["query_key_norm"] = "per-head" if each else "whole-projection"
    options.one_of("query_key_norm_place", "before-rotation", "after-rotation")


def _norm_choices(module: nn.Module) -> dict[str, Value]:
    """Return the choices of a norm that gives the same row as one of the formulas."""
    names = ("eps", "variance_epsilon", "norm_eps", "epsilon")
    epsilon = next((float(getattr(module, one)) for one in names if hasattr(module, one)), None)
    parameters = dict(module.named_parameters())
    if epsilon is None:
        raise NotJudged(f"its {type(module).__name__} has no epsilon")
    if "weight" not in parameters:
        raise NotJudged(f"its {type(module).__name__} has no weight")
    width = parameters["weight"].numel()
    rng = np.random.default_rng(7)
    x, weight, bias = rng.normal(size=(3, width)), rng.normal(size=width), rng.normal(size=width)
    x = x + 0.5
    held = {name: one.detach().clone() for name, one in parameters.items()}
    with torch.no_grad():
        parameters["weight"].copy_(torch.from_numpy(weight))
        if "bias" in parameters:
            parameters["bias"].copy_(torch.from_numpy(bias))
        said = module(torch.from_numpy(x)).double().numpy()
        for name, one in held.items():
            parameters[name].copy_(one)
    for choices, expected in _norms_of(x, weight, bias if "bias" in parameters else None, epsilon):
        difference = np.abs(said - expected).max() / np.abs(expected).max()
        if difference < FITS:
            if choices["norm_kind"] == "rms":
                choices["rms_arithmetic"] = "as-computed" if difference < EXACT else "float32"
            return choices
    raise NotJudged(f"its {type(module).__name__} is neither a layer norm nor an RMS norm")


def _norms_of(
    x: Floats, weight: Floats, bias: Floats | None, epsilon: float
) -> Iterator[tuple[dict[str, Value], Floats]]:
    shift = 0.0 if bias is None else bias
    rms = x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    of_rms: dict[str, Value] = {
        "norm_kind": "rms",
        "rms_epsilon_place": "inside-root",
        "rms_epsilon": epsilon,
        "rms_bias": "none" if bias is None else "present",
    }
    yield {**of_rms, "rms_weight": "weight"}, rms * weight + shift
    yield {**of_rms, "rms_weight": "one-plus-weight"}, rms * (1 + weight) + shift
    centred = x - x.mean(-1, keepdims=True)
    layer = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    yield (
        {
            "norm_kind": "layer",
            "norm_epsilon_place": "inside-root",
            "norm_variance": "biased",
            "norm_epsilon": epsilon,
            "norm_bias": "none" if bias is None else "present",
        },
        layer * weight + shift,
    )


def _add_positions(options: _Options, config: PreTrainedConfig, found: Structure) -> None:
    """Add how positions enter: as rows, as turns, or as distances."""
    if len(_embeddings(found)) > 1:
        options.known["positional_encoding"] = "learned"
        table = found.modules[_embeddings(found)[1]]
        offset = int(table.weight.shape[0]) - SMALL.max_length  # type: ignore[index, union-attr]
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
    part = float(rope.get("partial_rotary_factor") or 1.0)
    if columns := getattr(config, "rotary_dim", None):
        part = columns / (config.hidden_size // config.num_attention_heads)
    base = float(rope.get("rope_theta") or getattr(config, "rope_theta", None) or 10_000.0)
    found: dict[str, Value] = {"attention_rotary": "query-and-key"}
    if base != 10_000.0:
        found["rotary_base"] = base
    if part < 1:
        found["rotary_width"] = part
    scaling = _scaling(config)
    return {**found, "rotary_scaling": scaling} if scaling != "none" else found


def _scaling(config: PreTrainedConfig) -> str:
    kind = library.rope(config).get("rope_type", "default")
    if kind not in _SCALINGS:
        raise NotJudged(f"its rotary positions are scaled by the rule {kind}")
    return _SCALINGS[kind]


def _add_scores(options: _Options, config: PreTrainedConfig, found: Structure) -> None:
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


@dataclass(frozen=True)
class _Trial:
    """The logits of a model for random parameters, which the specification may give or not."""

    sizes: Sizes
    parameters: Mapping[str, Floats]
    tokens: Array
    logits: Floats

    @classmethod
    def of(
        cls, config: PreTrainedConfig, choices: Mapping[str, Value], table: Table, sizes: Sizes
    ) -> "_Trial | None":
        """Return the trial of a parameter map; None where the parameters do not fit."""
        recipes = {"language_model": recipe(config, "eager", table)}
        backend = TorchBackend(name="trial", title="", choices=choices, recipes=recipes)
        own, rng = backend.sizes_of(sizes), np.random.default_rng(3)
        tokens: Array = rng.integers(0, sizes.target_vocabulary, size=(2, 11))
        parameters = draw("language_model", own, Choices.of(backend.choices), rng)
        try:
            part = backend.build("language_model", own)
            part.load(parameters)
        except (ValueError, KeyError):
            return None
        return cls(own, parameters, tokens, part(tokens))

    def difference(self, choices: Mapping[str, Value]) -> float:
        """Return the largest difference from the specification, relative to the largest logit."""
        given = Setting(self.sizes, Choices.of(choices), self.parameters)
        expected = language_model(given, self.tokens)
        return float(np.abs(self.logits - expected).max() / np.abs(expected).max())


def recipe(config: PreTrainedConfig, kernel: str, table: Table) -> Recipe:
    """Return how the language model of a configuration is built, called and mapped."""
    return Recipe(
        build=lambda sizes: library.built(configured(config, sizes), kernel),
        call=library.logits,
        parameters=table,
    )
