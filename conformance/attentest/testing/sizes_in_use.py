"""Sizes as in use: the widths, lengths and counts of real models, for examples of formulas.

Some mistakes begin with size: a block of 128 columns, a cache of 256 positions, eight heads. No
example is large in every dimension, as that costs seconds; each is large in the two or three that
are cheap together, and small in the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from attentest.harness.subject import Subject
from attentest.testing.draw import Draw
from attentest_spec import Choices, Sizes
from attentest_spec.parameters import one_vocabulary
from attentest_spec.rotary import turned_width


@dataclass(frozen=True, kw_only=True)
class SizesInUse:
    """Sizes of one example: those of a small test, where none of a real model is given.

    `width` is d_model, `inner` d_ff, `length` that of every sequence, `ids` the vocabulary.
    """

    batch: int = 1
    heads: int = 2
    width: int = 8
    inner: int = 7
    layers: int = 1
    length: int = 4
    ids: int = 11

    def within(self, subject: Subject) -> "SizesInUse":
        """Return the sizes that the backend supports, as near to these as there are."""
        limits, whole = subject.limits, subject.choices.head_width == "d"
        heads = _at_most(self.heads, limits.heads)
        # Heads as wide as the model have as many parameters as a model `heads` times as wide.
        width = self.width // 4 if whole and self.width > _NARROW else self.width
        return SizesInUse(
            batch=self.batch,
            heads=heads,
            width=_turnable(subject.choices, width // (2 * heads) * 2) * heads,
            inner=self.inner,
            layers=_at_most(self.layers, limits.layers),
            length=_at_most(self.length, limits.length),
            ids=self.ids,
        )

    def sizes(self, subject: Subject) -> Sizes:
        """Return the sizes that a part is built at."""
        one = one_vocabulary(subject.choices)
        return subject.limits.fitted(
            Sizes(
                d_model=self.width,
                heads=self.heads,
                d_ff=self.inner,
                layers=self.layers,
                source_vocabulary=self.ids,
                target_vocabulary=self.ids if one else self.ids + 2,
                source_pad=3,
                target_pad=5,
                max_length=self.length,
            )
        )


_NARROW = 128
"""A width up to which all sizes are cheap."""


def _at_most(wanted: int, limit: int | None) -> int:
    return wanted if limit is None else min(wanted, limit)


WIDE = SizesInUse(width=512, heads=16, inner=192)
WIDER = SizesInUse(width=768, heads=12, inner=192)
MANY = SizesInUse(batch=33, layers=12, heads=12, width=48, inner=96)
LONG = SizesInUse(length=600)
WORDS = SizesInUse(ids=32_000)

_WIDEST = 128
"""The greatest width of a head that is tried in the place of one that is too narrow to turn."""


def _turnable(choices: Choices, width: int) -> int:
    """Return the least even width of a head from `width` on whose turned part is even, and not 0.

    What becomes of half a pair is not specified, and code differs: some of it turns a column alone.
    """
    if choices.attention_rotary == "none" or choices.rotary_width == "whole":
        return width
    part = float(choices.rotary_width)
    for wider in range(width, _WIDEST + 1, 2):
        columns = turned_width(choices, wider)
        if columns > 0 and abs(part * wider - columns) < 1e-6:
            return wider
    return width


Example = Callable[[Subject, Draw], None]
"""The body of a check, for one example."""


def at_sizes_in_use(
    body: Callable[[Subject, Draw, SizesInUse], None], *every: SizesInUse
) -> tuple[Example, ...]:
    """Return `body` as one example for each of the sizes, within the limits of the backend."""
    return tuple(partial(_example, body, sizes) for sizes in every)


def _example(
    body: Callable[[Subject, Draw, SizesInUse], None],
    sizes: SizesInUse,
    subject: Subject,
    draw: Draw,
) -> None:
    body(subject, draw, sizes.within(subject))
