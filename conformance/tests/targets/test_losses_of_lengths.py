"""Losses that get how many targets each row has, and leave out what is behind them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

LOSS = """
import torch
from torch import nn
from torch.nn.functional import log_softmax
from torch.nn.utils.rnn import pack_padded_sequence

class LabelSmoothing(nn.Module):
    def __init__(self, eps=0.1):
        super().__init__()
        self.eps = eps

    def forward(self, inputs, targets, lengths):
        def real(rows):
            return pack_padded_sequence(
                rows, lengths.cpu(), batch_first=True, enforce_sorted=False
            ).data

        inputs, targets = real(inputs), real(targets)
        wanted = torch.zeros_like(inputs).scatter(1, targets.unsqueeze(1), 1.0)
        wanted = wanted * (1 - self.eps) + self.eps / inputs.size(1)
        return -(wanted * log_softmax(inputs, 1)).sum(1).mean()
"""
CLAUSES = ("loss.formula", "loss.padding-ignored", "loss.smoothed-mass")


def test_loss_of_lengths_is_judged_with_padding_at_the_ends(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LabelSmoothing", LOSS)
    said = " ".join(backend.understood)  # type: ignore[attr-defined]
    assert "lengths given as the number of targets in each row" in said
    assert not broken(backend, *CLAUSES)
    exec(backend.written(), {})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ inputs.size(1)", "/ inputs.size(0)"),
        ("rows, lengths.cpu()", "rows, torch.full_like(lengths, rows.size(1)).cpu()"),
        ("(1 - self.eps)", "1"),
    ],
)
def test_mistakes_in_losses_of_lengths_are_no_right_loss(
    right: str, wrong: str, tmp_path: Path
) -> None:
    mistaken = edited(LOSS, (right, wrong))
    try:
        backend = adapted(tmp_path, "LabelSmoothing", mistaken)
    except Unclear:
        return
    assert broken(backend, *CLAUSES)
