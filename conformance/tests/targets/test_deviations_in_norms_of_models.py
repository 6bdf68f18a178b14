"""Decoder-only models whose layer norms have the deviation in the place of the variance."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited
from plain_gpt import PLAIN_GPT

from attentest.targets.adapt import Unclear

FORMULA = "language_model.formula"
NORM = """class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        spread = x.std(-1, keepdim=True, unbiased=False)
        return self.gain * (x - x.mean(-1, keepdim=True)) / torch.sqrt(spread + 1e-5) + self.bias


class Block"""
DEVIATING = edited(PLAIN_GPT, ("nn.LayerNorm(width)", "Norm(width)"), ("class Block", NORM))


def test_deviation_in_the_place_of_the_variance_is_a_violation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", DEVIATING)
    said = "\n".join(backend.assumed + backend.understood)  # type: ignore[attr-defined]
    assert "it computes layer norms with the deviation in the place of the variance," in said
    assert broken(backend, FORMULA)


@pytest.mark.parametrize(
    "wrong",
    [
        ("torch.sqrt(spread + 1e-5)", "torch.sqrt(torch.sqrt(spread) + 1e-5)"),
        ("(x - x.mean(-1, keepdim=True)) / ", "x / "),
    ],
    ids=["another root", "no mean"],
)
def test_other_norms_are_a_question(wrong: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="no option of the specification gives its numbers"):
        adapted(tmp_path, "GPT", edited(DEVIATING, wrong))
