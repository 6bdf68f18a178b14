"""Calls of layers and stacks on embedded sequences, and assertions about their numbers.

One kind of call serves encoder and decoder, layer and stack; a decoder's has a memory too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import matches, same_shape
from attentest.testing.common import fits_one_option
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding, build_with_parameters
from attentest.testing.sizes_in_use import SizesInUse
from attentest_spec.contract import Input
from attentest_spec.setting import Array, Floats

WIDE = (3, 4)
"""Head widths from which a norm has a slope: at width 2 it returns signs."""


@dataclass(frozen=True)
class LayerCall:
    """One call: the part, the embedded x with its mask, and a decoder's memory with its own.

    x is (B, L, D) and its mask broadcastable to (B, H, L, L); the memory is (B, S, D) and its mask
    broadcastable to (B, H, L, S).
    """

    probe: Probe
    x: Annotated[Floats, "B L D"]
    mask: Annotated[Array, "#B #H #L L"] | None
    memory: Annotated[Floats, "B S D"] | None = None
    source_mask: Annotated[Array, "#B #H #L S"] | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs in the order of the call."""
        if self.memory is None:
            return self.x, self.mask
        return self.x, self.memory, self.source_mask, self.mask

    @property
    def decoder_memory(self) -> Annotated[Floats, "B S D"]:
        """The memory (B, S, D) of a decoder."""
        if self.memory is None:
            raise TypeError(f"An {self.probe.component} takes no memory.")
        return self.memory

    @property
    def keep(self) -> Annotated[Array, "B L L"]:
        """The mask as (B, L, L): which position may be attended to from which, by any head."""
        batch, length, _ = self.x.shape
        return _any_head(self.mask, (batch, self.probe.sizes.heads, length, length))

    @property
    def source_keep(self) -> Annotated[Array, "B T S"]:
        """The source mask as (B, T, S), by any head."""
        shape = (len(self.x), self.probe.sizes.heads, self.x.shape[1], self.decoder_memory.shape[1])
        return _any_head(self.source_mask, shape)

    @property
    def rows(self) -> Annotated[Array, "B L"]:
        """The positions (B, L) that are not hidden from all: the others are unspecified."""
        visible: Array = np.asarray(self.keep.any(axis=1))
        return visible

    def output(self) -> Annotated[Array, "B L D"]:
        """Return what the backend computes; demand the shape of x, (B, L, D)."""
        output = self.probe.output(*self.inputs)
        same_shape(output, self.x.shape)
        return output

    def with_all_visible(self) -> "LayerCall":
        """Return the call with a mask that hides no position from all, so that all rows count."""
        if self.rows.all():
            return self
        batch, length, _ = self.x.shape
        return self.but(mask=open_mask(self.probe.subject, batch, length, length))

    def but(self, **changes: Annotated[Array, "*shape"] | Probe | None) -> "LayerCall":
        """Return the same call with other inputs, whose shapes fit, or another part."""
        return replace(self, **changes)  # type: ignore[arg-type]  # the names are those of fields


def matches_reference_in_use(
    component: str, subject: Subject, draw: Draw, size: SizesInUse
) -> None:
    """Demand the answer of the reference to one call of `component` at sizes as in use."""
    sizes = size.sizes(subject)
    probe = subject.part(component, sizes, parameters=draw.parameters(component, sizes))
    shape, length = (size.batch, size.length, size.width), size.length

    def mask(role: str) -> Array | None:
        kinds = own_kinds(subject, ("padding", "per-sample", "none"), role)
        kind = draw.mask_kind(kinds=kinds, role=role)
        return draw.mask(kind, size.batch, size.heads, length, length)

    of_decoder = component.startswith("decoder")
    memory = (draw.floats(*shape), mask("source_mask")) if of_decoder else (None, None)
    matches_reference(LayerCall(probe, draw.floats(*shape), mask("mask"), *memory))


def own_kinds(subject: Subject, kinds: Sequence[str], role: str = "mask") -> Sequence[str]:
    """Return `kinds` of the mask `role`, or the causal one for a backend that takes no other."""
    return ("causal",) if set(subject.limits.masks_of(role)) == {"causal"} else kinds


def _any_head(mask: Array | None, shape: tuple[int, ...]) -> Array:
    whole = np.broadcast_to(np.ones((), dtype=bool) if mask is None else mask, shape)
    keep: Array = np.asarray(whole.any(axis=1))
    return keep


def draw_call(
    subject: Subject,
    draw: Draw,
    component: str,
    *,
    mapped: bool = True,
    kinds: Sequence[str] = (),
    source_kinds: Sequence[str] = ("padding", "none"),
    hiding: bool = False,
    batch: int = 0,
    heads: int = 0,
    lengths: tuple[int, int] | None = None,
    shortest: int = 1,
    widths: Sequence[int] = WIDE,
    scale: float = 1.0,
    layers: int = 0,
    dropout: float = 0.0,
    precision: str = "",
) -> LayerCall:
    """Draw a call of `component`.

    `mapped` demands a parameter map; otherwise a bare callable will do. `kinds` and
    `source_kinds` are of masks ("target" is a causal one with padding), `hiding` leaves out no mask
    at all. `lengths` fixes those of x and of the memory, otherwise they are `shortest` or more.
    """
    least = max(shortest, 2) if hiding else shortest
    length, reach = lengths or (draw.length(least), draw.length(least))
    samples = batch or draw.batch()
    depth, width = layers or draw_depth(draw), draw.choose(widths)
    sizes = draw.sizes(heads=heads, head_width=width, layers=depth, dropout=dropout)
    if mapped:
        given = draw.parameters(component, sizes, precision=precision)
        probe = subject.part(component, sizes, parameters=given, precision=precision)
    else:
        probe = build_with_parameters(subject, draw, component, sizes, precision=precision)
    shape = (samples, length, sizes.d_model)
    x = draw.floats(*shape, scale=scale, precision=precision)
    mask = _mask(draw, kinds, samples, sizes.heads, length, length, hiding, "mask")
    if not component.startswith("decoder"):
        return LayerCall(probe, x, mask)
    memory = draw.floats(samples, reach, sizes.d_model, precision=precision)
    source_mask = _mask(
        draw, source_kinds, samples, sizes.heads, length, reach, hiding, "source_mask"
    )
    return LayerCall(probe, x, mask, memory, source_mask)


def draw_depth(draw: Draw) -> int:
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
    role: str,
) -> Array | None:
    if "target" in kinds:
        kinds = [kind if kind != "target" else "per-sample" for kind in kinds]
        kind = draw.mask_kind(hiding=hiding, kinds=kinds, role=role)
        if kind == "per-sample":
            return target_mask(draw, batch, queries)
    else:
        kind = draw.mask_kind(hiding=hiding, kinds=kinds, role=role)
    return draw.mask(kind, batch, heads, queries, keys)


def target_mask(
    draw: Draw, batch: int, length: int
) -> Annotated[Array, "{batch} 1 {length} {length}"]:
    """Draw a causal mask (B, 1, T, T) that hides padding too, but never the first token.

    Some padding is in the first sample alone.
    """
    real = draw.rng.random((batch, 1, 1, length)) < 0.6
    real[..., 0] = True
    if length > 1:
        padding = draw.integer(1, length - 1)
        real[..., padding] = True
        real[0, ..., padding] = False
    return np.asarray(real & np.tril(np.ones((length, length), dtype=bool)))


def matches_reference(
    case: LayerCall, actual: Annotated[Array, "B L D"] | None = None, *, what: str = "output"
) -> Annotated[Array, "B L D"]:
    """Demand the answer (B, L, D) of the reference at visible positions; return the backend's."""
    answer = case.output() if actual is None else actual
    matches(case.probe, *case.inputs, actual=answer, rows=case.rows, what=what)
    return answer


def rows_agree(
    case: LayerCall,
    actual: Annotated[Array, "B L D"],
    expected: Annotated[Array, "B L D"],
    *,
    what: str,
) -> None:
    """Demand that two answers (B, L, D) to `case`, equal by a law, agree at visible positions."""
    agree_up_to_rounding(
        case.probe, *case.inputs, actual=actual, expected=expected, rows=case.rows, what=what
    )


def shows_one_option(
    case: LayerCall, actual: Annotated[Array, "B L D"], choice: str, without: Mapping[str, Floats]
) -> None:
    """Demand that the output (B, L, D) fits the declared `choice`; see :func:`fits_one_option`."""
    fits_one_option(
        case.probe, *case.inputs, actual=actual, choice=choice, without=without, rows=case.rows
    )


def permute_mask(
    mask: Annotated[Array, "#B #H #L L"] | None, order: Annotated[Array, "L"]
) -> Annotated[Array, "#B #H #L L"] | None:
    """Return a self-attention mask, broadcastable to (B, H, L, L), for another order (L,)."""
    if mask is None:
        return None
    keys = mask[..., order]
    return keys if mask.shape[-2] == 1 else keys[..., order, :]


def open_mask(
    subject: Subject, batch: int, queries: int, keys: int, role: str = "mask"
) -> Annotated[Array, "{batch} 1 #{queries} {keys}"]:
    """Return a mask (B, 1, Q, K) or (B, 1, 1, K), as the backend supports, that hides nothing."""
    shapes = {"padding": (batch, 1, 1, keys), "per-sample": (batch, 1, queries, keys)}
    for kind, shape in shapes.items():
        if kind in subject.limits.masks_of(role):
            return np.ones(shape, dtype=bool)
    raise Absent(f"{subject.name} supports none of the needed kinds of mask")


def zero_maps(parameters: Mapping[str, Floats], maps: Sequence[str]) -> dict[str, Floats]:
    """Return the parameters, in canonical shapes, with zeros in the linear maps named by `maps`."""
    starts = tuple(f"{name}." for name in maps)
    return {
        name: np.zeros_like(values) if name.startswith(starts) else values
        for name, values in parameters.items()
    }
