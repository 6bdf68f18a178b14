"""Recipes of the test vectors: named inputs of every component that expose mistakes.

A recipe fixes sizes and shapes; numbers are drawn. Large, finite numbers stand behind masks, and
rows that are hidden from all are not judged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.scripted import STEPWISE
from attentest.testing.draw import Draw
from attentest_spec import COMPONENTS, Choices, Sizes
from attentest_spec.components import inside
from attentest_spec.contract import Input
from attentest_spec.parameters import one_vocabulary
from attentest_spec.setting import Array, Floats

POISON = 1e6
"""Value at positions that may not be attended."""

PARTS = tuple(name for name in COMPONENTS if name not in STEPWISE)
"""The components with vectors: those that have numbers, and do not decode."""

SIZES = Sizes(
    d_model=6, heads=2, d_ff=7, layers=2, source_vocabulary=11, source_pad=3, target_pad=5, window=2
)


@dataclass(frozen=True)
class Given:
    """The inputs of one call in their order, and the rows (B, L) that are judged (None: all)."""

    inputs: tuple[Input, ...]
    rows: Array | None = None


@dataclass(frozen=True)
class Recipe:
    """One way to call a component, and the clause that it is a case of.

    `make` draws the inputs; `when` says under which choices there is an answer, `nan` whether it
    may hold NaN.
    """

    component: str
    name: str
    clause: str
    make: Callable[[Draw, Sizes], Given]
    sizes: Sizes = SIZES
    method: str = ""
    when: Callable[[Choices], bool] = lambda choices: True
    nan: bool = False

    def fitted(self, choices: Choices) -> Sizes:
        """Return the sizes under `choices`.

        The vocabularies differ where that is allowed, and heads that are turned have two pairs.
        """
        source = self.sizes.source_vocabulary
        sizes = self.sizes.but(target_vocabulary=source if one_vocabulary(choices) else source + 2)
        turned = "multi_head_attention" in inside(self.component)
        turned = turned and choices.attention_rotary != "none"
        return sizes.but(d_model=4 * sizes.heads) if turned else sizes


_MIXTURE = "mixture_of_experts"


def recipes() -> Iterator[Recipe]:
    """Yield every recipe; the first of a component shows most of its choices."""
    yield from _masks()
    yield from _attention()
    yield from _multi_head_attention()
    yield from _positions()
    yield from _embedding()
    yield from _layer_norm()
    yield from _rows("rms_norm", "rms_norm.formula")
    yield from _rows("feed_forward", "feed_forward.formula")
    few = SIZES.but(d_model=4, d_ff=3, experts=3)
    for name, shape in (("several", (2, 3)), ("one-row", (1, 1))):
        yield Recipe(_MIXTURE, name, f"{_MIXTURE}.formula", _floats(*shape), few)
    yield from _residual()
    yield from _rows("generator", "generator.formula", large="generator.stable-for-large-logits")
    yield from _batches()
    yield from _loss()
    yield from _schedule()
    yield from _optimiser()


def _masks() -> Iterator[Recipe]:
    def tokens(batch: int, length: int, pad: int = 3) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            return Given((draw.source(batch, length, sizes.but(source_pad=pad)), pad))

        return make

    def single(draw: Draw, sizes: Sizes) -> Given:
        return Given((np.array([[3], [4]]), 3))

    def large(draw: Draw, sizes: Sizes) -> Given:
        return Given((np.array([[2**53, 2**53 + 1, 1], [256, 2**53, 0]]), 2**53))

    for component, clause in (
        ("padding_mask", "masks.padding-keeps-exactly-real-tokens"),
        ("target_mask", "masks.target-is-both"),
    ):
        yield Recipe(component, "pads-anywhere", clause, tokens(5, 6))
        yield Recipe(component, "pad-0", "masks.any-pad-id", tokens(2, 4, pad=0))
        yield Recipe(component, "length-1", "masks.length-one", single)
        yield Recipe(component, "large-ids", "masks.large-ids", large)
    for length in (4, 1, 2, 131):
        yield Recipe("causal_mask", f"length-{length}", "masks.causal-keeps-past", _number(length))


def _number(value: int) -> Callable[[Draw, Sizes], Given]:
    return lambda draw, sizes: Given((value,))


def _attention() -> Iterator[Recipe]:
    formula = "attention.formula"

    def heads(
        kind: str,
        *,
        scale: float = 1.0,
        shape: tuple[int, ...] = (2, 2, 3, 5, 4, 3),
        below: bool = False,
        empty: bool = False,
    ) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            batch, head, queries, keys, width, columns = shape
            query = draw.floats(batch, head, queries, width, scale=scale)
            key = draw.floats(batch, head, keys, width, scale=scale)
            value = draw.floats(batch, head, keys, columns, scale=scale)
            if below:
                query, key = np.abs(query), -np.abs(key)
            mask = draw.mask(kind, batch, head, queries, keys)
            if mask is not None and empty:
                mask[0, 0, 0] = False
            return Given((query, _poisoned(key, mask), _poisoned(value, mask), mask))

        return make

    yield Recipe("attention", "per-head-mask", formula, heads("per-head"))
    for kind in ("none", "per-sample", "causal"):
        yield Recipe("attention", f"{kind}-mask", formula, heads(kind))
    yield Recipe("attention", "poison-behind-padding", "attention.masking-exact", heads("padding"))
    for scale in (1e-3, 30.0):
        made = heads("per-sample", scale=scale)
        yield Recipe("attention", f"scale-{scale:g}", formula, made)
    stable = "attention.stable-for-large-scores"
    yield Recipe("attention", "scale-1000", stable, heads("per-sample", scale=1e3))
    below = heads("per-sample", scale=1e3, below=True)
    yield Recipe("attention", "every-score-below-zero", "attention.masking-exact", below)
    for name, clause, kind, shape in (
        ("square-padding-mask", "mask-shapes", "padding", (3, 2, 3, 3, 2, 4)),
        ("long", "cross-lengths", "per-sample", (1, 1, 37, 131, 2, 1)),
        ("wide", "formula", "none", (5, 1, 2, 3, 130, 2)),
        ("batch-of-five", "batch-independence", "per-sample", (5, 2, 2, 3, 2, 2)),
    ):
        yield Recipe("attention", name, f"attention.{clause}", heads(kind, shape=shape))
    one = heads("none", shape=(2, 3, 2, 1, 3, 2))
    yield Recipe("attention", "one-key", "attention.one-key", one)
    narrow = heads("per-sample", shape=(1, 1, 1, 3, 1, 1))
    yield Recipe("attention", "one-query-of-width-1", formula, narrow)
    yield Recipe(
        "attention",
        "fully-masked-row",
        "attention.fully-masked-row",
        heads("per-head", empty=True),
        when=lambda choices: choices.fully_masked_row != "unspecified",
        nan=True,
    )


def _poisoned(values: Floats, mask: Array | None) -> Floats:
    """Put poison where a mask over keys (B, 1, 1, K) hides a row of `values` (B, H, K, E)."""
    if mask is None or mask.shape[1:3] != (1, 1):
        return values
    return np.where(mask.swapaxes(-1, -2), values, POISON)


def _multi_head_attention() -> Iterator[Recipe]:
    name = "multi_head_attention"

    def inputs(
        kind: str, queries: int = 3, keys: int = 5, scale: float = 1.0
    ) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            query = draw.floats(2, queries, sizes.d_model, scale=scale)
            key, value = (draw.floats(2, keys, sizes.d_model, scale=scale) for _ in range(2))
            return Given((query, key, value, draw.mask(kind, 2, sizes.heads, queries, keys)))

        return make

    formula = f"{name}.formula"
    for kind in ("per-head", "padding", "none"):
        yield Recipe(name, f"{kind}-mask", formula, inputs(kind))
    yield Recipe(name, "causal-mask", formula, inputs("causal", 4, 4))
    square = inputs("padding", 4, 4)
    yield Recipe(name, "square-padding-mask", f"{name}.masked-keys-ignored", square)
    yield Recipe(name, "more-queries-than-keys", f"{name}.cross-lengths", inputs("none", 6, 2))
    yield Recipe(name, "length-1", formula, inputs("none", 1, 1))
    for scale in (1e-3, 1e3):
        yield Recipe(name, f"scale-{scale:g}", formula, inputs("per-sample", scale=scale))
    for heads, width in ((1, 5), (3, 6), (8, 16)):
        sizes = SIZES.but(heads=heads, d_model=width)
        yield Recipe(name, f"{heads}-heads-of-{width}", formula, inputs("per-sample"), sizes)


def _positions() -> Iterator[Recipe]:
    name = "positional_encoding"
    for length, width, clause in (
        (7, 6, "formula"),
        (1, 6, "first-row"),
        (5, 7, "odd-width"),
        (4, 2, "formula"),
        (3, 130, "formula"),
        (515, 4, "far-positions"),
    ):
        sizes = SIZES.but(d_model=width, heads=1, max_length=length)
        made = _floats(2 if length < 100 else 1, length)
        yield Recipe(name, f"length-{length}-width-{width}", f"{name}.{clause}", made, sizes)
    yield Recipe(name, "row-of-zeros", f"{name}.added", _row_of_zeros)


def _row_of_zeros(draw: Draw, sizes: Sizes) -> Given:
    x = draw.floats(2, 3, sizes.d_model)
    x[0, 1] = 0.0
    return Given((x,))


def _floats(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Callable[[Draw, Sizes], Given]:
    """Draw an x of `shape` and the model's width."""

    def make(draw: Draw, sizes: Sizes) -> Given:
        x = draw.floats(*shape, sizes.d_model, scale=scale) + shift
        return Given((cast(x, draw.subject.precision),))

    return make


def _embedding() -> Iterator[Recipe]:
    def tokens(batch: int, length: int) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            drawn = draw.tokens(batch, length, sizes.source_vocabulary, sizes.source_pad)
            drawn[0, 0] = sizes.source_vocabulary - 1
            drawn[-1, -1] = sizes.source_pad
            return Given((drawn,))

        return make

    for name, made in (("pads-too", tokens(2, 5)), ("length-1", tokens(2, 1))):
        yield Recipe("embedding", name, "embedding.lookup", made)
    many = SIZES.but(d_model=2, heads=1, source_vocabulary=300)
    yield Recipe("embedding", "ids-beyond-a-byte", "embedding.lookup", tokens(1, 4), many)


def _layer_norm() -> Iterator[Recipe]:
    name, formula = "layer_norm", "layer_norm.formula"
    yield from _rows(name, formula)
    yield Recipe(name, "scale-1e-06", formula, _floats(2, 3, scale=1e-6))
    far = _floats(2, 3, shift=1e3)
    yield Recipe(name, "far-from-zero", "layer_norm.shift-law", far)
    for width in (2, 3, 11, 130):
        sizes = SIZES.but(d_model=width, heads=1)
        yield Recipe(name, f"width-{width}", formula, _floats(2, 3), sizes)
    yield Recipe(name, "no-batch", formula, _floats(3))
    yield Recipe(
        name,
        "constant-row",
        "layer_norm.constant-row-finite",
        lambda draw, sizes: Given((np.full((1, 2, sizes.d_model), 2.5),)),
        when=lambda choices: choices.norm_epsilon > 0,
    )


def _schedule() -> Iterator[Recipe]:
    name, sizes = "learning_rate", SIZES.but(warmup=4, total_steps=12, factor=0.5)
    for step, clause in ((7, "formula"), (1, "first-step"), (3, "warm-up-linear"), (4, "peak")):
        yield Recipe(name, f"step-{step}", f"schedule.{clause}", _number(step), sizes)
    for step in (1, 4000, 50_001):
        yield Recipe(name, f"in-use-{step}", "schedule.formula", _number(step), _IN_USE)


def _optimiser() -> Iterator[Recipe]:
    sizes, name = SIZES.but(weight_decay=0.1), "optimiser"

    def run(updates: int, scales: tuple[float, ...]) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            gradients = draw.floats(updates, len(scales)) * np.array(scales)
            rates = 0.01 * (1.0 + np.arange(updates) % 3)
            return Given((draw.floats(len(scales)), gradients, rates))

        return make

    def gradients(limit: float, scale: float = 1.0) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            return Given((draw.floats(7, scale=scale), np.array([2, 4, 1]), np.array(limit)))

        return make

    yield Recipe(name, "scales", f"{name}.formula", run(6, (1.0, 1e-6, 1e-9, 100.0)), sizes)
    yield Recipe(name, "one-update", f"{name}.first-update", run(1, (1.0, 10.0)), sizes)
    yield Recipe(name, "hundred", f"{name}.formula", run(100, (1.0,)), sizes)

    def grouped(late: bool) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            present = np.ones((4, 3), dtype=bool)
            present[:2, 2] = not late
            arrays = (np.array([2, 1, 2]), np.array([0, 1, 0]), present, 0)
            gradients = draw.floats(4, 5)
            return Given((draw.floats(5), gradients, 0.1 * np.arange(1.0, 5.0), *arrays))

        return make

    groups = "grouped_optimiser"
    yield Recipe(groups, "late-array", f"{name}.grouped-formula", grouped(late=True), sizes)
    yield Recipe(groups, "all-present", f"{name}.decay-groups", grouped(late=False), sizes)
    clipping = "gradient_clipping"
    yield Recipe(clipping, "clipped", f"{name}.clipping-formula", gradients(0.5))
    yield Recipe(clipping, "small", f"{name}.clip-epsilon", gradients(1e-4, 1e-2))
    yield Recipe(clipping, "below", f"{name}.clipping-below-the-limit", gradients(1e3))


_IN_USE = Sizes(d_model=512, heads=8)


def _rows(component: str, formula: str, large: str = "") -> Iterator[Recipe]:
    """Yield the recipes of a component that takes one x, row by row."""
    yield Recipe(component, "several", formula, _floats(2, 3))
    yield Recipe(component, "one-row", formula, _floats(1, 1))
    yield Recipe(component, "many-rows", formula, _floats(1, 131), SIZES.but(d_model=2, heads=1))
    yield Recipe(component, "scale-0.001", formula, _floats(2, 3, scale=1e-3))
    yield Recipe(component, "scale-1000", large or formula, _floats(2, 3, scale=1e3))


def _residual() -> Iterator[Recipe]:
    def inputs(scale: float) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            matrix = draw.floats(sizes.d_model, sizes.d_model)
            return Given((draw.floats(2, 3, sizes.d_model, scale=scale), matrix))

        return make

    for scale in (1.0, 1e-3, 1e3):
        yield Recipe("residual", f"scale-{scale:g}", "residual.formula", inputs(scale))


def _batches() -> Iterator[Recipe]:
    """Yield recipes of batches, of which the first result is stored."""

    def pair(draw: Draw, sizes: Sizes) -> Given:
        return Given((draw.source(3, 4, sizes), draw.target(3, 5, sizes)))

    def sequences(draw: Draw, sizes: Sizes) -> Given:
        lengths = np.array([4, 2, 5, 3])
        words = draw.tokens(1, int(lengths.sum()), sizes.target_vocabulary, sizes.target_pad)
        return Given((words[0], lengths))

    yield Recipe("batch", "shifted", "batch.decoder-input", pair)
    yield Recipe("padded_batch", "unequal-lengths", "batch.padded-tokens", sequences)
    yield Recipe("packed_batch", "unequal-lengths", "batch.packed-steps", sequences)


def _loss() -> Iterator[Recipe]:
    def inputs(padding: str) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            target = draw.tokens(3, 4, sizes.target_vocabulary, sizes.target_pad)
            if padding != "none":
                target[0, 1:] = target[1, :2] = sizes.target_pad
            if padding == "all":
                target[:] = sizes.target_pad
            # Positive numbers are an output of every kind that a loss may take.
            output = draw.rng.uniform(0.1, 0.9, size=(*target.shape, sizes.target_vocabulary))
            return Given((cast(output, draw.subject.precision), target))

        return make

    smoothed = SIZES.but(smoothing=0.1)
    yield Recipe("loss", "smoothed", "loss.formula", inputs("some"), smoothed)
    yield Recipe("loss", "not-smoothed", "loss.formula", inputs("some"))
    yield Recipe("loss", "no-padding", "loss.no-padding", inputs("none"), smoothed)
    yield Recipe(
        "loss",
        "all-padding",
        "loss.without-targets",
        inputs("all"),
        smoothed,
        when=lambda choices: choices.loss_without_targets != "unspecified",
        nan=True,
    )


__all__ = ["PARTS", "POISON", "SIZES", "Given", "Recipe", "recipes"]
