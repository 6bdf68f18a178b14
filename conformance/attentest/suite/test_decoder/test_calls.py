"""Checks of the chapter `decoder`: shapes, samples and the caller's arrays."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import LAYER, PADDED, STACK, TARGET, depends_on_any_memory
from attentest.testing.assertions import equal
from attentest.testing.common import same_precision
from attentest.testing.dependence import (
    depends_on_visible_positions,
    output_unchanged,
    replace_positions,
)
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import LayerCall, draw_call, rows_agree


@check("decoder.shapes", examples=4)
def test_shapes(subject: Subject, draw: Draw) -> None:
    size = draw.choose((draw.lengths(), (1, 1), (1, draw.length(2)), (draw.length(2), 1)))
    batch = draw.choose((2, 1, 3))
    kinds = ("causal", "none")
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=kinds, batch=batch, lengths=size)
    before = case.output()
    same_precision(case.probe, before)
    depends_on_any_memory(draw, case, before)


@check("decoder.batch-independence", examples=6)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    case = draw_call(
        subject,
        draw,
        STACK,
        mapped=False,
        kinds=PADDED,
        source_kinds=("padding",),
        batch=draw.choose((2, 3)),
        shortest=2,
    )
    before = case.output()
    sample = draw.integer(0, len(case.x) - 1)
    others = np.arange(len(case.x)) != sample
    for name, given in (("x", case.x), ("memory", case.decoder_memory)):
        where = np.broadcast_to(others[:, None], given.shape[:2])
        after = case.but(**{name: replace_positions(draw, given, where)}).output()
        rows = case.rows & ~others[:, None]
        output_unchanged(
            before, after, rows, what=f"of a sample after changing {name} of the others"
        )
    for own in (slice(number, number + 1) for number in range(len(case.x))):
        alone = sample_alone(case, own)
        rows_agree(alone, alone.output(), before[own], what="output of a sample alone")
    depends_on_visible_positions(draw, case, before)


def sample_alone(case: LayerCall, own: slice) -> LayerCall:
    """Return the call of one sample alone."""
    assert case.mask is not None
    assert case.source_mask is not None
    return case.but(
        x=case.x[own],
        memory=case.decoder_memory[own],
        mask=case.mask[own],
        source_mask=case.source_mask[own],
    )


@check("decoder.input-untouched", examples=4)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=TARGET, source_kinds=("padding",))
    before = case.output().copy()
    equal(case.output(), before, what="output of the second call")
    depends_on_any_memory(draw, case, before)
