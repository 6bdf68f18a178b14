"""Whole models whose output does not depend on the tokens of the source."""

import torch
from torch import nn
from torch.nn.functional import one_hot

from attentest.targets.models.probing import Probe, hides_tokens, ignores_source
from attentest_spec import Sizes

SIZES = Sizes(source_pad=21, target_pad=22, source_vocabulary=23, target_vocabulary=23)
PROBE = Probe(nn.Identity(), SIZES)


def unread(model, source, target):
    return one_hot(target, SIZES.target_vocabulary).double()


def read(model, source, target):
    return unread(model, source, target) + source.double().cumsum(1)[:, :4, None]


def inverted(model, source, target):
    """Read the columns of padding alone, or all where there is none."""
    hidden = source != SIZES.source_pad
    return read(model, source * (hidden if hidden.all() else ~hidden), target)


def test_a_model_that_reads_no_source_hides_no_tokens():
    assert ignores_source(PROBE, unread)
    assert not hides_tokens(PROBE, unread)


def test_a_model_that_reads_padding_alone_hides_tokens():
    assert hides_tokens(PROBE, inverted)
    assert not ignores_source(PROBE, inverted)


def test_a_model_that_reads_its_source_does_neither():
    assert not ignores_source(PROBE, read)
    assert not hides_tokens(PROBE, read)


def test_the_probing_source_has_no_padding():
    source, _ = PROBE.tokens
    assert not torch.isin(source, torch.tensor([SIZES.source_pad, SIZES.target_pad])).any()
