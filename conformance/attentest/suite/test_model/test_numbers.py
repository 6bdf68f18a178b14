"""Checks of the chapter `model`: the numbers, in every precision."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
    ModelCall,
    agree,
    draw_call,
    draw_call_in_use,
    real_token,
    steepen,
)
from attentest.testing.assertions import matches
from attentest.testing.common import HALF_PRECISIONS, fits_one_option, same_precision
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, WORDS, SizesInUse, at_sizes_in_use
from attentest_spec.parameters import one_vocabulary


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    target = size.length if size.ids <= LONG.ids else 4
    _matches(draw_call_in_use(subject, draw, size, target=target))


def _matches(case: ModelCall) -> None:
    """Demand the answer of the reference at the real steps of the target."""
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)


@check(
    "model.formula",
    examples=2,
    in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY, LONG, WORDS),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    tied = one_vocabulary(subject.choices)
    case = draw_call(
        subject,
        draw,
        lengths=(draw.length(), draw.length()),
        layers=draw.layers(1, 2),
        head_width=draw.choose((3, 2, 4)),
        source_vocabulary=11 if tied else 13,
        target_vocabulary=11,
    )
    _matches(case)
    size = draw.long(37)
    _matches(draw_call(subject, draw, lengths=(size, size), layers=draw.deepest(), max_length=size))
    heads = draw.several()
    long = draw_call(subject, draw, batch=2, heads=heads, lengths=(size, size), max_length=size)
    for _ in range(2):  # the second call has the shapes of the first, and other padding
        _matches(long.but(target=draw.target(2, size, long.sizes)))


@check("model.embedding-norm", examples=2)
def test_embedding_norm(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    width = case.sizes.d_model
    without = {
        f"{side}_embedding_norm.{leaf}": np.full(width, float(leaf == "gain"))
        for side in ("source", "target")
        for leaf in ("gain", "bias")
    }
    fits_one_option(
        case.probe,
        *case.inputs,
        actual=case.output(),
        choice="embedding_norm",
        without=without,
        rows=case.real,
    )


@check("model.shapes", examples=2)
def test_shapes(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=draw.lengths(), batch=draw.choose((2, 3)))
    case.source[:, 0] = real_token(case.sizes.source_pad)
    for samples, length in ((None, None), (1, None), (None, 1), (1, 1)):
        source, target = (tokens[:samples, :length].copy() for tokens in case.inputs)
        same_precision(case.probe, case.but(source=source, target=target).output())


@check("model.encode-decode-is-forward", examples=2)
def test_encode_decode_is_forward(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, layers=draw.layers(1, 2))
    memory = case.probe.output(case.source, method="encode")
    seen = case.source != case.sizes.source_pad
    matches(
        case.probe, case.source, actual=memory, method="encode", rows=seen, what="encoded source"
    )
    # Another source is encoded meanwhile: the memory that is given counts, and no remembered one.
    other = draw.source(len(case.source), case.source.shape[1], case.sizes)
    case.probe.output(other, method="encode")
    decoded = case.probe.output(case.target, memory, case.source, method="decode")
    agree(
        case,
        decoded,
        case.output(),
        rows=case.real,
        what="output of encode and decode in two steps",
    )


@check("model.float32", examples=2)
def test_float32(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, precision="float32", head_width=4, layers=draw.layers(1, 2))
    actual = case.output()
    same_precision(case.probe, actual)
    matches(case.probe, *case.inputs, actual=actual, rows=case.real, what="output in float32")


@check("model.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    halves = [one for one in HALF_PRECISIONS if one in subject.limits.precisions]
    if not halves:
        raise Absent(f"{subject.name} computes in no half precision")
    for precision in halves:
        case = draw_call(subject, draw, precision=precision, layers=draw.layers(1, 2))
        case.source[0, -1], case.source[0, 0] = (
            case.sizes.source_pad,
            real_token(case.sizes.source_pad),
        )
        steepen(case, draw.choose((100.0, 1.0)))
        same_precision(case.probe, case.output())
