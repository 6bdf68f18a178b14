"""The outputs of the oracles for the cases of onnx, or the reason why a case is out of scope.

An operator that can do more than a component is expressed by the component's inputs where that is
exact: another scale by scaled queries, a bias of scores by more columns, shared heads by repeated
ones, a cache by the keys and values before. What changes the formula is out of scope.
"""

from collections.abc import Callable, Mapping

import numpy as np
import rounding
from judging import Answer
from onnx_vectors import Case

from attentest_spec.attention import attention, softmax
from attentest_spec.choices import PAPER
from attentest_spec.embedding import embedding
from attentest_spec.feed_forward import activate
from attentest_spec.generator import log_softmax
from attentest_spec.layer_norm import layer_norm
from attentest_spec.linear import linear
from attentest_spec.masks import causal_mask
from attentest_spec.multi_head_attention import merge, split
from attentest_spec.setting import Array, Floats, Setting


class OutOfScope(Exception):
    """The case asks for what no component of the spec does; its text is the reason."""


def answer(case: Case) -> list[Answer]:
    """Return the answers of the oracles to `case`; raise :class:`OutOfScope` with the reason."""
    if "float16" in case.dtypes:
        raise OutOfScope("half precision: the stored values are a chain of roundings to float16")
    return _ANSWERS[case.operator](case)


def _double(case: Case, name: str) -> Floats:
    return case.inputs[name].astype(np.float64)


def _u(case: Case, output: str) -> float:
    return rounding.unit(case.outputs[output].dtype)


def _attention(case: Case) -> list[Answer]:
    if case.attributes.get("softcap"):
        raise OutOfScope("softcap: a tanh between scores and softmax is another formula")
    query, key, value = _heads(case)
    before = key.shape[2] - case.inputs["K"].shape[-2]
    bias, keep = _bias(case, query.shape[2], key.shape[2], before)
    scale = case.attributes.get("scale", 1 / np.sqrt(query.shape[-1]))
    wide_query, wide_key = _widened(query * scale, key, bias)
    output, weights = attention(Setting(), wide_query, wide_key, value, keep)
    scores = np.where(keep, query * scale @ key.swapaxes(-1, -2) + bias, -np.inf)
    u = _u(case, "Y")
    off = rounding.of_products(query * scale, key.swapaxes(-1, -2), u, extra=4) + 2 * u * (
        np.abs(bias) + np.abs(np.where(keep, scores, 0.0))
    )
    bound = rounding.of_attention(scores, off, weights, value, u)
    if case.inputs["Q"].ndim == 3:
        output, bound = merge(output), merge(bound)
    found = [Answer(output, case.outputs["Y"], bound)]
    if "qk_matmul_output" in case.outputs:
        found.append(_inner(case, scores, off, weights, u))
    return found


def _heads(case: Case) -> tuple[Floats, Floats, Floats]:
    """Return query, key and value (B, H, .., ..), with the cache before and all heads in full."""
    arrays = [_double(case, name) for name in ("Q", "K", "V")]
    if case.inputs["Q"].ndim == 3:
        query_heads, heads = (case.attributes[f"{one}_num_heads"] for one in ("q", "kv"))
        counts = (query_heads, heads, heads)
        arrays = [split(one, count) for one, count in zip(arrays, counts, strict=True)]
    query, *rest = arrays
    for number, name in enumerate(("past_key", "past_value")):
        if name in case.inputs:
            rest[number] = np.concatenate([_double(case, name), rest[number]], axis=2)
    key, value = (np.repeat(one, query.shape[1] // one.shape[1], axis=1) for one in rest)
    return query, key, value


def _bias(case: Case, queries: int, keys: int, before: int) -> tuple[Floats, Array]:
    """Return what is added to the scores, and where there are keys to be seen."""
    mask = case.inputs.get("attn_mask", np.ones((queries, keys), dtype=bool))
    missing = keys - mask.shape[-1]
    if mask.dtype == bool:
        keep, bias = mask, np.zeros(mask.shape)
    else:
        keep, bias = mask > -np.inf, np.where(mask > -np.inf, mask, 0.0).astype(np.float64)
    keep = np.pad(keep, [(0, 0)] * (mask.ndim - 1) + [(0, missing)])
    bias = np.pad(bias, [(0, 0)] * (mask.ndim - 1) + [(0, missing)])
    if "nonpad_kv_seqlen" in case.inputs:
        lengths = case.inputs["nonpad_kv_seqlen"][:, None, None, None]
        keep = keep & (np.arange(keys) < lengths)
    if case.attributes.get("is_causal"):
        keep = (
            keep
            & causal_mask(Setting(), before + max(queries, keys))[
                ..., before : before + queries, :keys
            ]
        )
    return bias, keep


def _widened(query: Floats, key: Floats, bias: Floats) -> tuple[Floats, Floats]:
    """Return query and key whose scores are query @ key plus `bias`, without another scale.

    The bias is written into columns of the query that meet an identity in the key; the oracle's
    own scale, which knows the width, is multiplied out.
    """
    keys, width = key.shape[-2], query.shape[-1] + key.shape[-2]
    shape = (*query.shape[:-1], keys)
    wide = np.concatenate([query, np.broadcast_to(bias, shape)], axis=-1) * np.sqrt(width)
    unit = np.broadcast_to(np.eye(keys), (*key.shape[:-1], keys))
    return wide, np.concatenate([key, unit], axis=-1)


def _inner(case: Case, scores: Floats, off: Floats, weights: Floats, u: float) -> Answer:
    """Return what stands between the products and the output, as the case's mode asks."""
    shown = case.outputs["qk_matmul_output"]
    mode = case.attributes.get("qk_matmul_output_mode", 0)
    if mode == 3:
        return Answer(weights, shown, weights * rounding.of_softmax(scores, off, u))
    if mode == 2:
        return Answer(scores, shown, np.where(np.isfinite(scores), off, 0.0))
    query, key, _ = _heads(case)
    scaled = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    return Answer(scaled, shown, off)


def _layer_norm(case: Case) -> list[Answer]:
    x = _double(case, "X")
    axis = case.attributes.get("axis", -1) % x.ndim
    rows = x.reshape(*x.shape[:axis], -1)
    gain, bias = (_double(case, name).reshape(-1) for name in ("Scale", "B"))
    epsilon = float(case.attributes.get("epsilon", 1e-5))
    given = Setting(
        choices=PAPER.but(norm_epsilon=epsilon), parameters={"gain": gain, "bias": bias}
    )
    bound = rounding.of_layer_norm(rows, gain, bias, epsilon, _u(case, "Y"))
    oracle = layer_norm(given, rows)
    return [Answer(oracle.reshape(x.shape), case.outputs["Y"], bound.reshape(x.shape))]


def _softmax(case: Case) -> list[Answer]:
    oracle, u = _along(case, softmax), _u(case, "output")
    scores = _last(case)
    relative = rounding.of_softmax(scores, 0 * scores, u)
    bound = softmax(scores) * relative + rounding.spacing(0 * scores, u)
    return [Answer(oracle, case.outputs["output"], np.moveaxis(bound, -1, _axis(case)))]


def _log_softmax(case: Case) -> list[Answer]:
    oracle, u = _along(case, log_softmax), _u(case, "output")
    scores = _last(case)
    off = rounding.of_softmax(scores, 0 * scores, u) + 3 * u * np.abs(log_softmax(scores))
    return [Answer(oracle, case.outputs["output"], np.moveaxis(off, -1, _axis(case)))]


def _axis(case: Case) -> int:
    return int(case.attributes.get("axis", -1))


def _last(case: Case) -> Floats:
    return np.moveaxis(_double(case, "input"), _axis(case), -1)


def _along(case: Case, oracle: Callable[[Floats], Floats]) -> Floats:
    return np.moveaxis(oracle(_last(case)), -1, _axis(case))


def _activation(name: str) -> Callable[[Case], list[Answer]]:
    def activated(case: Case) -> list[Answer]:
        if case.attributes.get("approximate", b"none") != b"none":
            raise OutOfScope("an approximation by tanh, which no option of `activation` is")
        if case.attributes.get("alpha", 1.0) != 1.0:
            raise OutOfScope("x sigmoid(alpha x) with another alpha than 1")
        (x,), (y,) = case.inputs.values(), case.outputs.values()
        oracle = activate(name, x.astype(np.float64))
        # gelu may be x / 2 (1 + erf ..), which cancels for negative x and is off by u x then.
        off = (rounding.ELEMENTARY + 6) * rounding.unit(y.dtype) * np.abs(x)
        return [Answer(oracle, y, off * (name != "relu"))]

    return activated


def _gemm(case: Case) -> list[Answer]:
    at = case.attributes
    left = _double(case, "A").T if at.get("transA") else _double(case, "A")
    right = _double(case, "B") if at.get("transB") else _double(case, "B").T
    bias = _double(case, "C") if "C" in case.inputs else np.zeros(1)
    return _linear(case, at.get("alpha", 1.0) * left, right, at.get("beta", 1.0) * bias)


def _matmul(case: Case) -> list[Answer]:
    left, right = _double(case, "A"), _double(case, "B")
    if left.ndim < 2 or right.ndim != 2:
        raise OutOfScope("a product that is no linear map of rows by one matrix")
    return _linear(case, left, right.T, np.zeros(1))


def _linear(case: Case, x: Floats, weight: Floats, bias: Floats) -> list[Answer]:
    oracle = linear(Setting(parameters={"weight": weight, "bias": bias}), "", x)
    u = _u(case, "Y")
    bound = rounding.of_products(x, weight.T, u, extra=4) + 3 * u * np.abs(bias)
    return [Answer(oracle, case.outputs["Y"], bound)]


def _gather(case: Case) -> list[Answer]:
    table, ids = _double(case, "data"), case.inputs["indices"]
    if case.attributes.get("axis", 0) != 0 or table.ndim < 2:
        raise OutOfScope("not the rows of a table")
    if (ids < 0).any():
        raise OutOfScope("negative ids, which the spec refuses")
    given = Setting(
        choices=PAPER.but(embedding_scale="none"),
        parameters={"weight": table.reshape(len(table), -1)},
    )
    oracle = embedding(given, ids).reshape(*ids.shape, *table.shape[1:])
    return [Answer(oracle, case.outputs["output"], np.zeros(oracle.shape))]


def _trilu(case: Case) -> list[Answer]:
    x = case.inputs["input"]
    if case.attributes.get("upper", 1):
        raise OutOfScope("an upper triangle, which would let a query see what comes after it")
    if int(case.inputs.get("k", 0)) != 0:
        raise OutOfScope("a diagonal that is moved")
    keep = causal_mask(Setting(), max(x.shape[-2:]))[0, 0, : x.shape[-2], : x.shape[-1]]
    return [Answer(np.where(keep, x, 0), case.outputs["output"], np.zeros(x.shape))]


def _foreign(reason: str) -> Callable[[Case], list[Answer]]:
    def refused(case: Case) -> list[Answer]:
        raise OutOfScope(reason)

    return refused


_ANSWERS: Mapping[str, Callable[[Case], list[Answer]]] = {
    "Attention": _attention,
    "Gather": _gather,
    "Gelu": _activation("gelu"),
    "Gemm": _gemm,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _log_softmax,
    "MatMul": _matmul,
    "RMSNormalization": _foreign("takes out no mean: another function than layer normalisation"),
    "Relu": _activation("relu"),
    "RotaryEmbedding": _foreign("turns queries and keys; the spec's positions are added"),
    "Softmax": _softmax,
    "Swish": _activation("silu"),
    "Trilu": _trilu,
}
