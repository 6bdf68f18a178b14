"""A mask that a call makes where none is given, compared with what a given one means."""

from collections.abc import Callable

import pytest
import torch

from attentest.targets.adapt.makers.default_masks import default_meaning, demand_default
from attentest.targets.adapt.reading import Contrary


def padded(ids, mask=None, pad_id=0):
    if mask is None:
        mask = ids != pad_id
    return ids + mask


def conditional(ids, mask=None):
    mask = ids.eq(0)[:, None, None] if mask is None else mask
    return ids + mask


def given_first(ids, mask=None):
    mask = mask if mask is not None else torch.ones_like(ids).bool()
    mask = mask[:, None, None]
    return ids + mask


def inverted_where_given(ids, mask=None):
    mask = ids == 0 if mask is None else ~mask
    return ids + mask


def inverted_before(ids, mask=None):
    if mask is not None:
        mask = ~mask
    if mask is None:
        mask = ids == 0
    return ids + mask


def triangle(ids, mask=None):
    if mask is None:
        mask = torch.ones(len(ids), len(ids)).triu(1)
    return ids + mask


def compared(ids, mask=None):
    if mask is None:
        mask = ids.sum(-1) != ids.shape[0]
    return ids + mask


def zeros(ids, mask=None):
    if mask is None:
        mask = torch.zeros(len(ids), len(ids))
    return ids + mask


@pytest.mark.parametrize(
    ("call", "meaning"), [(padded, "keep"), (conditional, "blocks"), (given_first, "keep")]
)
def test_given_mask_that_is_the_contrary_of_the_default_is_asked_about(
    call: Callable[..., object], meaning: str
) -> None:
    assert default_meaning(call, "mask")[0] == meaning
    demand_default("Encoder", "mask", meaning, call)
    demand_default("Encoder", "mask", "additive", call)
    contrary = {"keep": "blocks", "blocks": "keep"}[meaning]
    with pytest.raises(Contrary, match=f"--set mask=mask:{meaning}"):
        demand_default("Encoder", "mask", contrary, call)


@pytest.mark.parametrize(
    "call", [inverted_where_given, inverted_before, triangle, compared, zeros, torch.relu]
)
def test_default_that_says_nothing_of_a_given_mask_is_left(call: Callable[..., object]) -> None:
    assert default_meaning(call, "mask")[0] == ""
