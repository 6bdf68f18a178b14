"""Checks of the chapter `attention`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attentest.cases import HALVES, Call, half, precise, same_precision
from attentest.checks import check
from attentest.compare import (
    as_floats,
    distance,
    equal,
    finite,
    fits,
    holds,
    largest,
    matches,
    near,
    same_shape,
)
from attentest.draw import Draw
from attentest.gradients import agrees_with_differences
from attentest.outcome import Absent
from attentest.subject import Probe, Subject, cast
from attentest_spec import Sizes
from attentest_spec.attention import scores
from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class Case:
    """One call of attention: the part, its inputs, and the mask at full shape."""

    probe: Probe
    query: Floats
    key: Floats
    value: Floats
    mask: Array | None

    @property
    def inputs(self) -> tuple[Floats, Floats, Floats, Array | None]:
        """The inputs in the order of the call."""
        return self.query, self.key, self.value, self.mask

    @property
    def keep(self) -> Array:
        """The mask at the shape of the weights."""
        shape = (*self.query.shape[:-1], self.key.shape[-2])
        whole = np.ones((), dtype=bool) if self.mask is None else self.mask
        return np.broadcast_to(whole, shape)

    def output(self, *inputs: Array | None) -> Array:
        """Return the output for `inputs` (the case's own by default), of the right shape."""
        query, _, value, _ = given = inputs or self.inputs
        output = self.probe.output(*given)
        same_shape(output, (*np.shape(query)[:-1], np.shape(value)[-1]))  # type: ignore[arg-type]
        return output

    def weights(self) -> Floats:
        """Return the weights, of the right shape and not all 0."""
        weights = self.probe.weights(*self.inputs)
        same_shape(weights, self.keep.shape, what="weights")
        holds(bool(weights.any()), "All weights are 0.", actual=weights)
        return as_floats(weights)


def drawn(
    subject: Subject,
    draw: Draw,
    *,
    hiding: bool = False,
    kinds: Sequence[str] = (),
    scale: float = 0.0,
    lengths: tuple[int, int] | None = None,
    width: int = 0,
    samples: int = 0,
    precision: str = "",
    dropout: float = 0.0,
) -> Case:
    """Draw a call of attention; `hiding` asks for a mask, `lengths` fixes queries and keys."""
    kind = draw.mask_kind(hiding=hiding, kinds=kinds)
    batch, heads = samples or draw.batch(), draw.heads()
    queries, keys = lengths or (draw.length(2 if hiding else 1), draw.length(2 if hiding else 1))
    if kind == "causal":
        queries = keys = max(queries, keys)
    width, out = width or draw.integer(2, 5), draw.integer(2, 5)
    size = scale or draw.scale() ** 0.5
    sizes = Sizes(d_model=width * heads, heads=heads, dropout=dropout)
    return Case(
        subject.part("attention", sizes, precision=precision),
        draw.floats(batch, heads, queries, width, scale=size, precision=precision),
        draw.floats(batch, heads, keys, width, scale=size, precision=precision),
        draw.floats(batch, heads, keys, out, precision=precision),
        draw.mask(kind, batch, heads, queries, keys),
    )


def alive(case: Case, output: Array) -> None:
    """Demand that `output` follows the values: a constant agrees with itself and proves nothing."""
    finite(output)
    raised = case.output(case.query, case.key, case.value + 1.0, case.mask)
    holds(
        bool((as_floats(raised) > as_floats(output)).all()),
        "Values larger by 1 do not give larger outputs.",
        actual=raised,
        expected=as_floats(output) + 1.0,
    )


def poisoned(draw: Draw, case: Case, size: float) -> tuple[Floats, Floats, Array]:
    """Return key and value with other numbers where no query of a sample and head may look."""
    seen: Array = np.asarray(case.keep.any(axis=-2))[..., None]
    key = np.where(seen, case.key, draw.floats(*case.key.shape, scale=size))
    value = np.where(seen, case.value, draw.floats(*case.value.shape, scale=size))
    return key, value, ~seen[..., 0]


@check("attention.formula", examples=20)
def test_formula(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, width=draw.choose((0, 0, 72)))
    matches(case.probe, *case.inputs, actual=case.output())


@check("attention.weights-formula")
def test_weights_formula(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    weights = case.weights()
    matches(case.probe, *case.inputs, actual=weights, pick=lambda pair: pair[1], what="weights")


@check("attention.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    ones = draw.choose((False, True))
    case = drawn(subject, draw, kinds=("none", "padding"), lengths=(1, 1) if ones else None)
    result = case.probe(*case.inputs)
    output, weights = result if isinstance(result, tuple) else (result, None)
    same_shape(output, (*case.query.shape[:-1], case.value.shape[-1]))
    same_precision(case.probe, output)
    alive(case, output)
    if weights is not None:
        same_shape(weights, case.keep.shape, what="weights")


@check("attention.rows-sum-to-one")
def test_rows_sum_to_one(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    sums = case.weights().sum(axis=-1)
    near(subject, sums, np.ones_like(sums), what="sum of a row", terms=case.key.shape[-2])


@check("attention.weights-nonnegative")
def test_weights_nonnegative(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    weights = case.weights()
    finite(weights, what="weights")
    low, high = weights.min(), weights.max()
    rounding = 1e-2 if case.probe.precision == "bfloat16" else 1e-5
    holds(
        low >= 0 and high <= 1 + rounding,
        f"Weights lie between {low:.6g} and {high:.6g}.",
        actual=weights,
    )


@check("attention.masked-weights-zero")
def test_masked_weights_zero(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, hiding=True)
    hidden = case.weights()[~case.keep]
    holds(not hidden.any(), f"A masked key has the weight {largest(hidden):.6g}.", actual=hidden)


@check("attention.masked-keys-ignored")
def test_masked_keys_ignored(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, hiding=True, kinds=("padding",), scale=1.0)
    key, value, hidden = poisoned(draw, case, 100.0)
    before = case.output()
    finite(before)
    equal(
        case.output(case.query, key, value, case.mask),
        before,
        what="output after changing what is masked",
    )
    shown = np.where(hidden[..., None], case.value, case.value + 1.0)
    after = case.output(case.query, case.key, shown, case.mask)
    near(
        subject,
        after,
        as_floats(before) + 1.0,
        terms=case.key.shape[-2],
        what="output after adding 1 to every value that is not masked",
    )


@check("attention.masking-exact", examples=12)
def test_masking_exact(subject: Subject, draw: Draw) -> None:
    _resolves_large_scores(subject)
    fill = subject.choices.mask_fill
    reach = 1e6 if fill == "exact" else 100.0 * abs(float(fill))
    case = drawn(subject, draw, hiding=True, scale=1.0)
    # Every key that may be attended fits far worse than the ones that are masked.
    sign = np.where(case.keep.any(axis=-2), -1.0, 1.0)[..., None]
    query = np.abs(case.query) + 1.0
    key = sign * (np.abs(case.key) + 1.0)
    raw = np.abs(scores(query, key)).max()
    inputs = (cast(query * (reach / raw), case.probe.precision), key, case.value, case.mask)
    actual = case.output(*inputs)
    matches(case.probe, *inputs, actual=actual)
    if fill != "exact":
        _shows_the_fill(case, inputs, actual)


def _shows_the_fill(case: Case, inputs: tuple[Array | None, ...], actual: Array) -> None:
    """Demand that the numbers tell the declared fill from an exact mask, where they can."""
    exact = case.probe.subject.choices.but(mask_fill="exact")
    apart = distance(
        case.probe.expected(*inputs)[0], case.probe.expected(*inputs, choices=exact)[0]
    )
    if apart > 1e-3:
        holds(
            not fits(case.probe, *inputs, actual=actual, choices=exact),
            "A finite fill is declared, and the numbers show an exact mask.",
        )


@check("attention.fully-masked-row")
def test_fully_masked_row(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, hiding=True, kinds=("per-sample", "per-head"))
    queries = case.keep.shape[-2]
    empty = draw.integer(0, queries - 1)
    mask = np.array(case.mask)
    mask[..., empty, :] = False
    inputs = (case.query, case.key, case.value, mask)
    actual = case.output(*inputs)
    rows = np.ones(actual.shape[:-1], dtype=bool)
    if subject.choices.fully_masked_row == "unspecified":
        rows[..., empty] = False
    matches(case.probe, *inputs, actual=actual, rows=rows)


@check("attention.convex-hull")
def test_convex_hull(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    output = as_floats(case.output())
    seen = case.keep[..., None]
    values = case.value[..., None, :, :]
    low = np.where(seen, values, np.inf).min(axis=-2)
    high = np.where(seen, values, -np.inf).max(axis=-2)
    outside = np.maximum(low - output, output - high)
    near(
        subject,
        np.maximum(outside, 0.0),
        np.zeros_like(outside),
        terms=case.key.shape[-2],
        size=largest(case.value),
        what="distance from the range of the values",
    )


@check("attention.key-order")
def test_key_order(subject: Subject, draw: Draw) -> None:
    case = drawn(
        subject, draw, kinds=("per-sample", "none"), lengths=(draw.length(), draw.length(2))
    )
    order = _shuffled(draw, case.key.shape[-2])
    mask = None if case.mask is None else case.mask[..., order]
    before = case.output()
    alive(case, before)
    after = case.output(case.query, case.key[..., order, :], case.value[..., order, :], mask)
    near(
        subject,
        after,
        before,
        terms=case.key.shape[-2],
        size=largest(case.value) * _steepness(case),
        what="output after reordering the keys",
    )


@check("attention.query-order")
def test_query_order(subject: Subject, draw: Draw) -> None:
    case = drawn(
        subject, draw, kinds=("per-sample", "none"), lengths=(draw.length(2), draw.length())
    )
    order = _shuffled(draw, case.query.shape[-2])
    mask = None if case.mask is None else case.mask[..., order, :]
    before = case.output()
    alive(case, before)
    after = case.output(case.query[..., order, :], case.key, case.value, mask)
    near(
        subject,
        after,
        before[..., order, :],
        terms=case.key.shape[-2],
        size=largest(case.value) * _steepness(case),
        what="output after reordering the queries",
    )


def _steepness(case: Case) -> float:
    """Return how much a rounding of a score can change a weight: the size of the scores."""
    return 1.0 + largest(scores(case.query, case.key))


def _shuffled(draw: Draw, length: int) -> Array:
    """Return an order of `length` items that is not the one they came in."""
    order = draw.rng.permutation(length)
    return np.roll(order, 1) if np.array_equal(order, np.arange(length)) else order


@check("attention.batch-independence", examples=6)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, kinds=("per-head", "per-sample", "padding"), samples=5)
    head = draw.integer(0, case.query.shape[1] - 1)
    together = case.output()
    alive(case, together)
    for sample in range(len(together)):
        own = np.s_[sample : sample + 1, head : head + 1]
        near(
            subject,
            case.output(case.query[own], case.key[own], case.value[own], np.array(case.keep[own])),
            together[own],
            terms=case.key.shape[-2] + case.query.shape[-1],
            size=largest(case.value) * _steepness(case),
            what=f"output of sample {sample} and one head alone",
        )


def _resolves_large_scores(subject: Subject) -> None:
    """End as absent where a score of one million is rounded to thousands, or is no number."""
    if subject.precision in HALVES:
        raise Absent(f"scores of one million cannot be told apart in {subject.precision}")


@check("attention.stable-for-large-scores")
def test_stable_for_large_scores(subject: Subject, draw: Draw) -> None:
    _resolves_large_scores(subject)
    case = drawn(subject, draw, kinds=("none",), scale=1.0)
    raw = largest(scores(case.query, case.key)) or 1.0
    size = draw.choose((1e6, 1e3, 100.0, 800.0))
    query = cast(case.query * draw.choose((1.0, -1.0)) * (size / raw), case.probe.precision)
    inputs = (query, case.key, case.value, None)
    actual = case.output(*inputs)
    finite(actual)
    matches(case.probe, *inputs, actual=actual)
    # Equal scores of any size share the weight equally.
    same = np.broadcast_to(np.abs(case.key[..., :1, :]) + 1.0, case.key.shape).copy()
    mean = np.broadcast_to(
        case.value.mean(axis=-2, keepdims=True), (*query.shape[:-1], case.value.shape[-1])
    )
    alike = np.full_like(query, -size)
    # Kernels sum equal products in unlike orders, so the scores are equal up to rounding alone.
    rounded = 1.0 + largest(scores(alike, same))
    near(
        subject,
        case.output(alike, same, case.value, None),
        mean,
        terms=sum(case.key.shape[-2:]),
        size=largest(case.value) * rounded,
        what="output for equal scores",
    )


@check("attention.value-width")
def test_value_width(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, scale=1.0)
    width = case.query.shape[-1] + draw.choose((3, 1, 7))
    value = draw.floats(*case.value.shape[:-1], width)
    inputs = (case.query, case.key, value, case.mask)
    matches(case.probe, *inputs, actual=case.output(*inputs))


@check("attention.cross-lengths", examples=3)
def test_cross_lengths(subject: Subject, draw: Draw) -> None:
    kinds = ("per-sample", "padding", "none")
    few, many = draw.length(), draw.long(523)
    square = draw.long()
    for lengths in (draw.lengths(), (square, square), (many, few), (few, many)):
        case = drawn(subject, draw, kinds=kinds, lengths=lengths, scale=1.0)
        matches(case.probe, *case.inputs, actual=case.output())


@check("attention.mask-shapes")
def test_mask_shapes(subject: Subject, draw: Draw) -> None:
    case = drawn(
        subject, draw, hiding=True, scale=1.0, kinds=("padding", "causal", "per-sample", "per-head")
    )
    output = case.output()
    if "per-head" in subject.limits.masks:
        whole = np.array(case.keep)
        near(
            subject,
            output,
            case.output(case.query, case.key, case.value, whole),
            terms=case.key.shape[-2],
            size=largest(case.value) * _steepness(case),
            what="output under the broadcast mask",
        )
    matches(case.probe, *case.inputs, actual=output)


@check("attention.one-key")
def test_one_key(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, kinds=("none",))
    batch, heads, keys = case.key.shape[:3]
    last = draw.integer(0, keys - 1)
    mask = np.zeros((batch, 1, 1, keys), dtype=bool)
    mask[..., last] = True
    wanted = np.broadcast_to(
        case.value[..., last : last + 1, :],
        (batch, heads, case.query.shape[-2], case.value.shape[-1]),
    )
    alone = slice(last, last + 1)
    equal(
        case.output(case.query, case.key[..., alone, :], case.value[..., alone, :], None),
        wanted,
        what="output for a single key",
    )
    equal(
        case.output(case.query, case.key, case.value, mask),
        wanted,
        what="output for a single key left",
    )


@check("attention.strided-inputs")
def test_strided_inputs(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, scale=1.0)
    strided = tuple(
        np.ascontiguousarray(array.transpose(3, 2, 0, 1)).transpose(2, 3, 1, 0)
        for array in (case.query, case.key, case.value)
    )
    plain = case.output()
    alive(case, plain)
    near(
        subject,
        case.output(*strided, case.mask),
        plain,
        terms=case.query.shape[-1] + case.key.shape[-2],
        size=largest(case.value) * _steepness(case),
        what="output for strided inputs",
    )


@check("attention.gradient", examples=3)
def test_gradient(subject: Subject, draw: Draw) -> None:
    for lengths in (None, (draw.length(), draw.long(37))):
        case = drawn(subject, draw, scale=1.0, lengths=lengths)
        alive(case, case.output())
        agrees_with_differences(case.probe, *case.inputs, draw=draw)


@check("attention.gradient-to-masked-keys", examples=5)
def test_gradient_to_masked_keys(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, hiding=True, kinds=("padding",), scale=1.0)
    shape = (*case.query.shape[:-1], case.value.shape[-1])
    gradient = case.probe.vjp(case.inputs, draw.floats(*shape))
    alive(case, case.output())
    hidden = ~case.keep.any(axis=-2)
    for name, number in (("key", 1), ("value", 2)):
        pulled = gradient.inputs[number]
        holds(pulled is not None, f"No gradient reaches the {name}.")
        rows = as_floats(pulled)[hidden]
        holds(not rows.any(), f"A masked {name} has a gradient of {largest(rows):.6g}.")


@check("attention.gradient-finite", examples=5)
def test_gradient_finite(subject: Subject, draw: Draw) -> None:
    # In half precision the scores of large inputs leave the range of the format itself.
    scales = (1.0,) if subject.precision in HALVES else (1.0, 1e3)
    case = drawn(subject, draw, scale=draw.choose(scales))
    shape = (*case.query.shape[:-1], case.value.shape[-1])
    gradient = case.probe.vjp(case.inputs, draw.floats(*shape))
    for name, pulled in zip(("query", "key", "value"), gradient.inputs, strict=False):
        finite(as_floats(pulled), what=f"gradient of the {name}")
    holds(bool(as_floats(gradient.inputs[2]).any()), "No gradient reaches the values.")


@check("attention.half-precision", examples=20)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    scale = draw.choose((1.0, 4.0))
    precise(lambda precision: _call(subject, draw, precision, scale), half(subject, draw))


@check("attention.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    precise(lambda precision: _call(subject, draw, precision), "float32")


def _call(subject: Subject, draw: Draw, precision: str, scale: float = 1.0) -> Call:
    case = drawn(subject, draw, scale=scale, precision=precision)
    return case.probe, case.inputs


@check("attention.weights-used")
def test_weights_used(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    weights = case.weights()
    near(
        subject,
        case.output(),
        weights @ case.value,
        terms=case.key.shape[-2],
        size=largest(case.value),
        what="output",
    )


@check("attention.deterministic", examples=6)
def test_deterministic(subject: Subject, draw: Draw) -> None:
    case = drawn(
        subject, draw, kinds=("none", "per-sample"), dropout=0.5 if subject.limits.dropout else 0.0
    )
    result = case.probe(*case.inputs)
    given = [one for one in result if one is not None] if isinstance(result, tuple) else [result]
    kept = [one.copy() for one in given]
    first = kept[0]
    equal(case.output(), first, what="output of the second call")
    alive(case, first)
    # A call with other inputs of the same shapes stands between: nothing of it may be left.
    batch, heads, queries, keys = case.keep.shape
    kind = "padding" if "padding" in subject.limits.masks else "none"
    mask = draw.mask(kind, batch, heads, queries, keys)
    case.output(-case.query, case.key[..., ::-1, :], case.value, mask)
    for one, before in zip(given, kept, strict=True):
        equal(one, before, what="result of the first call, looked at after others,")
    equal(case.output(), first, what="output after a call with other inputs")
