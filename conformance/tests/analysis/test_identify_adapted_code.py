"""Choices of code that is read as it is, which declares none."""

import torch
from torch import Tensor

import attentest
from attentest.analysis.identify.finding import NONE_FITS, same


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1) @ value


def test_a_choice_that_code_shows_contradicts_nothing():
    found = attentest.identify(attention)["mask_fill"]
    assert (found.declared, found.measured, found.paper) == (None, -1e9, "exact")
    assert found.agrees


def test_an_option_that_is_named_by_a_number_is_that_number():
    assert same("10000", 10000.0)
    assert same("nan", "nan")
    assert not same("10000", 10001.0)
    assert not same("none", 0.0)
    assert not same(None, 0.0)


def test_an_option_that_is_not_listed_contradicts_nothing():
    stack = attentest.identify(torch.nn.TransformerEncoder)
    assert stack["mask_fill"].status == NONE_FITS
    assert all(one.agrees for one in stack.values())
