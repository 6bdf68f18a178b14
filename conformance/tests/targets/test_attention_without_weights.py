"""Attention that computes no weight for each query and key, and its mistakes and other forms."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited
from proof import share
from test_other_scores import SOURCE

from attentest.targets.adapt import Unclear

PAIRS = SOURCE[SOURCE.index("        s = q @") : SOURCE.index("        return self.out_proj(")]
LINEAR = edited(
    SOURCE,
    (PAIRS, "        context = k.softmax(-2).mT @ v\n"),
    ("(w @ v)", "(q.softmax(-1) * self.width**-0.5 @ context)"),
)
POSITIVE = edited(
    SOURCE,
    (PAIRS, "        q, k = q.exp(), k.exp()\n        sums = q @ k.sum(-2)[..., None]\n"),
    ("(w @ v)", "(q @ (k.mT @ v) / sums)"),
)
ROWS = edited(
    SOURCE,
    (
        PAIRS,
        "        keep = torch.ones(1, 1, 1, 1) if mask is None else mask\n"
        "        keep = keep.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])\n"
        "        rows = []\n"
        "        for i in range(q.shape[2]):\n"
        "            s = (k @ q[:, :, i, :, None]).squeeze(-1) / math.sqrt(self.width)\n"
        "            w = s.masked_fill(keep[:, :, i] == 0, -torch.inf).softmax(-1)\n"
        "            rows.append((w[:, :, None] @ v).squeeze(2))\n"
        "        mixed = torch.stack(rows, 2)\n",
    ),
    ("(w @ v)", "mixed"),
)


@pytest.mark.parametrize("source", [LINEAR, pytest.param(POSITIVE, marks=pytest.mark.proof)])
def test_linear_attention_is_a_question(tmp_path: Path, source: str) -> None:
    with pytest.raises(Unclear, match="no weight for each query and key"):
        adapted(tmp_path, "MultiHeadAttention", source)


def test_attention_of_one_query_after_another_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", ROWS)
    assert not broken(backend, "multi_head_attention.formula")


@share(2, rest=1)
@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (ROWS, " / math.sqrt(self.width)", ""),
        (ROWS, ".softmax(-1)", ".softmax(1)"),
        (SOURCE, "s.softmax(-1)", "s.softmax(-2)"),
        (SOURCE, "s.softmax(-1)", "s.exp()"),
    ],
)
def test_mistake_in_the_weights_stays_a_violation(
    tmp_path: Path, source: str, right: str, wrong: str
) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", edited(source, (right, wrong)))
    assert broken(backend, "multi_head_attention.formula")
