"""Checks of the chapter `embedding`."""

from functools import partial

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, fits, largest
from attentest.judging.check import check
from attentest.testing.assertions import equal, finite, holds, matches, near, same_shape
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_of
from attentest.testing.invariants import build_with_parameters
from attentest.testing.refusal import refuses, require_index_errors
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, WORDS, SizesInUse, at_sizes_in_use
from attentest_spec import CHOICES, Sizes
from attentest_spec.parameters import one_vocabulary
from attentest_spec.setting import Array, Floats


def build(subject: Subject, draw: Draw, **fixed: int) -> tuple[Sizes, Probe]:
    """Build an embedding with a drawn table, of two columns or more."""
    sizes = draw.sizes(layers=1, **fixed)
    return sizes, build_with_parameters(subject, draw, "embedding", sizes)


def build_loaded(
    subject: Subject, draw: Draw, *, scale: float = 1.0, **fixed: int
) -> tuple[Sizes, Probe]:
    """Build an embedding that has loaded a drawn table; absent without a parameter map."""
    sizes = draw.sizes(layers=1, **fixed)
    parameters = draw.parameters("embedding", sizes, scale=scale)
    return sizes, subject.part("embedding", sizes, parameters=parameters)


def draw_tokens(draw: Draw, sizes: Sizes, low: int = 1) -> Array:
    """Draw tokens (B, S) of any id, padding included."""
    shape = (draw.batch(), draw.length(low))
    return draw.rng.integers(0, sizes.source_vocabulary, size=shape)


def draw_repeated_tokens(draw: Draw, sizes: Sizes) -> Array:
    """Draw tokens (B, S) of four ids at most, one of them twice."""
    pool = draw.rng.permutation(sizes.source_vocabulary)[:4]
    tokens = draw.rng.choice(pool, size=(draw.batch(), draw.length(2)))
    tokens[-1, -1] = tokens[0, 0]
    return tokens


def every_token(sizes: Sizes) -> Array:
    """Return every id of the vocabulary, one per sample."""
    return np.arange(sizes.source_vocabulary)[:, None]


def factor_of(output: Array, rows: Floats) -> float:
    """Return the factor that comes nearest to turning `rows` into `output`."""
    return float((as_floats(output) * rows).sum() / (rows * rows).sum())


def _build_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> tuple[Probe, Array]:
    """Build an embedding with a drawn table, and draw tokens (B, S), the last id among them."""
    sizes = size.sizes(subject)
    probe = subject.part("embedding", sizes, parameters=draw.parameters("embedding", sizes))
    tokens = draw.rng.integers(0, size.ids, size=(size.batch, size.length))
    tokens[0, 0] = size.ids - 1
    return probe, tokens


def _lookup_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    probe, tokens = _build_in_use(subject, draw, size)
    rows = probe.parameters["weight"][tokens]
    output = probe.output(tokens)
    same_shape(output, rows.shape)
    wanted = factor_of(output, rows) * rows
    near(subject, output, wanted, what=_ROWS, terms=size.width)


_ROWS = "output, compared with the rows times one factor"


@check(
    "embedding.lookup",
    examples=10,
    in_use=at_sizes_in_use(_lookup_in_use, WIDE, MANY, LONG, WORDS),
)
def test_lookup(subject: Subject, draw: Draw) -> None:
    words_held = draw.choose((11, 300))
    sizes, probe = build_loaded(
        subject,
        draw,
        scale=draw.choose((1.0, 30.0)),
        source_vocabulary=words_held,
        target_vocabulary=words_held,
    )
    tokens = np.concatenate([every_token(sizes), draw.rng.permutation(every_token(sizes))])
    rows = probe.parameters["weight"][tokens]
    output = probe.output(tokens)
    same_shape(output, rows.shape)
    factor = factor_of(output, rows)
    holds(factor > 0, f"The factor of the rows is {factor:.6g}.", actual=output)
    near(subject, output, factor * rows, what=_ROWS, terms=sizes.d_model)
    again = draw_tokens(draw, sizes)
    wanted = factor * probe.parameters["weight"][again]
    near(subject, probe.output(again), wanted, what=_ROWS, terms=sizes.d_model)


def _scale_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    probe, tokens = _build_in_use(subject, draw, size)
    matches(probe, tokens, actual=probe.output(tokens))


@check("embedding.scale", examples=10, in_use=at_sizes_in_use(_scale_in_use, WIDE, WORDS))
def test_scale(subject: Subject, draw: Draw) -> None:
    sizes, probe = build_loaded(subject, draw)
    tokens = draw_tokens(draw, sizes)
    actual = probe.output(tokens)
    matches(probe, tokens, actual=actual)
    for option in CHOICES["embedding_scale"].options:
        if option.name != subject.choices.embedding_scale:
            holds(
                not fits(
                    probe,
                    tokens,
                    actual=actual,
                    choices=subject.choices.but(embedding_scale=option.name),
                ),
                f"The numbers fit the factor {option.name} ({option.meaning}) as well.",
            )


@check("embedding.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    for wanted in dict.fromkeys((subject.precision, *subject.limits.precisions)):
        sizes = draw.sizes(layers=1)
        probe = build_with_parameters(subject, draw, "embedding", sizes, precision=wanted)
        for batch, length in ((1, 1), (3, 1), (1, draw.length()), (2, draw.length())):
            _shaped(probe, draw.tokens(batch, length, sizes.source_vocabulary, sizes.source_pad))


def _shaped(probe: Probe, tokens: Array) -> None:
    """Demand one vector of the width and precision of the model for each of the tokens (B, S)."""
    output = probe.output(tokens)
    same_shape(output, (*tokens.shape, probe.sizes.d_model))
    same_precision(probe, output)
    finite(output)
    holds(as_floats(output).any(axis=-1).all(), "A token has a vector of zeros.", actual=output)


@check("embedding.every-id-served")
def test_every_id_served(subject: Subject, draw: Draw) -> None:
    tied = one_vocabulary(subject.choices) or not subject.limits.own_vocabularies
    source, target = draw.choose(((11, 7), (7, 11), (1, 5))) if not tied else (11, 11)
    sizes = draw.sizes(
        layers=1,
        head_width=4,
        source_vocabulary=source,
        target_vocabulary=target,
        source_pad=0,
        target_pad=0,
    )
    output = as_floats(
        build_with_parameters(subject, draw, "embedding", sizes).output(every_token(sizes))
    )
    same_shape(output, (source, 1, sizes.d_model))
    finite(output)
    different = len(np.unique(output[:, 0], axis=0))
    holds(different == source, f"{source} ids have {different} different vectors.", actual=output)


@check("embedding.out-of-range-refused")
def test_out_of_range_refused(subject: Subject, draw: Draw) -> None:
    sizes, probe = build(subject, draw)
    first = sizes.source_vocabulary
    _refuses(subject, draw, sizes, probe, (first, first + 1, 2 * first, first + 1000))


@check("embedding.negative-id-refused")
def test_negative_id_refused(subject: Subject, draw: Draw) -> None:
    if subject.limits.negative_ids:
        raise Absent("a negative id is a marker whose row is zeros")
    sizes, probe = build(subject, draw)
    _refuses(subject, draw, sizes, probe, (-1, -100, -sizes.source_vocabulary))


def _refuses(
    subject: Subject, draw: Draw, sizes: Sizes, probe: Probe, foreign: tuple[int, ...]
) -> None:
    """Demand that each of the `foreign` ids is refused among others that are accepted."""
    require_index_errors(subject)
    for word in foreign:
        tokens = draw_tokens(draw, sizes)
        finite(probe.output(tokens))
        tokens[-1, draw.integer(0, tokens.shape[1] - 1)] = word
        refuses(
            subject,
            f"looking up {word} in {sizes.source_vocabulary} ids",
            partial(probe.output, tokens),
        )


@check("embedding.no-positions")
def test_no_positions(subject: Subject, draw: Draw) -> None:
    sizes, probe = build(subject, draw)
    alone = probe.output(every_token(sizes))[:, 0]
    different = len(np.unique(as_floats(alone), axis=0))
    holds(different > 1, f"All {len(alone)} ids have the same vector.", actual=alone)
    tokens = draw_tokens(draw, sizes, low=2)
    equal(probe.output(tokens), alone[tokens], what="output, compared with each id alone")


@check("embedding.gradient-only-to-used-rows")
def test_gradient_only_to_used_rows(subject: Subject, draw: Draw) -> None:
    sizes, probe = build_loaded(subject, draw)
    tokens = draw_repeated_tokens(draw, sizes)
    pulled, _ = _pulled(draw, probe, tokens)
    used = np.isin(np.arange(len(pulled)), tokens)
    stray = np.flatnonzero(pulled.any(axis=-1) & ~used)
    holds(
        stray.size == 0,
        f"The ids {stray.tolist()} do not occur, and their rows have a gradient of up to "
        f"{largest(pulled[~used]):.6g}.",
        actual=pulled,
    )
    silent = np.flatnonzero(~pulled.any(axis=-1) & used & ~_kept_for_padding(sizes))
    holds(
        silent.size == 0,
        f"The ids {silent.tolist()} occur, and no gradient reaches their rows.",
        actual=pulled,
    )


@check("embedding.repeated-tokens")
def test_repeated_tokens(subject: Subject, draw: Draw) -> None:
    sizes, probe = build_loaded(subject, draw)
    tokens = draw_repeated_tokens(draw, sizes)
    pulled, cotangent = _pulled(draw, probe, tokens)
    factor = factor_of(probe.output(tokens), probe.parameters["weight"][tokens])
    wanted = np.zeros_like(pulled)
    np.add.at(wanted, tokens, factor * cotangent)
    frozen = _kept_for_padding(sizes) & ~pulled.any(axis=-1)
    near(
        subject,
        pulled,
        wanted,
        what="gradient of the table, compared with the sum over occurrences",
        terms=tokens.size,
        size=abs(factor) * largest(cotangent) * tokens.size,
        rows=~frozen,
    )


@check("embedding.pad-row")
def test_pad_row(subject: Subject, draw: Draw) -> None:
    sizes, probe = build_loaded(subject, draw)
    pulled, _ = _pulled(draw, probe, every_token(sizes))
    pad = sizes.source_pad
    trained, declared = bool(pulled[pad].any()), subject.limits.trained_pad
    holds(
        trained or not declared,
        f"No gradient reaches the row of the pad id {pad}, as with padding_idx, and this is not "
        f"declared: Limits(trained_pad=False) says so.",
        actual=pulled,
    )
    holds(
        declared or not trained,
        f"The row of the pad id {pad} is declared as not trained (trained_pad=False), and it has a "
        f"gradient of up to {largest(pulled[pad]):.6g}.",
        actual=pulled,
    )


@check("embedding.frozen-row-is-zero")
def test_frozen_row_is_zero(subject: Subject, draw: Draw) -> None:
    sizes = draw.sizes(layers=1)
    probe = subject.part("embedding", sizes)
    initial = probe.do("exporting the initial table", lambda part: part.export())
    if "weight" not in initial:
        raise Absent(f"the embedding of {subject.name} has no parameter map")
    probe.parameters = {name: as_floats(values) for name, values in initial.items()}
    pulled, _ = _pulled(draw, probe, every_token(sizes))
    frozen = ~pulled.any(axis=-1)
    rest = largest(probe.parameters["weight"][frozen])
    holds(
        rest == 0,
        f"The rows {np.flatnonzero(frozen).tolist()} receive no gradient and hold numbers up to "
        f"{rest:.6g} initially.",
        actual=initial["weight"],
    )


def _pulled(draw: Draw, probe: Probe, tokens: Array) -> tuple[Floats, Floats]:
    """Return the gradient of the table for a drawn cotangent, and the cotangent."""
    cotangent = draw.floats(*tokens.shape, probe.sizes.d_model)
    gradient = probe.vjp((tokens,), cotangent)
    return gradient_of(probe, gradient, "weight"), cotangent


def _kept_for_padding(sizes: Sizes) -> Array:
    """Return which row a table may keep for padding."""
    kept: Array = np.arange(sizes.source_vocabulary) == sizes.source_pad
    return kept
