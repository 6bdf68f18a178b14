"""Calls of decoder-only models and of their blocks, and assertions of their chapter about them."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, distance, error_bound, fits
from attentest.testing import invariants
from attentest.testing.assertions import finite, holds, matches, same_shape
from attentest.testing.draw import Draw
from attentest_spec import CHOICES, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.contract import POSITION_KINDS, Input
from attentest_spec.parameters import shapes
from attentest_spec.rotary import turned_width
from attentest_spec.setting import Array, Floats

COMPONENT = "language_model"
LONGEST = 24
"""The number of positions that models are built for by default."""

WIDTHS = (4, 8, 6, 16)
"""The widths of heads that are drawn where queries and keys are turned."""

GROUPS = ((4, 2), (6, 2), (4, 1), (8, 2), (6, 3))
"""Numbers of heads of queries, and of keys and values: mostly fewer than half."""


@dataclass(frozen=True)
class Text:
    """One call: the part, tokens (B, T), a mask of real tokens and positions, or none."""

    probe: Probe
    tokens: Array
    mask: Array | None = None
    positions: Array | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs in the order of the call."""
        return self.tokens, self.mask, self.positions

    @property
    def choices(self) -> Choices:
        """The choices that are judged by."""
        return self.probe.subject.choices

    @property
    def vocabulary(self) -> int:
        """The number of tokens that there are."""
        return self.probe.sizes.target_vocabulary

    @property
    def real(self) -> Array:
        """The tokens (B, T) that are no padding: the others are unspecified."""
        return np.ones(self.tokens.shape, dtype=bool) if self.mask is None else self.mask

    def output(self) -> Array:
        """Return what the backend computes, (B, T, V), which varies over the vocabulary."""
        output = self.probe.output(*self.inputs)
        same_shape(output, (*self.tokens.shape, self.vocabulary))
        real = as_floats(output[self.real])
        finite(real)
        spread = float(np.ptp(real, axis=-1).max())
        holds(spread > 0, "The output is the same for all of the vocabulary.", actual=output)
        return output

    def is_finite(self) -> bool:
        """Say whether the backend computes numbers for all tokens that are no padding."""
        output = as_floats(self.probe.output(*self.inputs))
        return output.shape[:2] != self.real.shape or bool(np.isfinite(output[self.real]).all())

    def expected(self) -> Floats:
        """Return what the reference computes, (B, T, V)."""
        return as_floats(self.probe.expected(*self.inputs).output)

    def but(self, **changes: Any) -> Self:
        """Return the call with other tokens, mask, positions or part."""
        return replace(self, **changes)


def model_sizes(subject: Subject, draw: Draw, **fixed: Any) -> Sizes:
    """Draw the sizes of a model, of one or two blocks unless fixed."""
    chosen: dict[str, Any] = {"max_length": min(LONGEST, subject.limits.length or LONGEST)}
    if subject.choices.attention_rotary != "none":
        chosen["head_width"] = draw.choose(served_widths(subject.choices)[:2])
    else:
        chosen["head_width"] = draw.choose((4, 3))
    if subject.choices.key_heads == "fewer":
        most = subject.limits.heads or 8
        pairs = [pair for pair in GROUPS if pair[0] <= most] or [(most, most)]
        if subject.limits.one_key_head:
            pairs = [(pair[0], 1) for pair in pairs]
        chosen["heads"], chosen["kv_heads"] = draw.choose(pairs)
    if subject.choices.attention_window != "none":
        chosen["window"] = draw.choose((2, 3, 4))
    if subject.choices.rotary_scaling != "none":
        chosen |= {"trained_length": draw.choose((4, 8)), "rotary_factor": 4.0}
    return draw.sizes(**{**chosen, **fixed})


def with_shared_heads(subject: Subject, sizes: Sizes) -> Sizes:
    """Return the sizes with half as many heads of keys, where these are fewer."""
    if subject.choices.key_heads != "fewer" or subject.limits.one_key_head:
        return subject.limits.fitted(sizes)
    return sizes.but(kv_heads=sizes.heads // 2 if sizes.heads % 2 == 0 else sizes.heads)


def served_widths(choices: Choices) -> list[int]:
    """Return the widths of heads of which two pairs or more are turned, and no half of one."""
    part = 1.0 if choices.rotary_width == "whole" else float(choices.rotary_width)
    exact = [
        width
        for width in WIDTHS
        if turned_width(choices, width) >= min(4, width)
        and abs(part * width - turned_width(choices, width)) < 1e-6
    ]
    return exact or [16, 32]


def of_trained_tokens(case: Text) -> Text:
    """Return the call with another token in the place of the pad id, if that is not trained."""
    pad = case.probe.subject.limits.pad
    if case.probe.subject.limits.trained_pad or pad is None:
        return case
    other = (pad + 1) % case.vocabulary
    return case.but(tokens=np.where(case.tokens == pad, other, case.tokens))


def draw_text(
    subject: Subject,
    draw: Draw,
    *,
    batch: int = 0,
    length: int = 0,
    side: str = "",
    kinds: Sequence[str] = ("none",),
    precision: str = "",
    loaded: bool = True,
    **fixed: Any,
) -> Text:
    """Draw a model, and a call of it; `side` is that of the padding, none by default.

    Positions are of one of the `kinds` that the backend supports. The number of sequences is not
    that of the heads.
    """
    kind = draw.choose(supported_kinds(subject, kinds))
    if side:
        require_mask(subject, side)
    sizes = model_sizes(subject, draw, **fixed)
    parameters = draw.parameters(COMPONENT, sizes, precision=precision) if loaded else None
    probe = subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)
    sequences = batch or draw.choose([one for one in (3, 2, 5) if one != sizes.heads])
    count = length or draw.length(3, 7)
    tokens = draw.rng.integers(0, sizes.target_vocabulary, size=(sequences, count))
    mask = padding(draw, sequences, count, side) if side else None
    return Text(probe, tokens, mask, draw_positions(draw, kind, sequences, count, sizes.max_length))


def supported_kinds(subject: Subject, kinds: Sequence[str]) -> list[str]:
    """Return those of the `kinds` of positions that the backend takes; absent where it has none."""
    found = [one for one in kinds if one in subject.limits.positions]
    if not found:
        raise Absent(f"{subject.name} takes no positions of the kind {' or '.join(kinds)}")
    return found


def given_kinds(subject: Subject) -> list[str]:
    """Return the kinds of positions that can be given, the most general first."""
    return supported_kinds(subject, POSITION_KINDS[:0:-1])


def sides(subject: Subject) -> tuple[str, ...]:
    """Return the sides of a text that padding may be on."""
    return ("right",) if "target" in subject.limits.right_padded else ("left", "right")


def require_mask(subject: Subject, side: str = "right") -> None:
    """End as absent where padding on that side cannot be hidden."""
    if "padding" not in subject.limits.masks:
        raise Absent(f"{subject.name} takes no mask of padding")
    if side not in sides(subject):
        raise Absent(f"{subject.name} takes no padding before tokens")


def padding(draw: Draw, batch: int, length: int, side: str) -> Annotated[Array, "B T"]:
    """Draw a mask (B, T) with padding on the `side`, "left" or "right".

    One sequence has none, and the last one has some; of three or more it has a single token.
    """
    real = draw.rng.integers(1, length + 1, size=batch)
    real[0], real[-1] = length, 1 if batch > 2 else draw.integer(1, length - 1)
    columns = np.arange(length)[None, :]
    kept: Array = columns >= length - real[:, None] if side == "left" else columns < real[:, None]
    return kept


def draw_positions(
    draw: Draw, kind: str, batch: int, length: int, most: int
) -> Annotated[Array, "B T"] | None:
    """Draw positions (B, T) of one kind, all below `most`; a sequence may begin again inside."""
    if kind == "none":
        return None
    starts = draw.rng.integers(0, most - length + 1, size=batch)
    if kind in ("offset", "shared"):
        starts[:] = starts[0]
    found = starts[:, None] + np.arange(length)
    if kind == "per-sample" and length > 2 and draw.choose((True, False)):
        cut = draw.integer(1, length - 1)
        found[-1] = np.concatenate([np.arange(cut), np.arange(length - cut)])
    if kind == "shared":
        found[:] = np.sort(draw.rng.permutation(most)[:length])
    return np.ascontiguousarray(found.astype(np.int64))


def from_first_token(mask: Annotated[Array, "B T"]) -> Annotated[Array, "B T"]:
    """Return positions (B, T) that are 0 at the first real token, and before it."""
    counted: Array = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    return counted


def matches_text(case: Text, actual: Array | None = None, what: str = "output") -> Array:
    """Demand the answer of the reference at all real tokens, and return that of the backend."""
    found = case.output() if actual is None else actual
    matches(case.probe, *case.inputs, actual=found, rows=case.real, what=what)
    return found


def agree(
    case: Text, actual: Array, expected: Array, *, what: str, rows: Array | None = None
) -> None:
    """Demand that two answers of the backend, one of them to `case`, agree up to rounding."""
    invariants.agree_up_to_rounding(
        case.probe, *case.inputs, actual=actual, expected=expected, what=what, rows=rows
    )


def output_changes(
    before: Text, after: Text, first: Array, second: Array, rows: Array, why: str
) -> None:
    """Demand that the answers to two calls differ in `rows`, where rounding cannot hide it."""
    one, other = before.expected(), after.expected()
    noise = error_bound(before.probe, before.inputs, one)
    if distance(one[rows], other[rows]) > 100 * noise:
        holds(distance(first[rows], second[rows]) > noise, f"The output is the same {why}.")


def exchange_tokens(draw: Draw, tokens: Array, vocabulary: int) -> Array:
    """Return other tokens for all of `tokens`."""
    moved: Array = (tokens + draw.rng.integers(1, vocabulary, size=tokens.shape)) % vocabulary
    return moved


def shows_declared(case: Text, choice: str, others: Sequence[Value] = ()) -> None:
    """Demand the numbers of the declared option of `choice`, and of none of the `others`.

    All options by default. Absent where the numbers are the same under all of them.
    """
    declared = case.choices
    names = others or [option.name for option in CHOICES[choice].options]
    tried = [declared.but(**{choice: one}) for one in names if one != declared[choice]]
    full = with_all_parameters(case.probe, tried)
    actual = case.output()
    differing = [
        one
        for one in tried
        if not fits(full, *case.inputs, actual=case.expected(), choices=one, rows=case.real)
    ]
    if not fits(full, *case.inputs, actual=actual, choices=declared, rows=case.real):
        for one in differing:
            holds(
                not fits(full, *case.inputs, actual=actual, choices=one, rows=case.real),
                f"{choice} is declared as {declared[choice]}; the numbers show {one[choice]}.",
                actual=actual,
            )
    matches_text(case, actual)
    if not differing:
        raise Absent(f"{choice}: the numbers show no other option")


def with_all_parameters(probe: Probe, tried: Sequence[Choices]) -> Probe:
    """Return the probe with parameters for all choices that are tried.

    What the declared ones lack is a norm: the numbers of its attention's norm are taken.
    """
    full = copy(probe)
    full.parameters = dict(probe.parameters)
    for choices in tried:
        for name, shape in shapes(COMPONENT, probe.sizes, choices).items():
            full.parameters.setdefault(name, _stand_in(probe.parameters, name, shape))
    return full


def _stand_in(parameters: Mapping[str, Floats], name: str, shape: tuple[int, ...]) -> Floats:
    """Return the numbers of the first norm of the block for another, 1 or 0 where it has none."""
    path, _, leaf = name.rpartition(".")
    block, _, _ = path.rpartition(".")
    neutral = np.full(shape, float(leaf == "gain"))
    return parameters.get(f"{block}.self_attention_norm.{leaf}", neutral)


def exported(probe: Probe) -> dict[str, Array]:
    """Return the parameters that the part holds, by canonical names."""
    return probe.do("exporting its parameters", lambda part: part.export())


def with_parameter(case: Text, name: str, values: Floats) -> Text:
    """Return the call after another value of one parameter has been loaded."""
    parameters = {**case.probe.parameters, name: cast(values, case.probe.precision)}
    case.probe.load(parameters)
    return case.but(probe=copy(case.probe))
