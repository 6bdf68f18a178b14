"""Masks whose meaning no word says and no probing call shows exactly."""

import re
from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        query, key, value = (
            part(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        if mask is not None:
            scores = SCORES
        weights = scores.softmax(-1)
        if mask is not None:
            weights = WEIGHTS
        output = self.out_proj((weights @ value).transpose(1, 2).flatten(2))
        return output if mask is None else OUTPUT
"""
BEHIND = "output * mask.unsqueeze(-1).to(output.dtype)"
PADDED = "output.masked_fill(mask.bool().unsqueeze(-1), 0.0)"
SAME = "scores.where(mask[:, None, :, None] == mask[:, None, None, :], -1e9)"
HIDES = "scores.masked_fill(mask[:, None, None, :].bool(), FILL)"
KEEPS = "scores.masked_fill(~mask[:, None, None, :].bool(), FILL)"
FIRST = f"torch.cat([({HIDES})[:, :1], scores[:, 1:]], 1)"
FORMULA = "multi_head_attention.formula"


def code(scores: str = "scores", weights: str = "weights", output: str = "output") -> str:
    """Return the code of attention whose mask is used in these expressions."""
    return CODE.replace("SCORES", scores).replace("WEIGHTS", weights).replace("OUTPUT", output)


@pytest.mark.proof
@pytest.mark.parametrize("output", [BEHIND, PADDED])
def test_a_mask_of_rows_is_asked_about_and_judged_without(tmp_path: Path, output: str) -> None:
    asked = r"Nothing says what an entry of the mask .* --set mask=keep or --set mask=blocks"
    with pytest.raises(Unclear, match=asked):
        adapted(tmp_path, "Attention", code(output=output))
    backend = adapted(tmp_path, "Attention", code(output=output), given={"mask": None})
    assert broken(backend, FORMULA) == []


def test_a_mask_of_rows_is_judged_as_the_user_says(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Attention", code(output=BEHIND), mask="keep")
    assert broken(backend, FORMULA)


@share(2, rest=1)
@pytest.mark.parametrize("name", ["mask", "attention_mask"])
def test_a_mask_under_which_padding_sees_padding_alone_is_asked_about(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(Unclear, match=rf"{name} hides the rows of queries as well as keys"):
        adapted(tmp_path, "Attention", code(SAME).replace("mask", name))


@pytest.mark.parametrize("hidden", [HIDES, KEEPS])
def test_a_mask_that_hides_is_read_either_way(tmp_path: Path, hidden: str) -> None:
    backend = adapted(tmp_path, "Attention", code(hidden.replace("FILL", "-1e9")))
    assert broken(backend, FORMULA, "multi_head_attention.masked-keys-ignored") == []


@share(4, rest=1)
@pytest.mark.parametrize("fill", ["-1e9", "-torch.inf"])
@pytest.mark.parametrize("hidden", [HIDES, KEEPS])
def test_a_mask_of_code_that_is_causal_by_itself_is_read_either_way(
    tmp_path: Path, hidden: str, fill: str
) -> None:
    """With an infinite one, the first rows have no numbers under the other meaning."""
    causal = (
        f"scores + torch.full(scores.shape[-2:], {fill}, dtype=scores.dtype).triu(1)\n        if"
    )
    source = code(hidden.replace("FILL", fill)).replace("if mask", f"scores = {causal} mask", 1)
    assert broken(adapted(tmp_path, "Attention", source), FORMULA) == []


@share(4, rest=1)
@pytest.mark.parametrize(
    ("scores", "weights", "said"),
    [
        (HIDES.replace("FILL", "-1.0"), "weights", "True blocks"),
        (KEEPS.replace("FILL", "-1.0"), "weights", "True may be attended"),
        (FIRST.replace("FILL", "-1e9"), "weights", "True blocks"),
        ("scores", HIDES.replace("scores", "weights").replace("FILL", "0.0"), "True blocks"),
        (
            KEEPS.replace(":, None, None, :", ":, None, :, None").replace("FILL", "-1e9"),
            "weights",
            "True may be attended",
        ),
        (
            HIDES.replace(":, None, None, :", ":, None, :, None").replace("FILL", "-1e9"),
            "weights",
            "True blocks",
        ),
        (
            HIDES.replace("mask[", "mask.roll(1, -1)[").replace("FILL", "-1e9"),
            "weights",
            "True blocks",
        ),
        ("scores", "weights", "True may be attended"),
    ],
)
def test_a_mask_that_hides_in_part_or_nothing_is_a_violation(
    tmp_path: Path, scores: str, weights: str, said: str
) -> None:
    backend = adapted(tmp_path, "Attention", code(scores, weights))
    assert said in "\n".join(backend.understood)
    assert broken(backend, FORMULA, "multi_head_attention.masked-keys-ignored")


def test_a_mask_that_blocks_is_assumed_where_no_word_says_it(tmp_path: Path) -> None:
    hides, assumed = HIDES.replace("FILL", "float('-inf')"), "assumed as nothing says it"
    backend = adapted(tmp_path, "Attention", code(hides))
    assert any("True blocks" in one and assumed in one for one in backend.assumed)
    assert broken(backend, FORMULA) == []
    for documented in (
        re.sub(r"\bmask\b", "key_padding_mask", code(hides)),
        code(hides).replace("mask=None):", 'mask=None):\n        """mask: True is ignored."""'),
        code(KEEPS.replace("FILL", "float('-inf')")),
    ):
        backend = adapted(tmp_path, "Attention", documented)
        assert not any(assumed in one for one in backend.understood)


def test_number_that_hides_no_key_is_named_with_its_line(tmp_path: Path) -> None:
    weak = code(HIDES.replace("FILL", "-1e-9"))
    with pytest.raises(Unclear, match=r"filled with -1e-09 \(own\.py:\d+\), which hides no key"):
        adapted(tmp_path, "Attention", weak)
