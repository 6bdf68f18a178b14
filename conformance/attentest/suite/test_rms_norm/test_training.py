"""Checks of the chapter `rms_norm`: gradients, trained parameters, untouched inputs."""

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_rms_norm.cases import draw_call
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences
from attentest.testing.norm_calls import trains_its_rows
from attentest_spec import Sizes


@check("rms_norm.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, scale=1.0, widths=(3, 8))
    if not case.loaded and case.probe.parameters:
        raise Absent(f"{subject.name} gives no access to the weight")
    agrees_with_differences(case.probe, case.x, draw=draw)


@check("rms_norm.parameters-trained")
def test_parameters_trained(subject: Subject, draw: Draw) -> None:
    sizes = subject.limits.fitted(Sizes(d_model=draw.integer(2, 12), heads=1))
    probe = subject.part("rms_norm", sizes)
    trains_its_rows(probe)


@check("rms_norm.input-untouched")
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    case.checked_output()  # every call compares its inputs before and after
    if "mode" in case.probe.part.capabilities:
        case.probe.train()
        case.checked_output()
