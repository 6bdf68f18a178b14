"""Checks of the chapter `model`: history, arrays of the caller, batches, global state."""

import numpy as np

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
    ModelCall,
    agree,
    call_model,
    draw_call,
    exchange_tokens,
    output_changes,
    real_token,
)
from attentest.testing.assertions import equal
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw
from attentest.testing.global_state import leaves_process_unchanged


@check("model.no-history", examples=2)
def test_no_history(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    given, rows = case.output(), case.real
    first = given.copy()
    for more in (0, 1):  # a cache shows with equal shapes, or after a longer call
        other = _another(draw, case, more)
        second = other.output().copy()
        what = "output of the first call, looked at after the second,"
        equal(given[rows], first[rows], what=what)
        agree(case, case.output(), first, rows=rows, what="output of the first call made once more")
        fresh = subject.part("model", case.sizes, parameters=case.probe.parameters)
        what = "output of a fresh model, compared with one called before,"
        agree(other, second, call_model(fresh, *other.inputs), rows=other.real, what=what)


def _another(draw: Draw, case: ModelCall, more: int) -> ModelCall:
    """Draw another call of the same model, with `more` samples and tokens if there is room."""
    samples, most = len(case.source) + more, case.sizes.max_length
    source, target = (min(tokens.shape[1] + more, most) for tokens in case.inputs)
    return case.but(
        source=draw.source(samples, source, case.sizes),
        target=draw.target(samples, target, case.sizes),
    )


@check("model.sliced-tokens", examples=2)
def test_sliced_tokens(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, batch=draw.choose((2, 3)))
    subject.record.note("from here on the tokens are slices of longer arrays")
    wide = [np.pad(tokens, ((0, 0), (0, 1)), constant_values=1) for tokens in case.inputs]
    sliced = call_model(case.probe, wide[0][:, :-1], wide[1][:, :-1])
    agree(case, sliced, case.output(), rows=case.real, what="output for slices of longer arrays")
    turned = call_model(case.probe, np.asfortranarray(case.source), np.asfortranarray(case.target))
    agree(case, turned, case.output(), rows=case.real, what="output for transposed arrays")


@check("model.input-untouched", examples=2)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    case.source[0, -1] = case.sizes.source_pad
    case.source[0, 0] = real_token(case.sizes.source_pad)
    case.target[0, -1] = case.sizes.target_pad
    case.target[0, 0] = real_token(case.sizes.target_pad)
    case.output()
    memory = case.probe.output(case.source, method="encode")
    case.probe.output(case.target, memory, case.source, method="decode")


@check("model.step-by-step", examples=2)
def test_step_by_step(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(draw.length(2, 6), draw.length(2, 5)))
    # A first sequence without padding: a part of one real token cannot be missing.
    sizes, source = case.sizes, case.source.copy()
    source[0] = draw.tokens(1, source.shape[1], sizes.source_vocabulary, sizes.source_pad)
    case = case.but(source=source)
    memory = case.probe.output(case.source, method="encode")
    whole = case.probe.output(case.target, memory, case.source, method="decode")
    same_precision(case.probe, whole)
    for steps in range(1, case.target.shape[1] + 1):
        prefix = case.target[:, :steps]
        output = case.probe.output(prefix, memory, case.source, method="decode")
        agree(
            case,
            output[:, -1],
            whole[:, steps - 1],
            rows=case.real[:, steps - 1],
            what=f"output of step {steps} of a decoding step by step",
        )


@check("model.batch-independence", examples=2)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    shortest = min(4, subject.limits.length or 4)
    lengths = draw.length(shortest - 1), draw.length(shortest)
    case = draw_call(subject, draw, batch=draw.choose((3, 2)), lengths=lengths)
    sizes = case.sizes
    source, target = sizes.source_vocabulary, sizes.target_vocabulary
    case = case.but(
        source=draw.unevenly_padded(case.source, source, sizes.source_pad, role="source"),
        target=draw.unevenly_padded(case.target, target, sizes.target_pad, role="target", first=1),
    )
    before = case.output()
    for own in (slice(number, number + 1) for number in range(len(before))):
        alone = case.but(source=case.source[own], target=case.target[own])
        what = f"output of pair {own.start}, compared with that beside other pairs,"
        agree(alone, alone.output(), before[own], rows=alone.real, what=what)
    moved = case.target.copy()
    moved[0] = exchange_tokens(draw, moved[0], target, sizes.target_pad)
    after, rows = case.but(target=moved), case.real
    rows[1:] = False
    output_changes(case, after, before, after.output(), rows, "for other words in pair 0")


@check("model.global-state-untouched", examples=1)
def test_global_state_untouched(subject: Subject, draw: Draw) -> None:
    components = subject.backend.components
    raised = []
    for component in components:
        try:
            leaves_process_unchanged(subject, draw, component)
        except BackendError as error:  # the clauses of the component report it
            raised.append(error)
    if raised and len(raised) == len(components):
        raise raised[0]
