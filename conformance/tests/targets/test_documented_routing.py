"""Mixtures of experts whose documentation says that the weights are divided by their sum."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

CODE = '''
import torch
from torch import nn
from torch.nn import functional as F


class Expert(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MixtureOfExperts(nn.Module):
    """Sparse layer: top-k experts, weights renormalised to sum to one."""

    def __init__(self, d_model: int, d_ff: int, n_experts: int = 8, top_k: int = 2):
        super().__init__()
        self.k = top_k
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(d_model, d_ff) for _ in range(n_experts))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = self.router(rows).softmax(-1).topk(self.k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == number)
            out.index_add_(0, row, expert(rows[row]) * weights[row, slot, None])
        return out.view(x.shape)
'''
LINE = "        weights = weights / weights.sum(-1, keepdim=True)\n"
WRONG = CODE.replace(LINE, "")
SAID = "weights renormalised to sum to one"


def test_weights_that_follow_it_are_read(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MixtureOfExperts", CODE)
    assert dict(backend.choices).get("routing_weights", "renormalised") == "renormalised"


def test_weights_that_contradict_it_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"not divided by their sum.*routing_weights=renormalised"):
        adapted(tmp_path, "MixtureOfExperts", WRONG)


@pytest.mark.parametrize(
    ("words", "asked"),
    [("The router renormalises its weights.", True), ("Renormalised images are read.", False)],
)
def test_words_of_the_file_on_its_router_count(words: str, *, asked: bool, tmp_path: Path) -> None:
    source = f'"""{words}"""\n{WRONG.replace(SAID, "a sum")}'
    if not asked:
        assert adapted(tmp_path, "MixtureOfExperts", source).name
        return
    with pytest.raises(Unclear, match=r"The router renormalises its weights"):
        adapted(tmp_path, "MixtureOfExperts", source)


@pytest.mark.parametrize("words", ["weights that need not sum to one", "weights as scored"])
def test_other_documentation_asks_nothing(tmp_path: Path, words: str) -> None:
    backend = adapted(tmp_path, "MixtureOfExperts", WRONG.replace(SAID, words))
    assert backend.choices["routing_weights"] == "as-scored"


def test_choice_of_the_user_answers_it(tmp_path: Path) -> None:
    choices = {"routing_weights": "as-scored"}
    backend = adapted(tmp_path, "MixtureOfExperts", WRONG, choices=choices)
    assert backend.choices["routing_weights"] == "as-scored"


@pytest.mark.parametrize("several", [False, True])
def test_one_expert_that_is_weighed_by_its_score_is_asked_about(
    several: bool, tmp_path: Path
) -> None:
    """Published code divides the weights `if top_k > 1`: with one expert alone they are scores."""
    divided = LINE.replace("weights =", "if self.k > 1:\n            weights =", 1)
    source = CODE.replace(LINE, divided if several else LINE)
    if not several:
        assert adapted(tmp_path, "MixtureOfExperts", source).name
        return
    with pytest.raises(Unclear, match=r"weighs the only one by its score.*--anyway"):
        adapted(tmp_path, "MixtureOfExperts", source)
