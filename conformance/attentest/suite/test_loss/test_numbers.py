"""Checks of the value of the loss, and of the choices that decide on it."""

from collections.abc import Sequence

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_loss.cases import (
    COMPONENT,
    check_loss,
    closed_form,
    draw_case,
    draw_output,
    draw_sizes,
    draw_target,
    number,
    output_of,
    pulled_back,
    scales,
    smoothing_rates,
    to_logits,
)
from attentest.testing.assertions import near
from attentest.testing.common import (
    HALF_PRECISIONS,
    matches_declared_option,
    same_precision,
)
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, WORDS, SizesInUse, at_sizes_in_use
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.setting import Floats, Tokens


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = draw_sizes(draw, vocabulary=size.ids)
    check_loss(*draw_case(subject, draw, sizes=sizes, length=size.length))


@check("loss.formula", examples=10, in_use=at_sizes_in_use(_formula_in_use, LONG, WORDS))
def test_formula(subject: Subject, draw: Draw) -> None:
    check_loss(*draw_case(subject, draw, scale=draw.choose(scales(subject, 1e-3, 5.0))))


@check("loss.worked-example", examples=1)
def test_worked_example(subject: Subject, draw: Draw) -> None:
    if subject.limits.smoothing:
        raise Absent(f"the label smoothing of {subject.name} is fixed")
    sizes = draw_sizes(draw, vocabulary=3, rates=(0.0,), pads=(0,))
    probe = subject.part(COMPONENT, sizes)
    logits = np.log(np.array([[[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]]]))
    found = probe.output(output_of(subject, logits), np.array([[2, 1]]))
    parts = {"tokens": 2, "sentences": 1, "none": 1}[subject.choices.loss_normaliser]
    near(subject, found, np.array(np.log(32 / 5) / parts), terms=6, what="loss")


@check("loss.input")
def test_input(subject: Subject, draw: Draw) -> None:
    declared = subject.choices.loss_input
    # Log-probabilities are logits too: a loss that normalises them once more is as correct.
    names = [one for one in CHOICES["loss_input"].names if one != "logits"]
    others = names if declared == "log-probabilities" else CHOICES["loss_input"].names
    probe, output, target = draw_case(subject, draw)
    _declared(probe, output, target, choice="loss_input", others=others)


@check("loss.smoothed-mass")
def test_smoothed_mass(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, rates=smoothing_rates(subject))
    probe, output, target = draw_case(subject, draw, sizes=sizes, scale=2.0)
    names = CHOICES["smoothed_mass"].names
    _declared(probe, output, target, choice="smoothed_mass", others=names)


@check("loss.measure")
def test_measure(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, rates=smoothing_rates(subject))
    probe, output, target = draw_case(subject, draw, sizes=sizes)
    names = CHOICES["loss_measure"].names
    _declared(probe, output, target, choice="loss_measure", others=names)


@check("loss.normaliser")
def test_normaliser(subject: Subject, draw: Draw) -> None:
    sizes, batch, length = draw_sizes(draw), draw.choose((2, 3, 5)), draw.length(3)
    probe = subject.part(COMPONENT, sizes)
    output = draw_output(draw, sizes, batch, length)
    target = draw_target(draw, sizes, batch, length)
    target[:1] = draw.tokens(1, length, sizes.target_vocabulary, sizes.target_pad)
    names = CHOICES["loss_normaliser"].names
    _declared(probe, output, target, choice="loss_normaliser", others=names)


def _declared(
    probe: Probe, output: Floats, target: Tokens, *, choice: str, others: Sequence[Value]
) -> None:
    if probe.precision in HALF_PRECISIONS:
        raise Absent(f"{probe.precision} does not distinguish the options of {choice}")
    with np.errstate(all="ignore"):  # logarithms of what is no probability
        found = probe.output(output, target)
        matches_declared_option(probe, output, target, actual=found, choice=choice, others=others)


@check("loss.pad-word")
def test_pad_word(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, rates=smoothing_rates(subject))
    probe, output, target = draw_case(subject, draw, sizes=sizes)
    kind, pad = subject.choices.loss_input, sizes.target_pad
    found = to_logits(kind, output, pulled_back(probe, output, target))[..., pad]
    wanted = closed_form(probe, output, target)[..., pad]
    near(
        subject,
        found,
        wanted,
        what="gradient of the pad word's logit",
        terms=output.shape[-1],
        size=1.0 / number(probe, target),
    )


@check("loss.aligned", examples=8)
def test_aligned(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    length = draw.length(2)
    probe, output, target = draw_case(subject, draw, sizes=sizes, length=length)
    check_loss(probe, output, target)
    # One step is right about its target and all others are even: at which one, decides.
    row, step = draw.integer(0, len(target) - 1), draw.integer(0, length - 1)
    whole = draw.tokens(len(target), length, sizes.target_vocabulary, sizes.target_pad)
    logits = np.zeros((*target.shape, output.shape[-1]))
    logits[row, step, whole[row, step]] = 3.0
    check_loss(probe, output_of(subject, logits), whole)


@check("loss.shift-invariance")
def test_shift_invariance(subject: Subject, draw: Draw) -> None:
    if subject.choices.loss_input != "logits":
        raise Absent("the loss takes no logits")
    probe, output, target = draw_case(subject, draw)
    far = {"bfloat16": 4.0, "float16": 8.0}.get(subject.precision, 100.0)
    shift = far * draw.floats(*target.shape, 1)
    near(
        subject,
        probe.output(output + shift, target),
        as_floats(probe.output(output, target)),
        what="loss after a number was added to all logits of each step",
        terms=output.size,
        size=(1.0 + 4 * far) * target.size / number(probe, target),
    )


@check("loss.order")
def test_order(subject: Subject, draw: Draw) -> None:
    sizes, batch, length = draw_sizes(draw), draw.choose((2, 3, 5)), draw.length()
    probe = subject.part(COMPONENT, sizes)
    output = draw_output(draw, sizes, batch, length)
    target = draw_target(draw, sizes, batch, length)
    order = np.roll(np.arange(batch), draw.integer(1, batch - 1))
    near(
        subject,
        probe.output(output[order], target[order]),
        as_floats(check_loss(probe, output, target)),
        what="loss of the same sequences in another order",
        terms=output.size,
        size=(1.0 + float(np.abs(output).max())) * target.size / number(probe, target),
    )


@check("loss.shape")
def test_shape(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = subject.part(COMPONENT, sizes)
    batch, length = draw.choose(((1, 1), (1, 3), (3, 1), (2, 3)))
    output = draw_output(draw, sizes, batch, length)
    target = draw.tokens(batch, length, sizes.target_vocabulary, sizes.target_pad)
    found = check_loss(probe, output, target)
    same_precision(probe, found)
