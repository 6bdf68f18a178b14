"""Checks of the chapter `masks`."""

from dataclasses import dataclass, replace

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check
from attentest.testing.assertions import equal, holds, same_shape
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, MANY, WORDS, SizesInUse, at_sizes_in_use
from attentest_spec import Sizes
from attentest_spec.setting import Array

TWINS = (
    (0, 256),
    (0, 2**16),
    (0, 2**32),
    (256, 257),
    (2048, 2049),
    (2**24, 2**24 + 1),
    (2**53, 2**53 + 1),
)
"""Pad ids, and ids that become the pad in bytes, in 16 or 32 bits, or in floating point."""


@dataclass(frozen=True)
class MaskCall:
    """One call of a mask of tokens: the part and its inputs."""

    probe: Probe
    tokens: Array
    pad: int

    @property
    def real(self) -> Array:
        """The positions (B, S) of tokens that are not padding."""
        real: Array = self.tokens != self.pad
        return real

    def mask(self) -> Array:
        """Return the mask of the backend, of the right shape."""
        mask = self.probe.output(self.tokens, self.pad)
        same_shape(mask, self.expected().shape, what="mask")
        return mask

    def expected(self) -> Array:
        """Return the mask of the reference."""
        mask: Array = self.probe.expected(self.tokens, self.pad).output
        return mask


def draw_sources(
    subject: Subject, draw: Draw, *, batch: int = 0, low: int = 2, length: int = 0
) -> MaskCall:
    """Draw sources with padding anywhere; each has a real token and padding."""
    sizes = draw.sizes(heads=draw.several(), layers=1, source_pad=draw.choose((3, 0, 1)))
    tokens = draw.source(batch or draw.batch(), length or draw.length(low, 7), sizes)
    return MaskCall(subject.part("padding_mask", sizes), tokens, sizes.source_pad)


def draw_targets(
    subject: Subject, draw: Draw, *, low: int = 3, length: int = 0, first: int = 1
) -> MaskCall:
    """Draw targets that start with a real token; one has padding from `first` on between others."""
    sizes = draw.sizes(heads=draw.several(), layers=1)
    tokens = draw.target(draw.batch(), length or draw.length(low, 7), sizes)
    real = sizes.target_pad + 1
    tokens[0, 1:] = np.where(tokens[0, 1:] == sizes.target_pad, real, tokens[0, 1:])
    last = tokens.shape[1] - 2
    tokens[0, draw.integer(min(first, last), last)] = sizes.target_pad
    return MaskCall(subject.part("target_mask", sizes), tokens, sizes.target_pad)


def draw_triangle(subject: Subject, draw: Draw, *, low: int = 2, high: int = 6) -> Array:
    """Draw a causal mask of two or more positions, and return its queries and keys (T, T)."""
    length = draw.length(low, high)
    mask = subject.part("causal_mask", Sizes()).output(length)
    same_shape(mask, (1, 1, length, length), what="mask")
    square: Array = mask[0, 0]
    return square


def keeps_and_hides(mask: Array) -> None:
    """Demand that `mask` keeps something and hides something."""
    kept = int((mask != 0).sum())
    holds(0 < kept < mask.size, f"The mask keeps {kept} of {mask.size} places.", actual=mask)


def is_boolean(mask: Array, shape: tuple[int, ...]) -> None:
    """Demand the shape and the type of a mask."""
    same_shape(mask, shape, what="mask")
    holds(mask.dtype == np.bool_, f"The mask is of type {mask.dtype}, not bool.", actual=mask)


def keeps(mask: Array, wanted: Array, which: str) -> None:
    """Demand that every place of `wanted` is kept."""
    lost = np.argwhere(wanted & (mask == 0))
    where = tuple(int(index) for index in lost[0]) if len(lost) else ()
    found = f"The mask hides {len(lost)} of {int(wanted.sum())} {which}, the first at {where}."
    holds(not len(lost), found, actual=mask)


def hides(mask: Array, unwanted: Array, which: str) -> None:
    """Demand that no place of `unwanted` is kept."""
    seen = np.argwhere(unwanted & (mask != 0))
    where = tuple(int(index) for index in seen[0]) if len(seen) else ()
    found = f"The mask keeps {len(seen)} of {int(unwanted.sum())} {which}, the first at {where}."
    holds(not len(seen), found, actual=mask)


def _padding_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = size.sizes(subject)
    tokens = draw.source(size.batch, size.length, sizes)
    _expected_twice(MaskCall(subject.part("padding_mask", sizes), tokens, sizes.source_pad))


def _expected_twice(case: MaskCall) -> None:
    """Demand the mask of the reference, and again for other padding in the same shape.

    The first token stays where it is: a target starts with a real one. Where padding is at the end
    alone, the samples change places.
    """
    moved = np.concatenate([case.tokens[:, :1], np.roll(case.tokens[:, 1:], 1, axis=1)], axis=1)
    if case.probe.subject.limits.right_padded:
        moved = np.roll(case.tokens, 1, axis=0)
    for tokens in (case.tokens, moved):
        now = replace(case, tokens=tokens)
        equal(now.mask(), now.expected(), what="mask")


@check(
    "masks.padding-keeps-exactly-real-tokens",
    examples=10,
    in_use=at_sizes_in_use(_padding_in_use, MANY, LONG, WORDS),
)
def test_padding_keeps_exactly_real_tokens(subject: Subject, draw: Draw) -> None:
    for batch, length in ((0, 0), (5, draw.long())):
        _expected_twice(draw_sources(subject, draw, batch=batch, length=length))


@check("masks.any-pad-id")
def test_any_pad_id(subject: Subject, draw: Draw) -> None:
    ids = draw.rng.permutation(12)
    length = draw.length(1, 6)
    tokens = ids[: 12 // length * length].reshape(-1, length)
    for pad in draw.pads(sorted({0, 1, draw.choose((3, 7)), int(ids[0])})):
        probe = subject.part("padding_mask", Sizes(source_pad=pad, target_pad=pad))
        case = MaskCall(probe, tokens, pad)
        equal(case.mask(), case.expected(), what=f"mask for the pad id {pad}")


@check("masks.pads-anywhere")
def test_pads_anywhere(subject: Subject, draw: Draw) -> None:
    sizes = draw.sizes(layers=1)
    length, pad = draw.length(3, 7), sizes.source_pad
    tokens = draw.tokens(3, length, sizes.source_vocabulary, pad)
    tokens[0, : draw.integer(1, length - 2)] = pad
    tokens[1, draw.integer(1, length - 2)] = pad
    tokens[2, draw.integer(1, length - 1) :] = pad
    case = MaskCall(subject.part("padding_mask", sizes), tokens, pad)
    equal(case.mask(), case.expected(), what="mask")


@check("masks.large-ids", examples=2)
def test_large_ids(subject: Subject, draw: Draw) -> None:
    length = draw.length(2, 5)
    pads = draw.pads([pad for pad, _ in TWINS])
    for pad, twin in [one for one in TWINS if one[0] in pads]:
        tokens = draw.rng.permuted(np.tile([pad, twin], (3, length))[:, :length], axis=1)
        probe = subject.part("padding_mask", Sizes(source_pad=pad, target_pad=pad))
        case = MaskCall(probe, tokens, pad)
        equal(case.mask(), case.expected(), what=f"mask for the pad {pad} and the token {twin}")


@check("masks.padding-shape")
def test_padding_shape(subject: Subject, draw: Draw) -> None:
    # A mask of one token has the same shape along the queries as along the keys.
    for low in (1, 2):
        case = draw_sources(subject, draw, low=low)
        mask = case.probe.output(case.tokens, case.pad)
        is_boolean(mask, (len(case.tokens), 1, 1, case.tokens.shape[1]))
        if case.tokens.shape[1] > 1:
            keeps_and_hides(mask)


@check("masks.batch-independence")
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    low = min(3, subject.limits.length or 3)
    case = draw_sources(subject, draw, batch=draw.choose((2, 3)), low=low)
    words = case.probe.sizes.source_vocabulary
    tokens = draw.unevenly_padded(case.tokens, words, case.pad, role="source")
    case = replace(case, tokens=tokens)
    together = case.mask()
    keeps_and_hides(together)
    for number in range(len(case.tokens)):
        alone = MaskCall(case.probe, case.tokens[number : number + 1], case.pad).mask()
        equal(together[number : number + 1], alone, what=f"mask of sentence {number} in a batch")


@check("masks.tokens-untouched")
def test_tokens_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_targets(subject, draw)
    first = case.mask().copy()  # the probe compares the tokens with a copy after every call
    keeps_and_hides(first)
    equal(case.mask(), first, what="mask of the same tokens again")


@check("masks.causal-keeps-past")
def test_causal_keeps_past(subject: Subject, draw: Draw) -> None:
    for low, high in ((2, 6), (draw.long(40), 72)):
        mask = draw_triangle(subject, draw, low=low, high=high)
        keeps(mask, np.tri(len(mask), k=-1, dtype=bool), "keys before their query")
        keeps_and_hides(mask)


@check("masks.causal-keeps-diagonal")
def test_causal_keeps_diagonal(subject: Subject, draw: Draw) -> None:
    mask = draw_triangle(subject, draw)
    keeps(mask, np.eye(len(mask), dtype=bool), "keys at the position of their query")
    keeps_and_hides(mask)


@check("masks.causal-blocks-future")
def test_causal_blocks_future(subject: Subject, draw: Draw) -> None:
    mask = draw_triangle(subject, draw, high=draw.choose((6, 40)))
    hides(mask, ~np.tri(len(mask), dtype=bool), "keys after their query")
    keeps_and_hides(mask)


@check("masks.causal-shape")
def test_causal_shape(subject: Subject, draw: Draw) -> None:
    length = draw.length(1, 6)
    mask = subject.part("causal_mask", Sizes()).output(length)
    is_boolean(mask, (1, 1, length, length))
    if length > 1:
        keeps_and_hides(mask)


@check("masks.causal-any-order", examples=2)
def test_causal_any_order(subject: Subject, draw: Draw) -> None:
    probe = subject.part("causal_mask", Sizes())
    long, short = sorted(draw.lengths(), reverse=True)
    for length in (short, long, short, long, draw.long(1100), long):
        mask = probe.output(length)
        equal(mask, probe.expected(length).output, what=f"mask of length {length}")
        if mask.flags.writeable:
            mask[...] = mask == 0  # a caller may do with its mask what it likes


def _target_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = size.sizes(subject)
    tokens = draw.target(size.batch, size.length, sizes)
    _expected_twice(MaskCall(subject.part("target_mask", sizes), tokens, sizes.target_pad))


@check("masks.target-is-both", in_use=at_sizes_in_use(_target_in_use, MANY, LONG, WORDS))
def test_target_is_both(subject: Subject, draw: Draw) -> None:
    for length in (0, draw.long()):
        _expected_twice(draw_targets(subject, draw, length=length))


@check("masks.target-blocks-pad-keys")
def test_target_blocks_pad_keys(subject: Subject, draw: Draw) -> None:
    case = draw_targets(subject, draw)
    mask = case.mask()
    hides(mask, np.broadcast_to(~case.real[:, None, None, :], mask.shape), "keys that are pads")
    keeps(mask[:, :, :, 0], np.ones(mask.shape[:3], dtype=bool), "first keys, which are real")


@check("masks.target-keeps-pad-queries")
def test_target_keeps_pad_queries(subject: Subject, draw: Draw) -> None:
    # Padding in the second place has one real key before it, the first.
    case = draw_targets(subject, draw, low=min(4, subject.limits.length or 4), first=2)
    mask = case.mask()
    keeps_and_hides(mask)
    past = np.tri(mask.shape[-1], dtype=bool) & case.real[:, None, None, :]
    keeps(mask, past & ~case.real[:, None, :, None], "real keys up to a query that is a pad")


@check("masks.target-shape")
def test_target_shape(subject: Subject, draw: Draw) -> None:
    case = draw_targets(subject, draw)
    mask = case.probe.output(case.tokens, case.pad)
    batch, length = case.tokens.shape
    is_boolean(mask, (batch, 1, length, length))
    keeps_and_hides(mask)


@check("masks.length-one", examples=1)
def test_length_one(subject: Subject, draw: Draw) -> None:
    sizes = draw.sizes(layers=1)
    pad = sizes.target_pad
    probe = subject.part("target_mask", sizes)
    for token in (pad + 1, max(0, pad - 1), pad):
        mask = probe.output(np.array([[token]]), pad)
        same_shape(mask, (1, 1, 1, 1), what="mask")
        kept, real = bool(mask[0, 0, 0, 0]), token != pad
        holds(kept == real, f"The only token is {token}, the pad is {pad}; the mask says {kept}.")


@check("masks.device", examples=2)
def test_device(subject: Subject, draw: Draw) -> None:
    if not subject.limits.any_device:
        raise Absent(f"{subject.name} is limited to the CPU")
    case = draw_targets(subject, draw)
    keeps_and_hides(case.mask())
    place = case.probe.do(
        "asking where the mask of tokens on the device meta lies",
        lambda part: part.placed((case.tokens, case.pad), "meta"),
    )
    holds(place == "meta", f"For tokens on the device meta the mask is made on {place}.")
