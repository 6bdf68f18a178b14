"""Random inputs of one example: hard cases, within the limits of the backend.

Sizes, kinds and one seed are drawn by Hypothesis, so that failing examples shrink; bulk numbers
come from the seed, because that is forty times cheaper than drawing each. Numbers are signed and
rounded to two decimals before scaling, so that a printed counterexample is short and exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, TypeVar

import numpy as np
from hypothesis import strategies as st

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.testing.rotary_widths import turned_from
from attentest_spec import Sizes
from attentest_spec.parameters import draw as draw_parameters
from attentest_spec.parameters import one_vocabulary
from attentest_spec.setting import Array, Floats

T = TypeVar("T")

SCALES = (1.0, 1e-3, 30.0, 1e3)
"""Magnitudes of drawn inputs: some mistakes show at one of them alone."""

LONG = 131
"""A length beyond blocks and windows of 16, 32, 64 and 128, and a multiple of none of them."""

DEEP = 6
"""Number of layers that no shortcut for the first few covers; that of Vaswani et al. 2017."""


_integers = cache(st.integers)


@dataclass(frozen=True)
class Draw:
    """The source of one example's inputs."""

    draw: st.DrawFn
    subject: Subject
    rng: np.random.Generator

    @classmethod
    def of(cls, draw: st.DrawFn, subject: Subject) -> "Draw":
        """Start an example: draw the seed of its bulk numbers."""
        return cls(draw, subject, np.random.default_rng(draw(_integers(0, 2**32 - 1))))

    def integer(self, low: int, high: int) -> int:
        """Draw a whole number from `low` to `high`, both included."""
        return self.draw(_integers(low, high))

    def choose(self, options: Sequence[T]) -> T:
        """Draw one of `options`; failing examples shrink to the first."""
        return options[self.draw(_integers(0, len(options) - 1))]

    def length(self, low: int = 1, high: int = 6) -> int:
        """Draw a sequence length, within the limits; absent where `low` is beyond them."""
        limit = self.subject.limits.length
        if limit is not None and low > limit:
            raise Absent(f"{self.subject.name} is limited to length {limit}; {low} is needed")
        return self.integer(low, high if limit is None else min(high, limit))

    def at_least(self, low: int) -> int:
        """Draw a sequence length from `low` on, or the longest within the limits."""
        return self.length(min(low, self.subject.limits.length or low))

    def lengths(self) -> tuple[int, int]:
        """Draw two different lengths, the first above or below the second."""
        short = self.length(1, 4)
        limit = self.subject.limits.length or 6
        if short >= limit:
            raise Absent(f"{self.subject.name} is limited to length {limit}; two are needed")
        pair = (short, self.length(short + 1, 6))
        return pair if self.choose((True, False)) else pair[::-1]

    def long(self, wanted: int = LONG) -> int:
        """Return a length that fast code takes in several blocks, or the longest supported."""
        return min(wanted, self.subject.limits.length or wanted)

    def batch(self) -> int:
        """Draw a number of samples, mostly two or more; a counterexample shrinks to one."""
        return self.choose((1, 2, 3, 2, 5))

    def heads(self, low: int = 1) -> int:
        """Draw a number of heads, mostly two or more, within the limits."""
        limits = self.subject.limits
        least = max(low, limits.fewest_heads)
        allowed = [n for n in (1, 2, 3, 2, 8) if least <= n <= (limits.heads or n)]
        if not allowed:
            raise Absent(f"{self.subject.name} is limited to {limits.heads} heads")
        return self.choose(allowed)

    def layers(self, low: int = 1, high: int = 3) -> int:
        """Draw a number of layers, within the limits; absent where `low` is beyond them."""
        limit = self.subject.limits.layers
        if limit is not None and low > limit:
            raise Absent(f"{self.subject.name} is limited to {limit} layer(s); {low} are needed")
        return self.integer(low, high if limit is None else min(high, limit))

    def several_layers(self) -> int:
        """Return two layers, or one where the backend has no more."""
        return min(2, self.subject.limits.layers or 2)

    def deepest(self) -> int:
        """Return more layers than a small test has, or as many as the backend has."""
        return min(DEEP, self.subject.limits.layers or DEEP)

    def sizes(self, *, heads: int = 0, head_width: int = 0, **fixed: int | float) -> Sizes:
        """Draw sizes whose free dimensions differ; `fixed` ones are taken as they are.

        Vocabularies are equal where both embeddings are one, pad ids differ and are not 0, inside
        the limits. Heads that are turned by their positions are wide enough for that.
        """
        count = heads or self.heads()
        width = count * turned_from(self.subject.choices, head_width or self.choose((2, 4, 3)))
        source = 11
        target = 11 if one_vocabulary(self.subject.choices) else 13
        values = {
            "d_model": width,
            "heads": count,
            "d_ff": self.choose((5, 7)),
            "layers": 0,
            "source_vocabulary": source,
            "target_vocabulary": target,
            "source_pad": 3,
            "target_pad": 5,
            **fixed,
        }
        if values["layers"] == 0:
            values["layers"] = self.layers(1, 2)
        sizes = Sizes(**values)  # type: ignore[arg-type]  # every value is a number
        return self.subject.limits.fitted(sizes)

    def floats(
        self, *shape: int, scale: float = 1.0, precision: str = ""
    ) -> Annotated[Floats, "*shape"]:
        """Draw signed normal numbers of the given shape, representable in the precision."""
        values = np.asarray(np.round(self.rng.normal(size=shape), 2) * scale)
        return cast(values, precision or self.subject.precision)

    def scale(self) -> float:
        """Draw a magnitude for inputs."""
        return self.choose(SCALES)

    def parameters(
        self, component: str, sizes: Sizes, *, scale: float = 1.0, precision: str = ""
    ) -> dict[str, Floats]:
        """Draw canonical parameters under the backend's choices, those of norms random too."""
        parameters = draw_parameters(component, sizes, self.subject.choices, self.rng, scale=scale)
        wanted = precision or self.subject.precision
        return {name: cast(values, wanted) for name, values in parameters.items()}

    def keep(self, *shape: int) -> Annotated[Array, "*shape"]:
        """Draw a boolean mask of `shape`; every row keeps a key and, if it has two, hides one."""
        mask = self.rng.random(shape) < 0.6
        keys = shape[-1]
        visible = self.rng.integers(keys, size=shape[:-1])
        np.put_along_axis(mask, visible[..., None], True, axis=-1)
        if keys > 1:
            hidden = (visible + self.rng.integers(1, keys, size=shape[:-1])) % keys
            np.put_along_axis(mask, hidden[..., None], False, axis=-1)
        return mask

    def keep_first(self, *shape: int) -> Annotated[Array, "*shape"]:
        """Draw a boolean mask of `shape` whose rows keep their first keys, and hide the last."""
        keys = shape[-1]
        lengths = self.rng.integers(1, max(2, keys), size=shape[:-1])
        return np.asarray(np.arange(keys) < lengths[..., None])

    def _keeping(self, role: str) -> Callable[..., Array]:
        """Return what draws the masks of the input `role`."""
        return self.keep_first if role in self.subject.limits.right_padded else self.keep

    def mask(
        self, kind: str, batch: int, heads: int, queries: int, keys: int
    ) -> Annotated[Array, "#{batch} #{heads} #{queries} {keys}"] | None:
        """Draw a mask of the given kind (see `attentest_spec.contract.MASK_KINDS`).

        Its shape broadcasts to (B, H, Q, K).
        """
        keep = self._keeping("mask")
        match kind:
            case "none":
                return None
            case "padding":
                return keep(batch, 1, 1, keys)
            case "causal":
                return np.tril(np.ones((1, 1, queries, keys), dtype=bool))
            case "per-sample":
                return keep(batch, 1, queries, keys)
            case _:
                return keep(batch, heads, queries, keys)

    def differing(
        self, mask: Annotated[Array, "B #H #Q K"], *, role: str = "mask", first: int = 0
    ) -> Annotated[Array, "B #H #Q K"]:
        """Return `mask` (B, H, Q, K) such that samples and heads hide other keys than the last one.

        Three in a row are all different where there are three keys. Those below `first` stay as
        they are, and padding at the end where the backend is limited to that.
        """
        changed = np.array(mask)
        keys = changed.shape[-1] - first
        for sample, head in np.ndindex(changed.shape[:2]):
            own, number = changed[sample, head], sample + head
            if role in self.subject.limits.right_padded:
                shown = first + 1 + (mask[0, 0, 0, first:].sum() - 1 + number) % keys
                own[:] = np.arange(own.shape[-1]) < shown
            else:
                own[:, first + number % keys] = False
                own[:, first + (number + 1) % keys] = True
        return changed

    def mask_kind(
        self, *, hiding: bool = False, kinds: Sequence[str] = (), role: str = "mask"
    ) -> str:
        """Draw a kind of the mask `role` that the backend supports.

        `hiding` leaves out no mask at all.
        """
        every = kinds or ("per-sample", "padding", "per-head", "causal", "none")
        allowed = [one for one in every if not hiding or one != "none"]
        return self.choose(self.mask_kinds(allowed, role))

    def mask_kinds(self, kinds: Sequence[str], role: str = "mask") -> list[str]:
        """Return those of `kinds` that the backend supports; absent where it supports none."""
        known = self.subject.limits.masks_of(role)
        supported = [kind for kind in kinds if kind in known]
        if not supported:
            raise Absent(f"{self.subject.name} supports none of the needed kinds of mask")
        return supported

    def several(self) -> int:
        """Draw two or more heads, or one where the backend has no more."""
        return self.heads(min(2, self.subject.limits.heads or 2))

    def most_heads(self) -> int:
        """Return more heads than a small test has, or as many as the backend has."""
        return min(8, self.subject.limits.heads or 8)

    def tokens(
        self, batch: int, length: int, vocabulary: int, pad: int
    ) -> Annotated[Array, "{batch} {length}"]:
        """Draw real tokens (B, S): any id but `pad`."""
        tokens = self.rng.integers(0, vocabulary - 1, size=(batch, length))
        return tokens + (tokens >= pad)

    def unevenly_padded(
        self,
        tokens: Annotated[Array, "B L"],
        vocabulary: int,
        pad: int,
        *,
        role: str,
        first: int = 0,
    ) -> Annotated[Array, "B L"]:
        """Return other tokens (B, L), padded at other places in each sequence than in the last.

        `role` is "source" or "target"; the `first` tokens stay real where they are.
        """
        real = self.differing((tokens != pad)[:, None, None, :], role=role, first=first)[:, 0, 0]
        return np.where(real, self.tokens(len(real), real.shape[1], vocabulary, pad), pad)

    def pads(self, ids: Sequence[int]) -> list[int]:
        """Return those of `ids` that can be the pad id; absent where it is fixed to another."""
        fixed = self.subject.limits.pad
        found = [one for one in ids if fixed in (None, one)]
        if not found:
            raise Absent(f"the pad id of {self.subject.name} is always {fixed}")
        return found

    def source(self, batch: int, length: int, sizes: Sizes) -> Annotated[Array, "{batch} {length}"]:
        """Draw a source (B, S) with padding anywhere and a real token in each sequence.

        Padding is at its end alone where the backend is limited to that.
        """
        tokens = self.tokens(batch, length, sizes.source_vocabulary, sizes.source_pad)
        return np.where(self._keeping("source")(batch, length), tokens, sizes.source_pad)

    def target(self, batch: int, length: int, sizes: Sizes) -> Annotated[Array, "{batch} {length}"]:
        """Draw a target (B, T) that starts with a real token and has padding anywhere after it.

        It is at its end alone where the backend is limited to that.
        """
        tokens = self.tokens(batch, length, sizes.target_vocabulary, sizes.target_pad)
        if "target" in self.subject.limits.right_padded:
            real = self.keep_first(batch, length)
        else:
            real = self.rng.random((batch, length)) < 0.7
            real[:, 0] = True
        return np.where(real, tokens, sizes.target_pad)
