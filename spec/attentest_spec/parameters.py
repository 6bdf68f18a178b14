"""The canonical parameters: names, shapes, ties, and the count of their numbers.

Shapes follow the sizes and the choices; a composite's are composed from its parts'.
"""

from collections.abc import Mapping
from itertools import accumulate
from math import prod

import numpy as np

from attentest_spec.choices import Choices
from attentest_spec.order import unordered
from attentest_spec.setting import Floats
from attentest_spec.sizes import Sizes

Shapes = dict[str, tuple[int, ...]]


def head_width(sizes: Sizes, choices: Choices) -> int:
    """Return the width E of one head: d_model / heads, or d_model (section 3.2.2)."""
    return sizes.d_model if choices.head_width == "d" else sizes.d_model // sizes.heads


def key_heads(sizes: Sizes, choices: Choices) -> int:
    """Return the number G of heads of keys and values: as many as queries have, or fewer."""
    return sizes.heads if choices.key_heads == "as-queries" else sizes.kv_heads or sizes.heads


def projection_biases(choices: Choices) -> tuple[str, ...]:
    """Return which of attention's four projections have a bias."""
    return {
        "none": (),
        "present": ("query", "key", "value", "output"),
        "output-alone": ("output",),
        "all-but-key": ("query", "value", "output"),
        "all-but-output": ("query", "key", "value"),
    }[choices.projection_bias]


def learned_positions(choices: Choices) -> bool:
    """Say whether the positions are rows of a trained table."""
    return choices.positional_encoding in ("learned", "learned-scaled")


def first_position(choices: Choices) -> int:
    """Return the row of the position table that the first position gets."""
    return 0 if choices.position_offset == "none" else int(choices.position_offset)


def one_vocabulary(choices: Choices) -> bool:
    """Say whether source and target share an embedding, and so need one vocabulary."""
    return choices.tying in ("all-three", "embeddings")


def shapes(component: str, sizes: Sizes, choices: Choices) -> Shapes:
    """Return the canonical parameters of `component` with their shapes, in a stable order."""
    builder = _SHAPES.get(component)
    return builder(sizes, choices) if builder else {}


def tied(component: str, sizes: Sizes, choices: Choices) -> dict[str, str]:
    """Return, for every tied parameter, the name of the parameter that it is tied to."""
    names = shapes(component, sizes, choices)
    return _shared_norms(names, choices) | _tied_vocabularies(names, choices)


def count(component: str, sizes: Sizes, choices: Choices) -> int:
    """Return how many numbers the parameters of `component` hold, tied ones counted once."""
    twins = tied(component, sizes, choices)
    table = shapes(component, sizes, choices)
    return sum(prod(shape) for name, shape in table.items() if name not in twins)


def draw(
    component: str,
    sizes: Sizes,
    choices: Choices,
    rng: np.random.Generator,
    *,
    scale: float = 1.0,
    decimals: int = 3,
) -> dict[str, Floats]:
    """Draw random parameters for `component` in their canonical shapes, tied ones equal.

    See :func:`draw_one` for the numbers, and :func:`shapes` for the shapes. Those of large
    components are uniform, with the same mean and deviation: normal ones take four times as long.
    """
    table, twins = shapes(component, sizes, choices), tied(component, sizes, choices)
    ends = list(accumulate(0 if name in twins else prod(table[name]) for name in table))
    drawn: dict[str, Floats] = {}
    if ends and ends[-1] > _LARGE:
        for name, shape in table.items():
            twin = drawn.get(twins.get(name, ""))
            drawn[name] = _uniform(name, shape, rng, scale, decimals) if twin is None else twin
        return drawn
    numbers = rng.normal(size=ends[-1] if ends else 0)  # of all at once, which is faster
    for (name, shape), end in zip(table.items(), ends, strict=True):
        if name in twins:
            drawn[name] = drawn[twins[name]]
        else:
            drawn[name] = numbers[end - prod(shape) : end].reshape(shape)
            _spread(name, drawn[name], scale)
    np.round(numbers, decimals, out=numbers)
    return drawn


def draw_one(
    name: str,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    scale: float = 1.0,
    decimals: int = 3,
) -> Floats:
    """Draw the parameter `name` of the given `shape`, gains and biases random too.

    Weights have a standard deviation of `scale` / sqrt(inputs), gains lie around 1 on both sides
    of it, biases around 0. All are rounded to `decimals`, so that a printed
    counterexample is exact.
    """
    values = rng.normal(size=shape)
    _spread(name, values, scale)
    drawn: Floats = np.round(values, decimals)
    return drawn


_LARGE = 100_000
"""Numbers of a large component: more than those of small tests."""


def _uniform(
    name: str, shape: tuple[int, ...], rng: np.random.Generator, scale: float, decimals: int
) -> Floats:
    """Draw the parameter `name` as :func:`draw_one` does, uniformly, from whole multiples."""
    unit = 10**decimals
    gain = name.endswith("gain")
    deviation = 0.5 if gain else scale / np.sqrt(shape[-1]) if len(shape) > 1 else 1.0
    most = max(1, round(np.sqrt(3) * deviation * unit - 0.5))
    least = unit - most if gain else -most
    values: Floats = rng.integers(least, least + 2 * most + 1, shape, np.int32) / unit
    return values


def _spread(name: str, values: Floats, scale: float) -> None:
    """Give normal numbers, in place, the mean and the deviation of the parameter `name`."""
    if name.endswith("gain"):
        values *= 0.5
        values += 1.0
    elif values.ndim > 1:
        values *= scale
        values /= np.sqrt(values.shape[-1])


def _linear(inputs: int, outputs: int, *, bias: bool = True) -> Shapes:
    return {"weight": (outputs, inputs)} | ({"bias": (outputs,)} if bias else {})


def _under(prefix: str, table: Shapes) -> Shapes:
    return {f"{prefix}.{name}": shape for name, shape in table.items()}


def _layer_norm(sizes: Sizes, choices: Choices) -> Shapes:
    leaves = ("gain", "bias") if choices.norm_bias == "present" else ("gain",)
    return dict.fromkeys(leaves, (sizes.d_model,))


def _rms_norm(sizes: Sizes, choices: Choices) -> Shapes:
    leaves = {"gain": choices.rms_weight != "none", "bias": choices.rms_bias == "present"}
    return {name: (sizes.d_model,) for name, there in leaves.items() if there}


def _norm(sizes: Sizes, choices: Choices) -> Shapes:
    return (_rms_norm if choices.norm_kind == "rms" else _layer_norm)(sizes, choices)


def _multi_head_attention(sizes: Sizes, choices: Choices) -> Shapes:
    inner = head_width(sizes, choices) * sizes.heads
    shared = head_width(sizes, choices) * key_heads(sizes, choices)
    biased = projection_biases(choices)
    table: Shapes = {}
    for name, rows in (("query", inner), ("key", shared), ("value", shared)):
        table |= _under(name, _linear(sizes.d_model, rows, bias=name in biased))
    table |= _under("output", _linear(inner, sizes.d_model, bias="output" in biased))
    table |= _norms_of_heads(sizes, choices)
    if choices.attention_sink == "per-head":
        table["sink.score"] = (sizes.heads,)
    if choices.relative_bias.startswith("buckets"):
        table["relative_bias.weight"] = (sizes.bias_buckets, sizes.heads)
    return table


def _norms_of_heads(sizes: Sizes, choices: Choices) -> Shapes:
    """Return the weights of the norms of queries and keys."""
    if choices.query_key_norm not in ("per-head", "whole-projection"):
        return {}
    each = choices.query_key_norm == "per-head"
    table: Shapes = {}
    for name, heads in (("query_norm", sizes.heads), ("key_norm", key_heads(sizes, choices))):
        width = head_width(sizes, choices) * (1 if each else heads)
        table |= _under(name, _rms_norm(sizes.but(d_model=width), choices))
    return table


def _feed_forward(sizes: Sizes, choices: Choices) -> Shapes:
    bias = choices.feed_forward_bias == "present"
    wide = _linear(sizes.d_model, sizes.d_ff, bias=bias)
    gate = _under("gate", wide) if choices.feed_forward_gate == "gated" else {}
    outer = _under("outer", _linear(sizes.d_ff, sizes.d_model, bias=bias))
    return gate | _under("inner", wide) | outer


def _mixture_of_experts(sizes: Sizes, choices: Choices) -> Shapes:
    biased = choices.router_bias != "none"
    table = _under("router", _linear(sizes.d_model, sizes.experts, bias=biased))
    for number in range(sizes.experts):
        table |= _under(f"experts.{number}", _feed_forward(sizes, choices))
    if choices.shared_expert == "none":
        return table
    shared = sizes.but(d_ff=sizes.shared_inner or sizes.d_ff)
    table |= _under("shared_expert", _feed_forward(shared, choices))
    gated = choices.shared_expert == "gated"
    return table | ({"shared_gate.weight": (1, sizes.d_model)} if gated else {})


def _positional_encoding(sizes: Sizes, choices: Choices) -> Shapes:
    if not learned_positions(choices):
        return {}
    return {"weight": (sizes.max_length + first_position(choices), sizes.d_model)}


def _embedding(sizes: Sizes, choices: Choices) -> Shapes:
    return {"weight": (sizes.source_vocabulary, sizes.d_model)}


def _residual(sizes: Sizes, choices: Choices) -> Shapes:
    return _under("norm", _norm(sizes, choices))


def _encoder_layer(sizes: Sizes, choices: Choices) -> Shapes:
    return (
        _under("self_attention", _multi_head_attention(sizes, choices))
        | _under("self_attention_norm", _norm(sizes, choices))
        | _under("feed_forward", _feed_forward(sizes, choices))
        | _under("feed_forward_norm", _norm(sizes, choices))
    )


def _decoder_layer(sizes: Sizes, choices: Choices) -> Shapes:
    return (
        _under("self_attention", _multi_head_attention(sizes, choices))
        | _under("self_attention_norm", _norm(sizes, choices))
        | _under("cross_attention", _multi_head_attention(sizes, unordered(choices)))
        | _under("cross_attention_norm", _norm(sizes, choices))
        | _under("feed_forward", _feed_forward(sizes, choices))
        | _under("feed_forward_norm", _norm(sizes, choices))
    )


def _stack(layer: Shapes, sizes: Sizes, choices: Choices) -> Shapes:
    table: Shapes = {}
    for number in range(sizes.layers):
        table |= _under(f"layers.{number}", layer)
    if choices.final_norm == "present":
        table |= _under("norm", _norm(sizes, choices))
    return table


def _encoder(sizes: Sizes, choices: Choices) -> Shapes:
    return _stack(_encoder_layer(sizes, choices), sizes, choices)


def _decoder(sizes: Sizes, choices: Choices) -> Shapes:
    return _stack(_decoder_layer(sizes, choices), sizes, choices)


def _generator(sizes: Sizes, choices: Choices) -> Shapes:
    bias = choices.generator_bias == "present"
    return _linear(sizes.d_model, sizes.target_vocabulary, bias=bias)


def _model(sizes: Sizes, choices: Choices) -> Shapes:
    positions = _positional_encoding(sizes, choices)
    norm = _norm(sizes, choices) if choices.embedding_norm == "present" else {}
    return (
        {
            "source_embedding.weight": (sizes.source_vocabulary, sizes.d_model),
            "target_embedding.weight": (sizes.target_vocabulary, sizes.d_model),
        }
        | _under("source_positions", positions)
        | _under("target_positions", positions)
        | _under("source_embedding_norm", norm)
        | _under("target_embedding_norm", norm)
        | _under("encoder", _encoder(sizes, choices))
        | _under("decoder", _decoder(sizes, choices))
        | _under("generator", _generator(sizes, choices))
    )


def _causal_layer(sizes: Sizes, choices: Choices) -> Shapes:
    norm = _norm(sizes, choices)
    branch = norm if choices.block_norms == "sandwich" else {}
    own = norm if has_second_norm(choices) else {}
    return (
        _under("self_attention", _multi_head_attention(sizes, choices))
        | _under("self_attention_norm", norm)
        | _under("self_attention_branch_norm", branch)
        | _under("feed_forward", _feed_forward(sizes, choices))
        | _under("feed_forward_norm", own)
        | _under("feed_forward_branch_norm", branch)
    )


def has_second_norm(choices: Choices) -> bool:
    """Say whether the feed-forward network of a decoder-only block has a norm of its own."""
    if choices.block_layout == "sequential" or choices.block_norms == "post-branch":
        return True
    return choices.block_layout == "parallel-two-norms" and choices.block_norms != "post"


def _language_model(sizes: Sizes, choices: Choices) -> Shapes:
    norm = _norm(sizes, choices)
    layers: Shapes = {}
    for number in range(sizes.layers):
        layers |= _under(f"layers.{number}", _causal_layer(sizes, choices))
    return (
        {"embedding.weight": (sizes.target_vocabulary, sizes.d_model)}
        | _under("positions", _positional_encoding(sizes, choices))
        | _under("embedding_norm", norm if choices.embedding_norm == "present" else {})
        | layers
        | _under("norm", norm if choices.final_norm == "present" else {})
        | _under("generator", _generator(sizes, choices))
    )


_SHAPES = {
    "multi_head_attention": _multi_head_attention,
    "positional_encoding": _positional_encoding,
    "embedding": _embedding,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "feed_forward": _feed_forward,
    "mixture_of_experts": _mixture_of_experts,
    "residual": _residual,
    "encoder_layer": _encoder_layer,
    "decoder_layer": _decoder_layer,
    "encoder": _encoder,
    "decoder": _decoder,
    "generator": _generator,
    "model": _model,
    "cached_decoding": _model,
    "causal_layer": _causal_layer,
    "language_model": _language_model,
    "cached_language_model": _language_model,
}


def _shared_norms(names: Mapping[str, object], choices: Choices) -> dict[str, str]:
    """Tie every sublayer norm to the first of its stack, where norms are shared."""
    if choices.norm_sharing != "shared":
        return {}
    first: dict[tuple[str, str], str] = {}
    twins = {}
    for name in names:
        path, _, leaf = name.rpartition(".")
        if not path.endswith("_norm") or path.endswith("embedding_norm"):
            continue
        stack, _, _ = path.rpartition("layers.")
        representative = first.setdefault((stack, leaf), name)
        if representative != name:
            twins[name] = representative
    return twins


def _tied_vocabularies(names: Mapping[str, object], choices: Choices) -> dict[str, str]:
    source, target = "source_embedding.weight", "target_embedding.weight"
    if "generator.weight" not in names:
        return {}
    if "embedding.weight" in names:
        one = choices.tying in ("all-three", "target-and-output")
        return {"generator.weight": "embedding.weight"} if one else {}
    return {
        "all-three": {target: source, "generator.weight": source},
        "target-and-output": {"generator.weight": target},
        "embeddings": {target: source},
        "none": {},
    }[choices.tying]
