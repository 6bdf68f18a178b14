"""The lines of code of losses."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mistaken_code import adapted
from proof import share

from attentest.analysis.lines.formula import Formula
from attentest.analysis.lines.formulas import build
from attentest.analysis.lines.inputs import SIZES, USUAL, Inputs
from attentest.analysis.lines.locate import locate
from attentest.harness.oracle import Reference
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import CHOICES, Choices
from attentest_spec.loss import loss
from attentest_spec.setting import Setting

AXES = ("loss_input", "smoothed_mass", "loss_measure", "loss_normaliser")


@pytest.mark.parametrize("values", [*product(*(CHOICES[one].names for one in AXES))], ids="-".join)
def test_formula_of_a_loss_is_the_references(values: tuple[str, ...]) -> None:
    choices = Choices().but(**dict(zip(AXES, values, strict=True)))
    subject = Subject(Reference(choices), choices=choices)
    for kind in ("none", "padding"):
        given = Inputs(subject, SIZES, np.random.default_rng(3), kind, USUAL).of("loss")
        formula = Formula(SIZES, choices, {})
        build(formula, "loss", "", dict(zip(("output", "target"), given, strict=True)))
        expected = loss(Setting(SIZES, choices), *given)
        np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12)


CODE = """
import torch
import torch.nn.functional as F
from torch import nn


class DivergenceLoss(nn.Module):
    def __init__(self, size, padding_idx, smoothing=0.0):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx, self.size = padding_idx, size
        self.smoothing = smoothing

    def forward(self, x, target):
        wanted = torch.full_like(x, self.smoothing / (self.size - 2))
        wanted.scatter_(1, target.unsqueeze(1), 1.0 - self.smoothing)
        wanted[:, self.padding_idx] = 0
        wanted = wanted.masked_fill((target == self.padding_idx).unsqueeze(1), 0.0)
        return self.criterion(x, wanted)


class SmoothedLoss(nn.Module):
    def __init__(self, label_smoothing=0.1, ignore_index=-100):
        super().__init__()
        self.label_smoothing, self.ignore_index = label_smoothing, ignore_index

    def forward(self, logits, labels):
        logs = F.log_softmax(logits, -1)
        mask = labels != self.ignore_index
        labels = labels.masked_fill(~mask, 0)
        of_target = -logs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        of_all = -logs.mean(-1)
        losses = (1 - self.label_smoothing) * of_target + self.label_smoothing * of_all
        return (losses * mask).sum() / mask.sum()


def cross_entropy(logits, targets, pad_id):
    logits = logits.reshape(-1, logits.size(-1))
    targets = targets.reshape(-1)
    return F.cross_entropy(logits, targets, ignore_index=pad_id)
"""

MISTAKES = [
    ("DivergenceLoss", "1.0 - self.smoothing)", "1.0)", "1 for the target"),
    ("DivergenceLoss", "wanted[:, self.padding_idx] = 0", "wanted[0, self.padding_idx] = 0", ""),
    ("SmoothedLoss", "-logs.mean(-1)", "-logs.sum(-1)", "the sum of the logarithms"),
    ("SmoothedLoss", "/ mask.sum()", "/ mask.numel()", "the number of all targets, padding too"),
    ("SmoothedLoss", "(losses * mask).sum()", "losses.sum()", "sum of all losses, padding too"),
]


@share(8, rest=1)
@pytest.mark.parametrize(("name", "right", "wrong", "computed"), MISTAKES)
def test_line_of_a_wrong_loss_is_named(
    tmp_path: Path, name: str, right: str, wrong: str, computed: str
) -> None:
    source = CODE.replace(right, wrong)
    assert source != CODE
    verdict = judge(Bench.for_status(adapted(tmp_path, name, source)), "loss.formula")
    assert verdict.status == "violation"
    bench = Bench(adapted(tmp_path, name, source))
    found = judge(bench, "loss.formula").location
    assert found is not None
    assert wrong in found.code
    assert computed in found.computed


@pytest.mark.parametrize("name", ["DivergenceLoss", "SmoothedLoss", "cross_entropy"])
def test_sound_losses_have_no_line(tmp_path: Path, name: str) -> None:
    subject = Bench(adapted(tmp_path, name, CODE)).subject()
    part = subject.part("loss", subject.limits.fitted(SIZES))
    kinds = ("none", "padding")
    judged = judge(Bench(subject.backend), "loss.smoothing-refused")
    assert judged.location is None
    for given in (Inputs(subject, part.sizes, np.random.default_rng(4), k, USUAL) for k in kinds):
        part(*given.of("loss"))
    assert locate(subject, subject.trace, {}) is None
