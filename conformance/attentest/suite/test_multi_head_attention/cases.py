"""Calls of multi-head attention, and assertions of its chapter about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, fits
from attentest.testing.assertions import holds, matches, same_shape
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding
from attentest.testing.rotary_widths import served_widths
from attentest_spec import Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.order import ordered, own_mask
from attentest_spec.setting import Array, Floats, Tokens

COMPONENT = "multi_head_attention"

PATH = {"value.weight": 1.0, "output.weight": 1.0}
"""The path of one number, for :func:`attentest.testing.dropout_rate.build_path`."""

SCORED_PATH = {"query.weight": 1.0, "key.weight": 1.0, **PATH}
"""The same path with a score of its key: dropout before the softmax gives neither weight."""

INPUTS = ("query", "key", "value")

OPEN_FIRST = ("none", "per-sample", "padding", "per-head", "causal")
"""All kinds of masks; every seed begins with the first that the backend takes."""

UNORDERED = ("none", "per-sample", "padding")

SHARING = 8
"""A number of query heads that several numbers of key heads divide."""


@dataclass(frozen=True)
class MultiHeadCall:
    """One call of multi-head attention: the part, its inputs, the mask, and positions (B, K)."""

    probe: Probe
    query: Floats
    key: Floats
    value: Floats
    mask: Array | None
    positions: Tokens | None = None

    @property
    def inputs(self) -> tuple[Array | None, ...]:
        """The inputs in the order of the call; positions follow where they are given."""
        given = self.query, self.key, self.value, self.mask
        return given if self.positions is None else (*given, self.positions)

    @property
    def keep(self) -> Array:
        """The mask at the shape of the weights, (B, H, Q, K)."""
        batch, queries, _ = self.query.shape
        shape = (batch, self.probe.sizes.heads, queries, self.key.shape[1])
        kept = np.broadcast_to(np.ones((), dtype=bool) if self.mask is None else self.mask, shape)
        own = _own_mask(self.probe, queries, self.key.shape[1])
        return kept if own is None else kept & own

    def output(self) -> Array:
        """Return what the backend computes, of the shape that it must have."""
        output = self.probe.output(*self.inputs)
        same_shape(output, self.query.shape)
        return output

    def but(self, **changes: Array | None) -> "MultiHeadCall":
        """Return the same call with some inputs changed.

        Where one input is query, key and value at once, another value is another input.
        """
        if not self.probe.subject.limits.cross and "value" in changes:
            changes |= dict.fromkeys(("query", "key"), changes["value"])
        return replace(self, **changes)  # type: ignore[arg-type]  # the names are those of inputs

    def sample(self, number: int) -> "MultiHeadCall":
        """Return the call of one sample alone."""
        own = slice(number, number + 1)
        mask = self.mask if self.mask is None or len(self.mask) == 1 else self.mask[own]
        given = None if self.positions is None else self.positions[own]
        inputs = {"query": self.query[own], "key": self.key[own], "value": self.value[own]}
        return self.but(**inputs, mask=mask, positions=given)

    def with_mask(self, mask: Array | None) -> "MultiHeadCall":
        """Return the call under another mask, with a key for every query."""
        own = _own_mask(self.probe, self.query.shape[1], self.key.shape[1])
        if mask is not None and own is not None:
            _keep_a_key(mask, own)
        return self.but(mask=mask)


def draw_sizes(draw: Draw, heads: int = 0, low: int = 1) -> Sizes:
    """Draw a model width and a number of heads that divides it, `low` heads at least.

    Where keys and values have fewer heads, their number divides that of the queries.
    """
    fewer = draw.subject.choices.key_heads == "fewer"
    most = draw.subject.limits.heads or SHARING
    number = heads or (draw.choose((SHARING, 6)) if fewer and most >= 6 else draw.heads(low))
    sizes = Sizes(d_model=number * draw.choose(_widths(draw)), heads=number, **_places(draw))
    fitted = draw.subject.limits.fitted(sizes)
    if not fewer or fitted.kv_heads:  # a limit
        return fitted
    # Between one and all of them, where there are such numbers: groups are in no order there.
    divisors = [one for one in range(2, fitted.heads) if fitted.heads % one == 0]
    return fitted.but(kv_heads=draw.choose((*divisors, *divisors, 1, 0)))


def _widths(draw: Draw) -> Sequence[int]:
    """Return the widths of heads: with rotary positions those that have pairs to turn."""
    if draw.subject.choices.attention_rotary == "none":
        return 2, 3, 4
    return served_widths(draw.subject.choices, (4, 6, 8, 16, 12, 20, 32))[:3]


def _places(draw: Draw) -> dict[str, Any]:
    """Draw the sizes that the order of queries and keys depends on, where it counts."""
    choices, found = draw.subject.choices, {}
    if choices.attention_rotary != "none":
        dynamic = choices.rotary_scaling == "dynamic-ntk"
        found["rotary_factor"] = draw.choose((4.0, 2.0, 8.0))
        found["trained_length"] = draw.choose((3, 5) if dynamic else (2048, 64, 640))
    if choices.attention_window != "none":
        found["window"] = draw.choose((2, 3, 4))
    if choices.relative_bias.startswith("buckets"):
        found["bias_buckets"], found["bias_distance"] = draw.choose(((8, 16), (12, 20), (32, 128)))
    return found


def draw_call(
    draw: Draw,
    probe: Probe,
    *,
    hiding: bool = False,
    kinds: Sequence[str] = (),
    scale: float = 1.0,
    lengths: tuple[int, int] | None = None,
    batch: int = 0,
) -> MultiHeadCall:
    """Draw a call of `probe`; `hiding` demands a mask, `lengths` fixes queries and keys.

    Where one input is query, key and value at once, all three are equal.
    """
    kind = draw.mask_kind(hiding=hiding, kinds=kinds)
    one_input, choices = not probe.subject.limits.cross, probe.subject.choices
    samples = batch or draw.batch()
    shortest = 2 if hiding else 1
    queries, keys = lengths or (draw.length(shortest), draw.length(shortest))
    fixed = ordered(choices) and choices.query_alignment == "equal-numbers"
    if kind == "causal" or one_input or fixed:
        queries = keys = max(queries, keys)
    elif ordered(choices) and choices.query_alignment == "end":
        queries, keys = sorted((queries, keys))
    width, precision = probe.sizes.d_model, probe.precision
    query, key, value = (
        draw.floats(samples, length, width, scale=scale, precision=precision)
        for length in (queries, keys, keys)
    )
    mask = draw.mask(kind, samples, probe.sizes.heads, queries, keys)
    others = (query, query) if one_input else (key, value)
    return MultiHeadCall(probe, query, *others, None).with_mask(mask)


def _own_mask(probe: Probe, queries: int, keys: int) -> Array | None:
    """Return what attention hides by itself, of the shape (1, 1, Q, K), or None."""
    return own_mask(Setting(probe.sizes, probe.subject.choices), queries, keys)


def _keep_a_key(mask: Array, own: Array) -> None:
    """Change `mask` so that each query keeps a key besides what `own` (1, 1, Q, K) hides.

    A mask without an axis of queries keeps the first key that a query without one may see.
    """
    for place in range(own.shape[2]):
        rows = mask[:, :, place if mask.shape[2] > 1 else 0]
        first = int(own[0, 0, place].argmax())
        rows[..., first] |= ~(rows & own[:, :, place]).any(axis=-1)


def build_loaded(
    subject: Subject, draw: Draw, sizes: Sizes, *, scale: float = 1.0, precision: str = ""
) -> Probe:
    """Build a part with drawn parameters; absent without a parameter map."""
    parameters = draw.parameters(COMPONENT, sizes, scale=scale, precision=precision)
    return subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)


def require_cross(subject: Subject) -> None:
    """End as absent where query, key and value cannot differ."""
    if not subject.limits.cross:
        raise Absent(f"query, key and value are one input of {subject.name}")


def require_unordered(subject: Subject) -> None:
    """End as absent where the order of queries and keys counts."""
    require_cross(subject)
    if ordered(subject.choices):
        raise Absent(f"the order of keys counts in the attention of {subject.name}")


def require_other_numbers(subject: Subject) -> None:
    """End as absent where there are as many queries as keys."""
    require_cross(subject)
    if ordered(subject.choices) and subject.choices.query_alignment == "equal-numbers":
        raise Absent(f"the attention of {subject.name} has as many queries as keys")


def shows_declared(case: MultiHeadCall, choice: str, others: Sequence[Value]) -> None:
    """Demand the numbers of the declared option of `choice`; name the other that they show."""
    actual, declared = case.output(), case.probe.subject.choices
    if not fits(case.probe, *case.inputs, actual=actual, choices=declared):
        for one in others:
            other = declared.but(**{choice: one})
            same = one == declared[choice]
            holds(
                same or not fits(case.probe, *case.inputs, actual=actual, choices=other),
                f"{choice} is declared as {declared[choice]}; the numbers show {one}.",
                actual=actual,
            )
    matches_reference(case, actual)


def matches_reference(
    case: MultiHeadCall, actual: Array | None = None, what: str = "output"
) -> None:
    """Demand the answer of the reference to the call."""
    answer = case.output() if actual is None else actual
    matches(case.probe, *case.inputs, actual=answer, what=what)


def depends_on_values(draw: Draw, case: MultiHeadCall, before: Array) -> None:
    """Demand that every query that may attend to a key depends on its value.

    No constant output does, and no copy of an input: other positions are changed too.
    """
    chosen = draw.integer(0, case.key.shape[1] - 1)
    value = case.value.copy()
    value[:, chosen] += cast(np.full(value.shape[-1], 1000.0), case.probe.precision)
    after = case.but(value=value).output()
    depends = (as_floats(after) != as_floats(before)).any(axis=-1)
    visible: Array = np.asarray(case.keep[..., chosen].any(axis=1))
    constant = int((visible & ~depends).sum())
    if case.probe.precision not in ("float64", "float32") and depends.any():
        return  # a small weight of a large value may be less than one digit
    holds(
        constant == 0,
        f"The output does not depend on the value of key {chosen}, changed by 1000; number of "
        f"queries that may attend to it: {constant}.",
        actual=after,
    )


def with_differing_masks(draw: Draw, case: MultiHeadCall) -> MultiHeadCall:
    """Return the call with masks that differ between neighbouring samples, and heads.

    Where later keys are hidden as well, the first query keeps its only key.
    """
    assert case.mask is not None
    first = int(case.probe.subject.choices.attention_causality == "built-in")
    return case.with_mask(draw.differing(case.mask, first=first))


def samples_alone_agree(case: MultiHeadCall, together: Array) -> None:
    """Demand that every sample alone gives what it gives in a batch with others."""
    for number in range(len(together)):
        own = case.sample(number)
        agree_up_to_rounding(
            own.probe,
            *own.inputs,
            actual=own.output(),
            expected=together[number : number + 1],
            what=f"output of sample {number} alone",
        )
