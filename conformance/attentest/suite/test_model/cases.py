"""Calls of the model, and assertions of its chapter about them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, distance, error_bound
from attentest.testing import invariants
from attentest.testing.assertions import finite, holds, same_shape
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import SizesInUse
from attentest_spec import Sizes
from attentest_spec.parameters import draw as draw_parameters
from attentest_spec.parameters import tied
from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class ModelCall:
    """One call of the model: the part, the source and the target."""

    probe: Probe
    source: Array
    target: Array

    @property
    def inputs(self) -> tuple[Array, Array]:
        """The inputs in the order of the call."""
        return self.source, self.target

    @property
    def sizes(self) -> Sizes:
        """The sizes that the model was built at."""
        return self.probe.sizes

    @property
    def real(self) -> Array:
        """The steps (B, T) that are no padding: the others are unspecified."""
        return np.asarray(self.target != self.sizes.target_pad)

    def output(self) -> Array:
        """Call the model; see :func:`call_model`."""
        return call_model(self.probe, self.source, self.target)

    def but(self, **changes: Any) -> "ModelCall":
        """Return the call with another source, target or part."""
        return replace(self, **changes)


def draw_call(
    subject: Subject,
    draw: Draw,
    *,
    batch: int = 0,
    lengths: tuple[int, int] | None = None,
    loaded: bool = True,
    precision: str = "",
    **fixed: Any,
) -> ModelCall:
    """Draw a model, of one layer by default, and a call of it with ragged padding."""
    sizes = model_sizes(subject, draw, **fixed)
    parameters = draw.parameters("model", sizes, precision=precision) if loaded else None
    samples = batch or draw.batch()
    lengths = lengths or (draw.length(2), draw.length(2))
    return ModelCall(
        subject.part("model", sizes, parameters=parameters, precision=precision),
        draw.source(samples, lengths[0], sizes),
        draw.target(samples, lengths[1], sizes),
    )


def draw_call_in_use(
    subject: Subject, draw: Draw, size: SizesInUse, *, target: int = 4
) -> ModelCall:
    """Draw a model at sizes as in use, and a call of it with `target` steps at most."""
    sizes = size.sizes(subject)
    probe = subject.part("model", sizes, parameters=draw.parameters("model", sizes))
    return ModelCall(
        probe,
        draw.source(size.batch, size.length, sizes),
        draw.target(size.batch, min(target, size.length), sizes),
    )


_NEVER_DROPPED = (32, 40)
"""Widths of heads at which dropout leaves some number of every row."""


def model_sizes(subject: Subject, draw: Draw, **fixed: Any) -> Sizes:
    """Draw the sizes of a model: small, and wide enough that a norm keeps rows distinct.

    A norm without an epsilon has no value for a row that is dropped as a whole: where numbers are
    dropped, rows are too wide for that.
    """
    longest = subject.limits.length or 8
    narrow = not (fixed.get("dropout") and subject.choices.norm_epsilon == 0)
    widths = (3, 4) if narrow else _NEVER_DROPPED
    chosen = {"layers": 1, "head_width": draw.choose(widths), "max_length": min(longest, 8)}
    return draw.sizes(**{**chosen, **fixed})


def call_model(probe: Probe, source: Array, target: Array) -> Array:
    """Call the model, and demand an output of the right shape that varies over the vocabulary."""
    output = probe.output(source, target)
    same_shape(output, (*target.shape, probe.sizes.target_vocabulary))
    real = as_floats(output[target != probe.sizes.target_pad])
    finite(real)
    spread = float(np.ptp(real, axis=-1).max())
    holds(spread > 0, "The output is the same for every token of the vocabulary.", actual=output)
    return output


def agree(
    case: ModelCall, actual: Array, expected: Array, *, what: str, rows: Array | None = None
) -> None:
    """Demand that two answers of the backend, one of them to `case`, agree up to rounding."""
    invariants.agree_up_to_rounding(
        case.probe, *case.inputs, actual=actual, expected=expected, what=what, rows=rows
    )


def output_changes(
    before: ModelCall, after: ModelCall, first: Array, second: Array, rows: Array, why: str
) -> None:
    """Demand that the answers to two calls differ in `rows`, where rounding cannot hide it."""
    one, other = (as_floats(case.probe.expected(*case.inputs).output) for case in (before, after))
    noise = error_bound(before.probe, before.inputs, one)
    if distance(one[rows], other[rows]) > 100 * noise:
        holds(distance(first[rows], second[rows]) > noise, f"The output is the same {why}.")


def exchange_tokens(draw: Draw, tokens: Array, vocabulary: int, pad: int) -> Array:
    """Return other real tokens for `tokens`, with padding left in place."""
    others = [
        draw.rng.choice([one for one in range(vocabulary) if one not in (token, pad)])
        for token in tokens.flat
    ]
    return np.where(tokens == pad, pad, np.reshape(others, tokens.shape))


def require_hiding(subject: Subject) -> None:
    """End as absent where scores can reach the declared mask fill."""
    fill = subject.choices.mask_fill
    if fill != "exact" and float(fill) > -1e3:
        raise Absent(f"{subject.name} declares a mask fill of {fill}, and scores can reach it")


def require_dropout(subject: Subject) -> None:
    """End as absent where there is no dropout."""
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")


def draw_untied_parameters(case: ModelCall, draw: Draw) -> dict[str, Floats]:
    """Draw parameters that differ under every name, whether declared as tied or not."""
    free = case.probe.subject.choices.but(tying="none", norm_sharing="separate")
    values = draw_parameters("model", case.sizes, free, draw.rng)
    return {name: cast(one, case.probe.precision) for name, one in values.items()}


def real_token(pad: int) -> int:
    """Return a token that is not padding."""
    return 1 if pad == 0 else 0


def inventory(probe: Probe) -> Mapping[str, Mapping[str, Any]]:
    """Return the inventory of the part."""
    return probe.do("listing what it holds", lambda part: part.inventory())


def first_names(names: list[str]) -> str:
    """Return the first four of `names` as text."""
    return ", ".join(names[:4]) + (", .." if len(names) > 4 else "")


def without_pads(draw: Draw, case: ModelCall) -> tuple[Array, Array]:
    """Draw tokens without padding."""
    source, target = trained_ids(case)
    return draw.rng.choice(source, case.source.shape), draw.rng.choice(target, case.target.shape)


def with_every_id(draw: Draw, case: ModelCall) -> tuple[Array, Array]:
    """Draw tokens without padding in which every other id of both sides occurs."""
    sides = list(zip(trained_ids(case), (case.source, case.target), strict=True))
    batch = max(ceil(len(ids) / tokens.shape[1]) for ids, tokens in sides)
    source, target = (
        np.resize(draw.rng.permutation(ids), (batch, tokens.shape[1])) for ids, tokens in sides
    )
    return source, target


def trained_ids(case: ModelCall) -> tuple[list[int], list[int]]:
    """Return the ids of the source and of the target whose rows must get a gradient.

    Where the row of a pad id gets none, it may be the row of one table for both sides.
    """
    sizes, limits = case.sizes, case.probe.subject.limits
    source, target = ({one, *limits.untrained} for one in (sizes.source_pad, sizes.target_pad))
    if not limits.trained_pad:
        source = target = source | target
    return (
        [one for one in range(sizes.source_vocabulary) if one not in source],
        [one for one in range(sizes.target_vocabulary) if one not in target],
    )


def steepen(case: ModelCall, factor: float) -> None:
    """Multiply the generator's bias, so that most tokens become as good as impossible.

    Where it has none its weight is multiplied, and what that is tied to.
    """
    parameters = dict(case.probe.parameters)
    twins = tied("model", case.sizes, case.probe.subject.choices)
    moved = "generator.bias" if "generator.bias" in parameters else "generator.weight"
    for name, values in parameters.items():
        if twins.get(name, name) == twins.get(moved, moved):
            parameters[name] = cast(values * factor, case.probe.precision)
    case.probe.load(parameters)


def export_parameters(probe: Probe) -> dict[str, Array]:
    """Return the parameters that the part holds, by canonical names."""
    return probe.do("exporting its parameters", lambda part: part.export())
