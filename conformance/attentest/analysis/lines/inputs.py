"""Inputs of the calls to look at: small examples in which no two lengths are equal."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest_spec import Choices, Sizes
from attentest_spec.contract import Limits
from attentest_spec.generator import normalised
from attentest_spec.order import ordered
from attentest_spec.parameters import one_vocabulary
from attentest_spec.setting import Array

SIZES = Sizes(
    d_model=24,
    heads=3,
    d_ff=11,
    layers=1,
    source_vocabulary=17,
    target_vocabulary=19,
    source_pad=3,
    target_pad=5,
    smoothing=0.1,
)


@dataclass(frozen=True)
class Lengths:
    """The lengths of an example, no two of them equal; E is the width of a head."""

    batch: int = 2
    queries: int = 5
    keys: int = 7
    head: int = 8
    value: int = 9
    seed: int = 7


USUAL, FRESH = Lengths(), Lengths(batch=2, queries=4, keys=10, head=6, value=5, seed=8)


def sizes_within(limits: Limits, choices: Choices, lengths: Lengths, layers: int) -> Sizes:
    """Return sizes inside the limits; four heads where keys and values have fewer, two."""
    shares = choices.key_heads == "fewer"
    most = 4 if shares else SIZES.heads
    heads = min(most, limits.heads or most)
    sizes = replace(SIZES, heads=heads, d_model=lengths.head * heads, layers=layers)
    if shares:
        sizes = sizes.but(kv_heads=2 if heads % 2 == 0 else 1)
    if one_vocabulary(choices):
        sizes = sizes.but(target_vocabulary=sizes.source_vocabulary)
    return limits.fitted(sizes)


@dataclass(frozen=True)
class Inputs:
    """The inputs of one call, with masks of one kind."""

    subject: Subject
    sizes: Sizes
    rng: np.random.Generator
    kind: str
    lengths: Lengths

    def of(self, component: str) -> tuple[Any, ...]:
        """Return the inputs of `component`, in their order."""
        width, head = self.sizes.d_model, self.sizes.d_model // self.sizes.heads
        batch, queries, keys = self.lengths.batch, self.lengths.queries, self.lengths.keys
        cross = self.subject.limits.cross and not ordered(self.subject.choices)
        match component:
            case "attention":
                heads, value = self.sizes.heads, self.lengths.value
                both = (self.floats(batch, heads, keys, one) for one in (head, value))
                return self.floats(batch, heads, queries, head), *both, self.mask(queries, keys)
            case "multi_head_attention" if cross:
                both = (self.floats(batch, keys, width) for _ in "kv")
                return self.floats(batch, queries, width), *both, self.mask(queries, keys)
            case "multi_head_attention":
                x = self.floats(batch, queries, width)
                return x, x.copy(), x.copy(), self.mask(queries, queries)
            case "encoder_layer" | "encoder":
                return self.floats(batch, keys, width), self.mask(keys, keys)
            case "decoder_layer" | "decoder":
                x, memory = self.floats(batch, queries, width), self.floats(batch, keys, width)
                kind = self._memory_kind()
                padding = self.mask(queries, keys, kind, "source_mask")
                return x, memory, padding, self.mask(queries, queries)
            case "layer_norm" | "rms_norm":
                return (0.05 * self.floats(batch, queries, width),)
            case "residual":
                return self.floats(batch, queries, width), self.floats(width, width)
            case "embedding":
                return (self.source(),)
            case "loss":
                target = self.target()
                logits = self.floats(batch, queries, self.sizes.target_vocabulary)
                # Code may take any word for the target that is padding.
                logits[target == self.sizes.target_pad] = 0.0
                output = normalised(self.subject.choices.loss_input, logits)
                return cast(output, self.subject.precision), target
            case "padding_mask":
                return self.source(padded=True), self.sizes.source_pad
            case "target_mask":
                return self.target(padded=True), self.sizes.target_pad
            case "causal_mask":
                return (queries,)
            case "model":
                return self.source(), self.target()
            case "language_model":
                return (self.target(),)
            case "sampling":
                return (self.floats(batch, self.sizes.target_vocabulary),)
            case "rotary":
                return self.floats(batch, self.sizes.heads, queries, head), self.places(queries)
            case _:
                return (self.floats(batch, queries, width),)

    def floats(self, *shape: int) -> Array:
        """Draw signed numbers."""
        return cast(np.round(self.rng.normal(size=shape), 2), self.subject.precision)

    def _memory_kind(self) -> str:
        """Return the kind of a memory's mask, none where the kinds of all others are to be none."""
        return "padding" if self.kind != "none" else "none"

    def mask(self, queries: int, keys: int, kind: str = "", role: str = "mask") -> Array | None:
        """Draw a mask of the kind, in which every query sees a key and every key is seen."""
        kind = kind or self.kind
        if kind == "none":
            return None
        if kind not in self.subject.limits.masks_of(role):
            raise Absent(f"no {kind} mask is supported")
        if kind == "causal":
            return np.tril(np.ones((1, 1, queries, keys), dtype=bool))
        rows = 1 if kind == "padding" else queries
        mask = self.rng.random((self.lengths.batch, 1, rows, keys)) < 0.6
        mask[..., 0] = True
        mask[0, ..., -1] = False
        return mask

    def places(self, length: int) -> Array | None:
        """Draw the positions of the tokens, others in each sample; None where they are fixed."""
        if "per-sample" not in self.subject.limits.positions:
            return None
        places = np.stack([self.rng.permutation(length + 2)[:length] for _ in "bc"])
        return places[: self.lengths.batch].astype(np.int64)

    def source(self, *, padded: bool = False) -> Array:
        """Draw source tokens, with padding where masks are wanted."""
        sizes = self.sizes.source_vocabulary, self.sizes.source_pad
        padded = padded or self.kind in _WITH_PADDING
        return self._tokens(self.lengths.keys, *sizes, padded=padded)

    def target(self, *, padded: bool = False) -> Array:
        """Draw target tokens, with padding where masks are wanted, and code may hide it."""
        kind = "none" if "target" in self.subject.limits.right_padded else self.kind
        sizes = self.sizes.target_vocabulary, self.sizes.target_pad
        return self._tokens(self.lengths.queries, *sizes, padded=padded or kind in _WITH_PADDING)

    def _tokens(self, length: int, vocabulary: int, pad: int, *, padded: bool) -> Array:
        tokens = self.rng.integers(0, vocabulary - 1, size=(self.lengths.batch, length))
        tokens = tokens + (tokens >= pad)
        tokens[1, :3] = (0, vocabulary - 1, 1)
        if padded:
            tokens[0, -2:] = pad
        return tokens


_WITH_PADDING = ("per-sample", "padding")
"""The kinds of masks of examples whose tokens end with padding."""
