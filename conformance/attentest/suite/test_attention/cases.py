"""Calls of attention, and assertions of its chapter about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from attentest.harness.arithmetic import arithmetic
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.testing.assertions import finite, holds, same_shape
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.attention import scores
from attentest_spec.setting import Array, Floats

OPEN_FIRST = ("none", "per-sample", "padding", "per-head", "causal")
"""All kinds of masks; every seed begins with the first that the backend takes."""

HIDING_FIRST = (*OPEN_FIRST[1:], OPEN_FIRST[0])
"""The same kinds, and those that hide something first."""


@dataclass(frozen=True)
class AttentionCall:
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

    @property
    def arithmetic(self) -> str:
        """The precision in which answers that are equal by a law agree."""
        return arithmetic(self.probe)

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


def draw_call(
    subject: Subject,
    draw: Draw,
    *,
    hiding: bool = False,
    kinds: Sequence[str] = (),
    scale: float = 0.0,
    lengths: tuple[int, int] | None = None,
    width: int = 0,
    samples: int = 0,
    heads: int = 0,
    precision: str = "",
    dropout: float = 0.0,
) -> AttentionCall:
    """Draw a call of attention; `hiding` demands a mask, `lengths` fixes queries and keys.

    Where it attends within one sequence, queries, keys and values have one shape.
    """
    kind = draw.mask_kind(hiding=hiding, kinds=kinds)
    batch, heads = samples or draw.batch(), heads or draw.heads()
    queries, keys = lengths or (draw.length(2 if hiding else 1), draw.length(2 if hiding else 1))
    if kind == "causal":
        queries = keys = max(queries, keys)
    width, out = width or draw.integer(2, 5), draw.integer(2, 5)
    if subject.limits.one_shape:
        queries, keys, out = max(queries, keys), max(queries, keys), width
    size = scale or draw.scale() ** 0.5
    sizes = Sizes(d_model=width * heads, heads=heads, dropout=dropout)
    return AttentionCall(
        subject.part("attention", sizes, precision=precision),
        draw.floats(batch, heads, queries, width, scale=size, precision=precision),
        draw.floats(batch, heads, keys, width, scale=size, precision=precision),
        draw.floats(batch, heads, keys, out, precision=precision),
        draw.mask(kind, batch, heads, queries, keys),
    )


def draw_calls(subject: Subject, draw: Draw) -> Iterator[AttentionCall]:
    """Draw a call of any sizes, and one in which several heads and queries share several keys.

    One key is hidden there, where masks can be. With a single key all weights are 1, whatever the
    scores are.
    """
    yield draw_call(subject, draw)
    few, known = min(3, subject.limits.length or 3), subject.limits.masks
    lengths = draw.length(min(2, few)), draw.length(few)
    kinds = [one for one in ("per-sample", "per-head", "padding", "none") if one in known][:1]
    case = draw_call(
        subject, draw, kinds=kinds, scale=1.0, lengths=lengths, samples=2, heads=draw.several()
    )
    hides = case.mask is not None and kinds
    yield replace(case, mask=draw.differing(np.ones_like(case.mask))) if hides else case


def depends_on_values(case: AttentionCall, output: Array) -> None:
    """Demand that `output` depends on the values: a constant would agree with itself."""
    finite(output)
    raised = case.output(case.query, case.key, case.value + 1.0, case.mask)
    holds(
        bool((as_floats(raised) > as_floats(output)).all()),
        "Values larger by 1 do not give larger outputs.",
        actual=raised,
        expected=as_floats(output) + 1.0,
    )


def steepness(case: AttentionCall) -> float:
    """Return how much a rounding of a score can change a weight: the size of the scores."""
    return 1.0 + largest(scores(case.query, case.key, case.probe.subject.choices))


def require_shapes(subject: Subject) -> None:
    """End as absent where queries, keys and values have one shape."""
    if subject.limits.one_shape:
        raise Absent(f"queries, keys and values of {subject.name} have one shape")


def require_large_scores(subject: Subject) -> None:
    """End as absent where a score of one million is rounded to thousands, or is no number."""
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish scores of one million")
