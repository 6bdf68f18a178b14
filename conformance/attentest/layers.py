"""Layers and stacks: calls of them on embedded sequences, and the laws that all of them keep.

One kind of call serves encoder and decoder, layer and stack; a decoder's has a memory too.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attentest.cases import HALVES
from attentest.compare import as_floats, equal, error_bound, fits, holds, matches, same_shape
from attentest.draw import Draw
from attentest.gradients import gradient_to
from attentest.laws import alike, prepared
from attentest.outcome import Absent, BackendError
from attentest.subject import Probe, Subject
from attentest_spec import CHOICES, Setting
from attentest_spec.contract import Input
from attentest_spec.layer_norm import layer_norm
from attentest_spec.parameters import count, tied
from attentest_spec.setting import Array, Floats

ALMOST_ALL = 1.0 - 2.0**-13
"""A dropout rate that leaves nothing: a row of 12 columns keeps a number once in 700 times."""

WIDE = (3, 4)
"""Head widths from which a norm has a slope: at width 2 it is a sign."""


@dataclass(frozen=True)
class Case:
    """One call: the part, the embedded x with its mask, and a decoder's memory with its own."""

    probe: Probe
    x: Floats
    mask: Array | None
    memory: Floats | None = None
    source_mask: Array | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs in the order of the call."""
        if self.memory is None:
            return self.x, self.mask
        return self.x, self.memory, self.source_mask, self.mask

    @property
    def read(self) -> Floats:
        """The memory of a decoder."""
        if self.memory is None:
            raise TypeError(f"An {self.probe.component} reads no memory.")
        return self.memory

    @property
    def keep(self) -> Array:
        """The mask as (B, L, L): which position may be attended to from which, by any head."""
        batch, length, _ = self.x.shape
        return _any_head(self.mask, (batch, self.probe.sizes.heads, length, length))

    @property
    def source_keep(self) -> Array:
        """The source mask as (B, T, S), by any head."""
        shape = (len(self.x), self.probe.sizes.heads, self.x.shape[1], self.read.shape[1])
        return _any_head(self.source_mask, shape)

    @property
    def rows(self) -> Array:
        """The positions (B, L) that are not hidden from all: the others are nobody's affair."""
        seen: Array = np.asarray(self.keep.any(axis=1))
        return seen

    def output(self) -> Array:
        """Return what the backend computes; demand its shape."""
        found = self.probe.output(*self.inputs)
        same_shape(found, self.x.shape)
        return found

    def seen(self) -> "Case":
        """Return the call with a mask that hides no position from all, so that all rows count."""
        if self.rows.all():
            return self
        batch, length, _ = self.x.shape
        return self.but(mask=everything(self.probe.subject, batch, length, length))

    def but(self, **changes: Array | Probe | None) -> "Case":
        """Return the same call with something else in it."""
        return replace(self, **changes)  # type: ignore[arg-type]  # the names are those of fields


def _any_head(mask: Array | None, shape: tuple[int, ...]) -> Array:
    whole = np.broadcast_to(np.ones((), dtype=bool) if mask is None else mask, shape)
    kept: Array = np.asarray(whole.any(axis=1))
    return kept


def drawn(
    subject: Subject,
    draw: Draw,
    component: str,
    *,
    mapped: bool = True,
    kinds: Sequence[str] = (),
    source_kinds: Sequence[str] = ("padding", "none"),
    hiding: bool = False,
    batch: int = 0,
    lengths: tuple[int, int] | None = None,
    shortest: int = 1,
    widths: Sequence[int] = WIDE,
    scale: float = 1.0,
    layers: int = 0,
    dropout: float = 0.0,
    precision: str = "",
) -> Case:
    """Draw a call of `component`.

    `mapped` demands a parameter map, without it a bare callable will do. `kinds` and
    `source_kinds` are of masks ("target" is a causal one with padding), `hiding` leaves out no mask
    at all. `lengths` fixes those of x and of the memory, otherwise they are `shortest` or more.
    """
    least = max(shortest, 2) if hiding else shortest
    length, reach = lengths or (draw.length(least), draw.length(least))
    samples = batch or draw.batch()
    sizes = draw.sizes(head_width=draw.choose(widths), layers=layers or deep(draw), dropout=dropout)
    if mapped:
        given = draw.parameters(component, sizes, precision=precision)
        probe = subject.part(component, sizes, parameters=given, precision=precision)
    else:
        probe = prepared(subject, draw, component, sizes, precision=precision)
    shape = (samples, length, sizes.d_model)
    x = draw.floats(*shape, scale=scale, precision=precision)
    mask = _mask(draw, kinds, samples, sizes.heads, length, length, hiding)
    if not component.startswith("decoder"):
        return Case(probe, x, mask)
    memory = draw.floats(samples, reach, sizes.d_model, precision=precision)
    source_mask = _mask(draw, source_kinds, samples, sizes.heads, length, reach, hiding)
    return Case(probe, x, mask, memory, source_mask)


def deep(draw: Draw) -> int:
    """Draw a number of layers: two or three, or as many as the backend has."""
    most = draw.subject.limits.layers or 3
    return draw.integer(min(2, most), min(3, most))


def _mask(
    draw: Draw,
    kinds: Sequence[str],
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    hiding: bool,
) -> Array | None:
    if "target" in kinds:
        kinds = [kind if kind != "target" else "per-sample" for kind in kinds]
        kind = draw.mask_kind(hiding=hiding, kinds=kinds)
        if kind == "per-sample":
            return target_mask(draw, batch, queries)
    else:
        kind = draw.mask_kind(hiding=hiding, kinds=kinds)
    return draw.mask(kind, batch, heads, queries, keys)


def target_mask(draw: Draw, batch: int, length: int) -> Array:
    """Draw the mask (B, 1, T, T) of targets that start with a real token: causal, pads hidden."""
    real = draw.rng.random((batch, 1, 1, length)) < 0.6
    real[..., 0] = True
    if length > 1:
        real[0, ..., draw.integer(1, length - 1)] = False
    return np.asarray(real & np.tril(np.ones((length, length), dtype=bool)))


# What the numbers are held to


def judged(case: Case, actual: Array | None = None, *, what: str = "output") -> Array:
    """Demand the oracle's answer at the positions that are not hidden, and return the backend's."""
    answer = case.output() if actual is None else actual
    matches(case.probe, *case.inputs, actual=answer, rows=case.rows, what=what)
    return answer


def agree(case: Case, actual: Array, expected: Array, *, what: str) -> None:
    """Demand that two answers to `case`, which a law makes equal, are so at visible positions."""
    alike(case.probe, *case.inputs, actual=actual, expected=expected, rows=case.rows, what=what)


def shows(case: Case, actual: Array, choice: str, without: Mapping[str, Floats]) -> None:
    """Demand that the numbers fit the declared option of `choice`, and no other one.

    `without` are the parameters that other options have and the declared one may lack.
    """
    probe = copy.copy(case.probe)
    probe.parameters = {**without, **probe.parameters}
    declared = probe.subject.choices
    fitting = [
        option.name
        for option in CHOICES[choice].options
        if fits(
            probe,
            *case.inputs,
            actual=actual,
            choices=declared.but(**{choice: option.name}),
            rows=case.rows,
        )
    ]
    if len(fitting) > 1 and probe.precision != "float64":
        raise Absent(f"{probe.precision} does not tell the options of {choice} apart")
    if not fitting:
        judged(case, actual)
    holds(
        fitting == [declared[choice]],
        f"{choice} is {declared[choice]}, and the numbers are those of {' and '.join(fitting)}.",
        actual=actual,
    )


# What a position can see


def changed(draw: Draw, x: Floats, where: Array | np.bool_, scale: float = 1.0) -> Floats:
    """Return x with other numbers at the positions (B, L) named by `where`."""
    other = draw.floats(*x.shape, scale=scale)
    return np.where(np.asarray(where)[..., None], other, x)


def poison(probe: Probe, draw: Draw) -> float:
    """Draw the size of what stands at hidden positions, such that nothing overflows there."""
    return draw.choose((1e3, 1.0, 30.0) if probe.precision in ("float64", "float32") else (4.0,))


def unmoved(before: Array, after: Array, rows: Array, *, what: str) -> None:
    """Demand the same output to the last bit at the positions (B, L) named by `rows`."""
    equal(after[rows], before[rows], what=f"output {what}")


def answers(draw: Draw, case: Case, before: Array) -> None:
    """Demand a real answer: where a position may attend to others, it heeds a change of them.

    Asked is the position of each sample that sees most, and one that heeds is enough: no constant
    output does, and no copy of the input. A position alone has nothing to heed. In float32 the
    weight of the others may be lost in rounding, so the position changes with them; in half
    precision a narrow norm may round all to the same, and no more than a varied output is asked.
    """
    if case.probe.precision in HALVES:
        holds(len(np.unique(as_floats(before)[case.rows])) > 1, "The output is one constant.")
        return
    itself = np.eye(case.x.shape[1], dtype=bool)
    others = np.where(case.rows[..., None], case.keep & ~itself, False)
    samples, asked = np.arange(len(case.x)), others.sum(axis=-1).argmax(axis=-1)
    where = others[samples, asked]
    if not where.any():
        return
    if case.probe.precision != "float64":
        where = where | itself[asked]
    after = as_floats(case.but(x=changed(draw, case.x, where, scale=2.0)).output())
    holds(
        (after != as_floats(before))[samples, asked][where.any(axis=-1)].any(),
        "What the positions that see most may attend to is changed, and their output stays as "
        f"it is (positions {asked.tolist()} of the samples).",
    )


def heeds_the_memory(
    draw: Draw, case: Case, row: int, *, steps: slice = slice(None), scale: float = 1.0
) -> None:
    """Demand that a change to `row` of the memory moves the output of every step that may read it.

    A step counts where the change exceeds the rounding of the format.
    """
    where = np.zeros(case.read.shape[:2], dtype=bool)
    where[:, row] = True
    other = case.but(memory=changed(draw, case.read, where, scale=scale))
    before, after = case.output(), other.output()
    asked = case.source_keep[..., row] & case.rows & _tells(case, other)
    deaf = asked & ~(as_floats(after) != as_floats(before)).any(axis=-1)
    holds(
        not deaf[:, steps].any(),
        f"Row {row} of the memory is changed, and the output of {int(deaf[:, steps].sum())} steps "
        "that may read it stays as it is.",
    )


def _tells(case: Case, other: Case) -> Array:
    """Say for every position (B, T) whether the oracle's answers differ by more than rounding."""
    first, second = (as_floats(one.probe.expected(*one.inputs)) for one in (case, other))
    bounds = [
        error_bound(one.probe, one.inputs, answer)
        for one, answer in ((case, first), (other, second))
    ]
    told: Array = np.asarray(np.abs(first - second).max(axis=-1) > sum(bounds))
    return told


def reach(draw: Draw, case: Case, row: int, number: int = 0) -> Array:
    """Return which positions (B, L) of the input `number` the output at `row` has a gradient to."""
    cotangent = np.zeros(case.x.shape)
    cotangent[:, row] = draw.floats(len(case.x), case.x.shape[-1])
    source = case.inputs[number]
    assert isinstance(source, np.ndarray)
    gradient = case.probe.vjp(case.inputs, cotangent)
    pulled = gradient_to(gradient, number, f"input number {number}", source.shape)
    reached: Array = np.asarray((pulled != 0.0).any(axis=-1))
    return reached


def permuted(mask: Array | None, order: Array) -> Array | None:
    """Return a self-attention mask for positions in another order."""
    if mask is None:
        return None
    keys = mask[..., order]
    return keys if mask.shape[-2] == 1 else keys[..., order, :]


def everything(subject: Subject, batch: int, queries: int, keys: int) -> Array:
    """Return a mask that hides nothing, of a kind that the backend supports."""
    shapes = {"padding": (batch, 1, 1, keys), "per-sample": (batch, 1, queries, keys)}
    for kind, shape in shapes.items():
        if kind in subject.limits.masks:
            return np.ones(shape, dtype=bool)
    raise Absent(f"{subject.name} supports none of the needed kinds of mask")


# Layers on top of each other


def own_their_parameters(draw: Draw, case: Case) -> None:
    """Demand that what is loaded into the layers of a stack, all at once, is found in each."""
    judged(case)
    again = draw.parameters(case.probe.component, case.probe.sizes, precision=case.probe.precision)
    for given in (case.probe.parameters, again):
        case.probe.load(given)
        held = case.probe.do("exporting the parameters", lambda part: part.export())
        for name, values in given.items():
            equal(held[name], values, what=f"parameter {name} after loading")
    judged(case, what="output after loading other parameters")


def composed(case: Case) -> Array:
    """Return what the layers of a stack give one after the other, by themselves.

    The backend's own layers are taken where it provides them alone, the oracle's otherwise.
    """
    subject, component = case.probe.subject, f"{case.probe.component}_layer"
    if not subject.provides(component):
        return as_floats(case.probe.expected(*case.inputs))
    given = Setting(case.probe.sizes, subject.choices, case.probe.parameters)
    x = case.x
    for number in range(case.probe.sizes.layers):
        own = given.under(f"layers.{number}").parameters
        layer = subject.part(
            component, case.probe.sizes, parameters=own, precision=case.probe.precision
        )
        x = as_floats(case.but(probe=layer, x=x).output())
    return layer_norm(given.under("norm"), x) if subject.choices.final_norm == "present" else x


def depth_counts(subject: Subject, draw: Draw, component: str) -> None:
    """Demand that one more layer adds the parameters of one layer, and that there are any."""
    shallow = draw.layers(2) - 1
    sizes = draw.sizes(layers=shallow)
    held = [_trained(subject, component, sizes.but(layers=shallow + more)) for more in (0, 1)]
    wanted = [
        count(component, sizes.but(layers=shallow + more), subject.choices) for more in (0, 1)
    ]
    holds(
        held[1] - held[0] == wanted[1] - wanted[0],
        f"Layer {shallow + 1} adds {held[1] - held[0]} trained numbers to {held[0]}; "
        f"a layer has {wanted[1] - wanted[0]}.",
    )


def _trained(subject: Subject, component: str, sizes: Any) -> int:
    probe = subject.part(component, sizes)
    listed = probe.do("taking inventory", lambda part: part.inventory())["parameters"]
    return sum(int(np.prod(facts["shape"])) for facts in listed.values())


def one_norm(case: Case) -> None:
    """Demand that a layer whose norms are declared shared holds one: loaded apart, they are equal.

    A backend may refuse to load what contradicts itself.
    """
    twins = tied(case.probe.component, case.probe.sizes, case.probe.subject.choices)
    kept = case.probe.parameters
    apart = {name: values + (1.0 if name in twins else 0.0) for name, values in kept.items()}
    try:
        case.probe.load(apart)
    except BackendError as refusal:
        if not isinstance(refusal.cause, ValueError):
            raise
    held = case.probe.do("exporting the parameters", lambda part: part.export())
    for name, twin in twins.items():
        equal(held[name], held[twin], what=f"{name}, declared one with {twin}, after loading")
    case.probe.load(kept)


# Modes


def steady(case: Case) -> None:
    """Demand the same output to the last bit at every call in evaluation mode, trained or not."""
    first = case.output().copy()
    equal(case.output(), first, what="output of the second call")
    case.probe.train()
    case.output()
    case.probe.eval()
    equal(case.output(), first, what="output in evaluation after training")


def drops_all_branches(case: Case, last: Sequence[str]) -> None:
    """Demand that in training, at a rate of almost 1, the identity paths are left.

    `last` names the last linear maps of the sublayers; with zeros in them the oracle computes
    the identity paths. Evaluation has to give the whole formula all the same.
    """
    judged(case, what="output in evaluation")
    bare = copy.copy(case.probe)
    bare.parameters = without(bare.parameters, last)
    wanted = as_floats(bare.expected(*case.inputs))
    bound = error_bound(bare, case.inputs, wanted)
    case.probe.train()
    found = as_floats(case.output())
    case.probe.eval()
    left = (np.abs(found - wanted).max(axis=-1) <= bound)[case.rows]
    holds(
        2 * int(left.sum()) >= left.size,
        f"At a dropout rate of {case.probe.sizes.dropout:.5f}, {int(left.sum())} of {left.size} "
        "positions are left with their identity paths.",
        actual=found,
        expected=wanted,
    )


def without(parameters: Mapping[str, Floats], maps: Sequence[str]) -> dict[str, Floats]:
    """Return the parameters with zeros in the linear maps named by `maps`, weights and biases."""
    starts = tuple(f"{name}." for name in maps)
    return {
        name: np.zeros_like(values) if name.startswith(starts) else values
        for name, values in parameters.items()
    }
