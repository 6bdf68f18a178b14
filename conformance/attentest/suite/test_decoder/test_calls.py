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


@check("decoder.shapes", examples=2)
def test_shapes(subject: Subject, draw: Draw) -> None:
    kinds, size, batch = ("causal", "none"), draw.lengths(), draw.choose((2, 3))
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=kinds, batch=batch, lengths=size)
    steps, rows = size
    for part in ((1, steps, rows), (batch, 1, rows), (batch, steps, 1), (1, 1, 1)):
        same_precision(case.probe, _cut(case, *part).output())
    before = case.output()
    same_precision(case.probe, before)
    depends_on_any_memory(draw, case, before)


def _cut(case: LayerCall, samples: int, steps: int, rows: int) -> LayerCall:
    """Return the call of the first samples, steps and rows of memory, all of them real."""
    mask, source_mask = case.mask, case.source_mask
    if source_mask is not None:
        source_mask = np.ones_like(source_mask[:samples, ..., :rows])
    return case.but(
        x=case.x[:samples, :steps],
        mask=None if mask is None else mask[..., :steps, :steps],
        memory=case.decoder_memory[:samples, :rows],
        source_mask=source_mask,
    )


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
        shortest=min(3, subject.limits.length or 3),
    )
    assert case.source_mask is not None
    case = case.but(source_mask=draw.differing(case.source_mask))
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


@check("decoder.input-untouched", examples=2)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=TARGET, source_kinds=("padding",))
    before = case.output().copy()
    equal(case.output(), before, what="output of the second call")
    depends_on_any_memory(draw, case, before)
