"""Lines that add a constant to the right result."""

from dataclasses import replace

import pytest
import torch

from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest_spec.torch import of_function


def shifted(x: torch.Tensor) -> torch.Tensor:
    rows = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return rows + 0.25


def lowered(x: torch.Tensor) -> torch.Tensor:
    rows = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return rows - 1 / x.shape[-1]


@pytest.mark.parametrize(
    ("function", "computed"),
    [
        (shifted, "the normalised row plus 0.25"),
        (lowered, "another value"),
    ],
)
def test_constant_that_is_added_is_named_unless_sizes_change_it(function, computed: str) -> None:
    backend = replace(of_function(function, "rms_norm"), choices={"rms_weight": "none"})
    subject = Bench(backend).subject()
    wrong = next(cases.own_cases(subject, "rms_norm"))
    location = locate(subject, wrong.steps, {})
    assert location.confirmed
    assert (location.computed or "another value") == computed
