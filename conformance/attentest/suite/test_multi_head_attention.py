"""Checks of the chapter `multi_head_attention`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from attentest.cases import Call, half, keeps_the_mean, precise, same_precision
from attentest.checks import check
from attentest.compare import (
    as_floats,
    distance,
    equal,
    error_bound,
    finite,
    holds,
    largest,
    matches,
    same_shape,
)
from attentest.draw import Draw
from attentest.gradients import agrees_with_differences, every_parameter_reached, gradient_to
from attentest.laws import alike, has_map, prepared, shuffled
from attentest.outcome import Absent
from attentest.refusal import refused
from attentest.subject import Probe, Subject, cast
from attentest_spec import Sizes
from attentest_spec.parameters import count, head_width
from attentest_spec.setting import Array, Floats

COMPONENT = "multi_head_attention"
INPUTS = ("query", "key", "value")
ONE_HEAD_AXIS = ("per-sample", "padding", "causal")
UNORDERED = ("per-sample", "none", "padding")


@dataclass(frozen=True)
class Case:
    """One call of multi-head attention: the part, its inputs and the mask."""

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
        """The mask at the shape of the weights, (B, H, Q, K)."""
        batch, queries, _ = self.query.shape
        shape = (batch, self.probe.sizes.heads, queries, self.key.shape[1])
        return np.broadcast_to(np.ones((), dtype=bool) if self.mask is None else self.mask, shape)

    def output(self) -> Array:
        """Return what the backend computes, of the shape that it must have."""
        found = self.probe.output(*self.inputs)
        same_shape(found, self.query.shape)
        return found

    def but(self, **changes: Array | None) -> "Case":
        """Return the same call with some inputs changed.

        Where one input is query, key and value at once, another value is another input.
        """
        if not self.probe.subject.limits.cross and "value" in changes:
            changes |= dict.fromkeys(("query", "key"), changes["value"])
        return replace(self, **changes)  # type: ignore[arg-type]  # the names are those of inputs

    def sample(self, number: int) -> "Case":
        """Return the call of one sample alone."""
        own = slice(number, number + 1)
        mask = self.mask if self.mask is None or len(self.mask) == 1 else self.mask[own]
        return self.but(query=self.query[own], key=self.key[own], value=self.value[own], mask=mask)


def sized(draw: Draw, heads: int = 0, low: int = 1) -> Sizes:
    """Draw a model width and a number of heads that divides it, `low` heads at least."""
    number = heads or draw.heads(low)
    return Sizes(d_model=number * draw.choose((2, 3, 4)), heads=number)


def call(
    draw: Draw,
    probe: Probe,
    *,
    hiding: bool = False,
    kinds: Sequence[str] = (),
    scale: float = 1.0,
    lengths: tuple[int, int] | None = None,
    batch: int = 0,
) -> Case:
    """Draw a call of `probe`; `hiding` asks for a mask, `lengths` fixes queries and keys.

    Where one input is query, key and value at once, all three are equal.
    """
    kind = draw.mask_kind(hiding=hiding, kinds=kinds)
    one_input = not probe.subject.limits.cross
    samples = batch or draw.batch()
    shortest = 2 if hiding else 1
    queries, keys = lengths or (draw.length(shortest), draw.length(shortest))
    if kind == "causal" or one_input:
        queries = keys = max(queries, keys)
    width, precision = probe.sizes.d_model, probe.precision
    query, key, value = (
        draw.floats(samples, length, width, scale=scale, precision=precision)
        for length in (queries, keys, keys)
    )
    mask = draw.mask(kind, samples, probe.sizes.heads, queries, keys)
    return Case(probe, query, *((query, query) if one_input else (key, value)), mask)


def loaded(
    subject: Subject, draw: Draw, sizes: Sizes, *, scale: float = 1.0, precision: str = ""
) -> Probe:
    """Build a part with drawn parameters; absent without a parameter map."""
    parameters = draw.parameters(COMPONENT, sizes, scale=scale, precision=precision)
    return subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)


def needs_cross(subject: Subject) -> None:
    """End as absent where query, key and value cannot differ."""
    if not subject.limits.cross:
        raise Absent(f"query, key and value are one input of {subject.name}")


def judged(case: Case, actual: Array | None = None, what: str = "output") -> None:
    """Demand the oracle's answer to the call."""
    answer = case.output() if actual is None else actual
    matches(case.probe, *case.inputs, actual=answer, what=what)


def answers(draw: Draw, case: Case, before: Array) -> None:
    """Demand a real answer: every query that may attend to a key heeds a change of its value.

    No constant output does, and no copy of an input: other positions are changed too.
    """
    chosen = draw.integer(0, case.key.shape[1] - 1)
    value = case.value.copy()
    value[:, chosen] += cast(np.full(value.shape[-1], 1000.0), case.probe.precision)
    after = case.but(value=value).output()
    heeds = (as_floats(after) != as_floats(before)).any(axis=-1)
    asked: Array = np.asarray(case.keep[..., chosen].any(axis=1))
    deaf = int((asked & ~heeds).sum())
    if case.probe.precision not in ("float64", "float32") and heeds.any():
        return  # a small weight of a large value may be less than one digit
    holds(
        deaf == 0,
        f"The value of key {chosen} changes by 1000, and the output of {deaf} queries that may "
        "attend to it stays as it is.",
        actual=after,
    )


@check("multi_head_attention.formula", examples=20)
def test_formula(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw))
    judged(call(draw, probe, scale=draw.scale() ** 0.5))


@check("multi_head_attention.head-width")
def test_head_width(subject: Subject, draw: Draw) -> None:
    sizes = sized(draw, low=2)
    probe = subject.part(COMPONENT, sizes)
    born = probe.do("exporting the parameters at birth", lambda part: part.export())
    if "query.weight" not in born:
        raise Absent(f"the {COMPONENT} of {subject.name} has no parameter map")
    found, wanted = len(born["query.weight"]), head_width(sizes, subject.choices) * sizes.heads
    holds(
        found == wanted,
        f"Heads of width {subject.choices.head_width} are declared, and at model width "
        f"{sizes.d_model} with {sizes.heads} heads the query projection has {found} rows, not "
        f"{wanted}.",
    )
    probe.load(draw.parameters(COMPONENT, sizes))
    judged(call(draw, probe, lengths=(draw.length(), draw.length(2))))


@check("multi_head_attention.projection-bias")
def test_projection_bias(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw))
    case = call(draw, probe, lengths=(draw.length(), draw.length(2)))
    actual = case.output()
    judged(case, actual)
    if subject.choices.projection_bias == "none":
        nothing = case.but(value=np.zeros_like(case.value)).output()
        holds(
            not as_floats(nothing).any(),
            f"No bias is declared, and values of zero give {largest(nothing):.6g}.",
            actual=nothing,
        )
        return
    without = {
        name: np.zeros_like(values) if name.endswith(".bias") else values
        for name, values in probe.parameters.items()
    }
    wrong, room = _answer(case, without)
    right, slack = _answer(case, probe.parameters)
    telling = distance(wrong, right) > room + slack  # half precision may be too coarse to tell
    holds(
        distance(actual, wrong) > room or not telling,
        "Biases are declared, and the numbers are those of projections without them.",
        actual=actual,
    )


def _answer(case: Case, parameters: Mapping[str, Floats]) -> tuple[Floats, float]:
    """Return what the oracle computes from `parameters`, and the error that sound code makes."""
    kept = case.probe.parameters
    case.probe.parameters = dict(parameters)
    try:
        answer: Floats = case.probe.expected(*case.inputs)
        return answer, error_bound(case.probe, case.inputs, answer)
    finally:
        case.probe.parameters = kept


@check("multi_head_attention.shapes", examples=6)
def test_shapes(subject: Subject, draw: Draw) -> None:
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    long, longer = draw.length(), draw.length()
    for batch, queries, keys in ((2, long, longer), (1, long, 1), (1, 1, longer), (2, 1, 1)):
        case = call(draw, probe, kinds=("none", "padding"), lengths=(queries, keys), batch=batch)
        output = case.output()
        same_precision(probe, output)
        finite(output)
        answers(draw, case, output)


@check("multi_head_attention.cross-lengths", examples=4)
def test_cross_lengths(subject: Subject, draw: Draw) -> None:
    needs_cross(subject)
    probe = loaded(subject, draw, sized(draw))
    for lengths in (draw.lengths(), (draw.long(), draw.length()), (draw.length(), draw.long())):
        judged(call(draw, probe, kinds=UNORDERED, lengths=lengths))


@check("multi_head_attention.one-head-is-attention")
def test_one_head_is_attention(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw, heads=1))
    judged(call(draw, probe, lengths=(draw.length(), draw.length(2))))


@check("multi_head_attention.own-projections", examples=6)
def test_own_projections(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw))
    case = call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length(3)))
    first = probe.parameters
    for name in INPUTS:
        weight = f"{name}.weight"
        fresh = draw.floats(*first[weight].shape, scale=probe.sizes.d_model**-0.5)
        probe.load({**first, weight: fresh})
        judged(case, what=f"output with another {weight}")


@check("multi_head_attention.heads-are-slices")
def test_heads_are_slices(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw, low=2))
    case = call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length(2)))
    before, kept = case.output(), probe.parameters
    order = shuffled(draw, probe.sizes.heads)
    probe.load({name: _dealt(name, values, order) for name, values in kept.items()})
    alike(
        probe,
        *case.inputs,
        actual=case.output(),
        expected=before,
        what="output after reordering the heads in all four projections",
    )
    query = {name: values for name, values in kept.items() if name.startswith("query")}
    probe.load(kept | {name: _dealt(name, values, order) for name, values in query.items()})
    judged(case, what="output after reordering the heads in the query projection alone")


def _dealt(name: str, values: Floats, order: Array) -> Floats:
    """Return a parameter with its heads reordered: rows, or the columns of the output's weight."""
    if name == "output.bias":
        return values
    turned = values.T if name == "output.weight" else values
    width = len(turned) // len(order)
    moved = np.concatenate([turned[head * width : (head + 1) * width] for head in order])
    return moved.T.copy() if name == "output.weight" else moved


@check("multi_head_attention.every-input-counts", examples=4)
def test_every_input_counts(subject: Subject, draw: Draw) -> None:
    needs_cross(subject)
    probe = loaded(subject, draw, sized(draw))
    case = call(draw, probe, kinds=("none", "padding"), lengths=(draw.length(2), draw.length(2)))
    before = case.output()
    moves = draw.floats(*case.query.shape)
    centred = cast(moves - moves.mean(axis=1, keepdims=True), probe.precision)
    _counts(case, before, "query", case.query + centred)
    for number in range(case.key.shape[1]):
        for name, given in (("key", case.key), ("value", case.value)):
            changed = given.copy()
            changed[:, number] += draw.floats(*changed[:, number].shape)
            _counts(case, before, name, changed)


def _counts(case: Case, before: Array, name: str, changed: Floats) -> None:
    """Demand that the input `name`, `changed`, changes the output where the oracle's changes."""
    given = cast(changed, case.probe.precision)
    other = case.but(**{name: given})
    here, there = (case.probe.expected(*one.inputs) for one in (case, other))
    wanted = np.abs(there - here).max(axis=-1)
    found = np.abs(as_floats(other.output()) - as_floats(before)).max(axis=-1)
    rounding = error_bound(case.probe, other.inputs, there) + error_bound(
        case.probe, case.inputs, here
    )
    # Half of a change that rounding cannot make is demanded: rounding can hide the rest.
    silent = (wanted > 4 * rounding) & (found < wanted / 2)
    holds(
        not silent.any(),
        f"The {name} changes, and the output changes by {found[silent].max(initial=0):.6g} where "
        f"it should by {wanted[silent].max(initial=0):.6g}.",
    )


@check("multi_head_attention.query-order")
def test_query_order(subject: Subject, draw: Draw) -> None:
    needs_cross(subject)
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    case = call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length()))
    order = shuffled(draw, case.query.shape[1])
    mask = case.mask
    if mask is not None and mask.shape[2] > 1:
        mask = mask[:, :, order]
    before = case.output()
    answers(draw, case, before)
    alike(
        probe,
        *case.inputs,
        actual=case.but(query=case.query[:, order], mask=mask).output(),
        expected=before[:, order],
        what="output after reordering the queries",
    )


@check("multi_head_attention.key-order")
def test_key_order(subject: Subject, draw: Draw) -> None:
    needs_cross(subject)
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    case = call(draw, probe, kinds=UNORDERED, lengths=(draw.length(), draw.length(2)))
    order = shuffled(draw, case.key.shape[1])
    mask = None if case.mask is None else case.mask[..., order]
    before = case.output()
    answers(draw, case, before)
    moved = case.but(key=case.key[:, order], value=case.value[:, order], mask=mask)
    alike(
        probe,
        *case.inputs,
        actual=moved.output(),
        expected=before,
        what="output after reordering the keys",
    )


@check("multi_head_attention.batch-independence", examples=6)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    # Inputs read in another order fit where there is no mask and both lengths are equal.
    length, free = draw.length(2), "none" in subject.limits.masks
    for kinds, lengths in (((), None), (("none",) if free else (), (length, length))):
        case = call(draw, probe, kinds=kinds, lengths=lengths, batch=draw.choose((2, 3)))
        together = case.output()
        answers(draw, case, together)
        _alone_as_together(case, together)


def _alone_as_together(case: Case, together: Array) -> None:
    """Demand of every sample alone what it gave beside the others."""
    for number in range(len(together)):
        own = case.sample(number)
        alike(
            own.probe,
            *own.inputs,
            actual=own.output(),
            expected=together[number : number + 1],
            what=f"output of sample {number} alone",
        )


@check("multi_head_attention.masked-keys-ignored")
def test_masked_keys_ignored(subject: Subject, draw: Draw) -> None:
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    case = call(draw, probe, hiding=True, kinds=("padding", "per-sample", "causal"))
    before = case.output()
    finite(before)
    answers(draw, case, before)
    _ignores_hidden(draw, case, before)


def _ignores_hidden(draw: Draw, case: Case, before: Array) -> None:
    """Demand that other keys and values change nothing for the queries they are hidden from."""
    seen: Array = np.asarray(case.keep.any(axis=1))
    for number in range(case.key.shape[1]):
        hidden = ~seen[..., number]
        if not case.probe.subject.limits.cross:
            hidden[:, number] = False  # the position is a query of its own, too
        if not hidden.any():
            continue
        key, value = case.key.copy(), case.value.copy()
        key[:, number] = draw.floats(*key[:, number].shape, scale=100.0)
        value[:, number] = draw.floats(*value[:, number].shape, scale=100.0)
        after = case.but(key=key, value=value).output()
        equal(
            after[hidden],
            before[hidden],
            what=f"output of the queries that key {number} is hidden from, after changing it",
        )


@check("multi_head_attention.one-mask-for-all-heads")
def test_one_mask_for_all_heads(subject: Subject, draw: Draw) -> None:
    probe = prepared(subject, draw, COMPONENT, sized(draw, low=2))
    case = call(draw, probe, hiding=True, kinds=ONE_HEAD_AXIS)
    before = case.output()
    answers(draw, case, before)
    _ignores_hidden(draw, case, before)
    if "per-head" in subject.limits.masks:
        alike(
            probe,
            *case.inputs,
            actual=case.but(mask=np.array(case.keep)).output(),
            expected=before,
            what="output under the mask written out for each head",
        )


@check("multi_head_attention.mask-per-sample")
def test_mask_per_sample(subject: Subject, draw: Draw) -> None:
    probe = prepared(subject, draw, COMPONENT, sized(draw, low=2))
    kinds = ("padding", "per-sample")
    case = call(draw, probe, hiding=True, kinds=kinds, batch=draw.choose((2, 3)))
    case = case.but(mask=_unlike(case.mask, axis=0))
    together = case.output()
    answers(draw, case, together)
    _ignores_hidden(draw, case, together)
    _alone_as_together(case, together)


def _unlike(mask: Array | None, axis: int) -> Array:
    """Return `mask` so that neighbours along `axis` hide and keep other keys."""
    whole = np.moveaxis(np.array(mask), axis, 0)
    keys = whole.shape[-1]
    for number, own in enumerate(whole):
        own[..., number % keys] = False
        own[..., (number + 1) % keys] = True
    return np.ascontiguousarray(np.moveaxis(whole, 0, axis))


@check("multi_head_attention.mask-per-head")
def test_mask_per_head(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw, low=2))
    case = call(draw, probe, hiding=True, kinds=("per-head",))
    judged(case.but(mask=_unlike(case.mask, axis=1)))


@check("multi_head_attention.indivisible-width-refused", examples=6)
def test_indivisible_width_refused(subject: Subject, draw: Draw) -> None:
    if subject.choices.head_width == "d":
        raise Absent("heads as wide as the model do not share its width")
    heads = draw.integer(2, min(5, max(2, subject.limits.heads or 5)))
    if subject.limits.heads is not None and heads > subject.limits.heads:
        raise Absent(f"{subject.name} is limited to {subject.limits.heads} heads")
    whole = heads * draw.integer(2, 4)
    probe = subject.part(COMPONENT, Sizes(d_model=whole, heads=heads))
    if not has_map(probe) and "mode" not in probe.part.capabilities:
        raise Absent("a plain function is not built")
    width = whole - draw.integer(1, heads - 1)
    refused(
        subject,
        f"building a width of {width} for {heads} heads",
        lambda: subject.part(COMPONENT, Sizes(d_model=width, heads=heads)),
        naming=(width, heads),
    )


@check("multi_head_attention.parameter-count", examples=4)
def test_parameter_count(subject: Subject, draw: Draw) -> None:
    sizes = sized(draw)
    probe = subject.part(COMPONENT, sizes)
    held = probe.do("listing what it holds", lambda part: part.inventory())["parameters"]
    found = sum(prod(facts["shape"]) for facts in held.values())
    wanted = count(COMPONENT, sizes, subject.choices)
    named = ", ".join(f"{name} {facts['shape']}" for name, facts in held.items())
    holds(found == wanted, f"There are {found} trained numbers, not {wanted}: {named}.")


@check("multi_head_attention.every-parameter-reached", examples=4)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw))
    case = call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length(3)))
    every_parameter_reached(probe, *case.inputs, draw=draw)


@check("multi_head_attention.gradient", examples=5)
def test_gradient(subject: Subject, draw: Draw) -> None:
    needs_cross(subject)
    probe = loaded(subject, draw, sized(draw))
    case = call(draw, probe, lengths=(draw.length(), draw.length(2)))
    agrees_with_differences(probe, *case.inputs, draw=draw)


@check("multi_head_attention.gradient-to-masked-keys", examples=5)
def test_gradient_to_masked_keys(subject: Subject, draw: Draw) -> None:
    needs_cross(subject)
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    case = call(draw, probe, hiding=True, kinds=("padding",), scale=draw.choose((1.0, 30.0)))
    cotangent = draw.floats(*case.query.shape)
    gradient = probe.vjp(case.inputs, cotangent)
    hidden = ~case.keep.any(axis=(1, 2))
    for number, name in enumerate(INPUTS):
        shape = case.query.shape if name == "query" else case.key.shape
        pulled = gradient_to(gradient, number, name, shape)
        if name != "query":
            rows = pulled[hidden]
            holds(not rows.any(), f"A masked {name} has a gradient of {largest(rows):.6g}.")
        if name == "value":
            holds(pulled.any(), "No gradient reaches the values that are not masked.")
    for name, values in gradient.parameters.items():
        finite(values, what=f"gradient of {name}")


@check("multi_head_attention.large-scores")
def test_large_scores(subject: Subject, draw: Draw) -> None:
    if subject.precision not in ("float64", "float32"):
        raise Absent("half precision does not resolve scores of this size")
    sizes = sized(draw)
    parameters = {
        name: values * (200.0 if name.startswith(("query", "key")) else 1.0)
        for name, values in draw.parameters(COMPONENT, sizes).items()
    }
    probe = subject.part(COMPONENT, sizes, parameters=_cast(parameters, subject.precision))
    case = call(draw, probe, hiding=True)
    output = case.output()
    finite(output)
    judged(case, output)


def _cast(parameters: Mapping[str, Floats], precision: str) -> dict[str, Floats]:
    return {name: cast(values, precision) for name, values in parameters.items()}


@check("multi_head_attention.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    precise(lambda precision: _in(subject, draw, precision), "float32")


@check("multi_head_attention.half-precision", examples=15)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    precise(lambda precision: _in(subject, draw, precision), half(subject, draw))


def _in(subject: Subject, draw: Draw, precision: str) -> Call:
    case = call(draw, loaded(subject, draw, sized(draw), precision=precision))
    return case.probe, case.inputs


@check("multi_head_attention.deterministic", examples=3)
def test_deterministic(subject: Subject, draw: Draw) -> None:
    sizes = sized(draw).but(dropout=0.5 if subject.limits.dropout else 0.0)
    probe = prepared(subject, draw, COMPONENT, sizes)
    case = call(draw, probe)
    first = case.output().copy()
    others = {name: draw.floats(*getattr(case, name).shape) for name in INPUTS}
    answers(draw, case.but(**others), case.but(**others).output())
    equal(case.output(), first, what="output of the same call after others")
    if sizes.dropout and "mode" in probe.part.capabilities:
        one = call(draw, probe, kinds=("none",), batch=1, lengths=(2, 3))
        keeps_the_mean(probe, *one.inputs)


@check("multi_head_attention.strided-inputs")
def test_strided_inputs(subject: Subject, draw: Draw) -> None:
    probe = prepared(subject, draw, COMPONENT, sized(draw))
    lengths = draw.length(2), draw.length(2)
    case = call(draw, probe, lengths=lengths, batch=draw.choose((2, 3)))
    before = case.output()
    answers(draw, case, before)
    turned = {name: np.ascontiguousarray(getattr(case, name).T).T for name in INPUTS}
    alike(
        probe,
        *case.inputs,
        actual=case.but(**turned).output(),
        expected=before,
        what="output for strided inputs",
    )


@check("multi_head_attention.parameters-round-trip", examples=5)
def test_parameters_round_trip(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw))
    judged(call(draw, probe))
    exported = probe.do("exporting the parameters", lambda part: part.export())
    names, wanted = sorted(exported), sorted(probe.parameters)
    holds(names == wanted, f"The exported parameters are {names}, not {wanted}.")
    for name, values in probe.parameters.items():
        equal(exported[name], values, what=f"exported {name}")
