"""Masks of one model with several conventions, and masks in single precision for a kernel."""

import sys

import pytest
from folders import SUPPORT

import attentest
from attentest.targets.models.adaptation import AdaptedWhole

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))
FILE = WILD / "masks_of_several_kinds.py"
SLUGS = ["model.formula", "model.causality"]


def test_each_mask_has_its_own_convention() -> None:
    read = attentest.adapted(f"{FILE}:Translator")
    assert isinstance(read, AdaptedWhole)
    assert "float64" not in read.limits.precisions
    assert attentest.check(f"{FILE}:Translator", clauses=SLUGS).conforms


@pytest.mark.proof
def test_a_late_mask_is_found() -> None:
    report = attentest.check(f"{FILE}:LateMask", clauses=SLUGS)
    assert not report.conforms
