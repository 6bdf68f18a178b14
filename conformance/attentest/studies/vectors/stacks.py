"""The recipes of encoder, decoder and model: masks on both sides, with poison behind them."""

from collections.abc import Callable, Iterator

import numpy as np

from attentest.studies.vectors.recipes import POISON, SIZES, Given, Recipe
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.setting import Array

Make = Callable[[Draw, Sizes], Given]


def stacks() -> Iterator[Recipe]:
    """Yield the recipes; the first of a component shows most of its choices."""
    yield from _encoders()
    yield from _decoders()
    yield from _models()


def _encoders() -> Iterator[Recipe]:
    for name, clause in (
        ("encoder_layer", "encoder.layer-formula"),
        ("encoder", "encoder.formula"),
    ):
        yield Recipe(name, "poison-behind-padding", clause, _sequence("padding"))
        yield Recipe(name, "per-sample-mask", clause, _sequence("per-sample"))
        yield Recipe(name, "no-mask", clause, _sequence("none", scale=30.0))
        yield Recipe(name, "length-1", clause, _sequence("none", length=1))
    formula, shapes = "encoder.formula", "encoder.mask-shapes"
    yield Recipe("encoder_layer", "per-head-mask", shapes, _sequence("per-head"))
    narrow = SIZES.but(d_model=2, heads=1, d_ff=3, layers=1)
    yield Recipe("encoder", "long", formula, _sequence("padding", length=131), narrow)
    yield Recipe("encoder", "six-layers", formula, _sequence("padding"), narrow.but(layers=6))


def _sequence(kind: str, length: int = 4, scale: float = 1.0) -> Make:
    def make(draw: Draw, sizes: Sizes) -> Given:
        mask = draw.mask(kind, 2, sizes.heads, length, length)
        x, rows = _behind(draw.floats(2, length, sizes.d_model, scale=scale), mask)
        return Given((x, mask), rows)

    return make


def _behind(x: Array, mask: Array | None) -> tuple[Array, Array | None]:
    """Return x (B, L, D) with poison at positions that are hidden from all, and the other rows."""
    if mask is None:
        return x, None
    batch, length, _ = x.shape
    whole = np.broadcast_to(mask, (batch, mask.shape[1], length, length))
    seen: Array = np.asarray(whole.any(axis=(1, 2)))
    return np.where(seen[..., None], x, POISON), seen


def _decoders() -> Iterator[Recipe]:
    for name, clause in (
        ("decoder_layer", "decoder.layer-formula"),
        ("decoder", "decoder.formula"),
    ):
        yield Recipe(name, "poison-behind-both-masks", clause, _pair(3, 5))
        yield Recipe(name, "memory-shorter", clause, _pair(4, 2))
        yield Recipe(name, "memory-as-long", "decoder.source-mask-on-memory", _pair(4, 4))
        yield Recipe(name, "no-masks", clause, _pair(3, 2, masked=False))
        yield Recipe(name, "length-1", clause, _pair(1, 1, masked=False))


def _pair(length: int, reach: int, *, masked: bool = True) -> Make:
    def make(draw: Draw, sizes: Sizes) -> Given:
        x = draw.floats(2, length, sizes.d_model)
        memory = draw.floats(2, reach, sizes.d_model)
        if not masked:
            return Given((x, memory, None, None))
        source_mask = draw.keep(2, 1, 1, reach)
        real = np.ones((2, 1, 1, length), dtype=bool)
        real[0, ..., -1] = False
        mask = real & np.tril(np.ones((length, length), dtype=bool))
        x, rows = _behind(x, mask)
        memory = np.where(source_mask[:, 0, 0, :, None], memory, POISON)
        return Given((x, memory, source_mask, mask), rows)

    return make


def _models() -> Iterator[Recipe]:
    formula = "model.formula"
    yield Recipe("model", "ragged-padding", formula, _sentences(4, 5))
    yield Recipe("model", "length-1", formula, _sentences(1, 1))
    deep = SIZES.but(layers=3, heads=3, source_pad=0, target_pad=0)
    yield Recipe("model", "three-layers-pad-0", "model.pad-ids", _sentences(4, 5), deep)
    both = "model.encode-decode-is-forward"
    yield Recipe("model", "encode", both, _source(5), method="encode")
    yield Recipe("model", "decode", both, _decoded(4, 5), method="decode")


def _sentences(source: int, target: int) -> Make:
    def make(draw: Draw, sizes: Sizes) -> Given:
        given = draw.source(2, source, sizes), draw.target(2, target, sizes)
        return Given(given, given[1] != sizes.target_pad)

    return make


def _source(length: int) -> Make:
    def make(draw: Draw, sizes: Sizes) -> Given:
        tokens = draw.source(2, length, sizes)
        return Given((tokens,), tokens != sizes.source_pad)

    return make


def _decoded(target: int, source: int) -> Make:
    def make(draw: Draw, sizes: Sizes) -> Given:
        tokens, read = draw.target(2, target, sizes), draw.source(2, source, sizes)
        memory = draw.floats(2, source, sizes.d_model)
        real = (read != sizes.source_pad)[..., None]
        return Given((tokens, np.where(real, memory, POISON), read), tokens != sizes.target_pad)

    return make
