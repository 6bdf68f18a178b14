"""Checks of the chapter `model`: history, arrays of the caller, batches, global state."""

import numpy as np

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
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


@check("model.no-history", examples=3)
def test_no_history(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    batch, lengths = draw.batch(), (draw.length(1), draw.length(1))
    if draw.choose((True, False)):  # a cache shows with equal shapes, and fails with others
        batch, lengths = len(case.source), (case.source.shape[1], case.target.shape[1])
    other = case.but(
        source=draw.source(batch, lengths[0], case.sizes),
        target=draw.target(batch, lengths[1], case.sizes),
    )
    given = case.output()
    first = given.copy()
    second = other.output().copy()
    rows = case.real
    equal(given[rows], first[rows], what="output of the first call, looked at after the second,")
    agree(case, case.output(), first, rows=rows, what="output of the first call made once more")
    fresh = subject.part("model", case.sizes, parameters=case.probe.parameters)
    what = "output of a fresh model, compared with one called before,"
    agree(other, second, call_model(fresh, *other.inputs), rows=other.real, what=what)


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


@check("model.step-by-step", examples=3)
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


@check("model.batch-independence", examples=3)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, batch=draw.choose((3, 2)))
    one = draw.integer(0, len(case.source) - 1)
    mine, sizes = np.arange(len(case.source)) == one, case.sizes
    source = draw.source(len(mine), case.source.shape[1], sizes)
    target = draw.target(len(mine), case.target.shape[1], sizes)
    source[one], target[one] = case.source[one], case.target[one]
    before, rows = case.output(), case.real & mine[:, None]
    others = case.but(source=source, target=target)
    what = f"output of pair {one} beside other pairs"
    agree(others, others.output(), before, rows=rows, what=what)
    target = case.target.copy()
    target[one] = exchange_tokens(draw, target[one], sizes.target_vocabulary, sizes.target_pad)
    after = case.but(target=target)
    output_changes(case, after, before, after.output(), rows, f"for other words in pair {one}")


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
