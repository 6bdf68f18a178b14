"""Lines of values that reach their use by another object, another function, or not at all."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Location

TABLE = """
import math
import torch
from torch import nn
from torch.autograd import Variable


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len=64):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * rates)
        pe[:, 1::2] = torch.cos(position * rates)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return x + Variable(self.pe[:, : x.size(1)], requires_grad=False)
"""


def first_line(folder: Path, name: str, code: str, clause: str) -> Location | None:
    return judge(Bench(adapted(folder, name, code)), clause).location


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("math.log(10000.0)", "math.log(1000.0)", "1000.0"),
        ("torch.sin(position", "torch.cos(position", "pe[:, 0::2] = torch.cos(position"),
    ],
)
def test_table_that_is_wrapped_again_is_wrong_where_it_is_made(
    old: str, new: str, named: str, tmp_path: Path
) -> None:
    clause = "positional_encoding.formula"
    assert first_line(tmp_path, "PositionalEncoding", TABLE, clause) is None
    location = first_line(tmp_path, "PositionalEncoding", TABLE.replace(old, new), clause)
    assert location is not None
    assert named in location.code
    assert location.confirmed


WHOLE = (SUPPORT / "wild_models" / "annotated.py").read_text(encoding="utf-8")


@pytest.mark.proof
def test_layer_that_holds_a_mask_is_to_blame_and_not_its_caller(tmp_path: Path) -> None:
    old, new = "self.self_attn(x, x, x, mask)", "self.self_attn(x, x, x, None)"
    assert WHOLE.count(old) == 1
    clause = "model.encode-decode-is-forward"
    location = first_line(tmp_path, "make_model", WHOLE.replace(old, new), clause)
    assert location is not None
    assert new in location.code


SINGLE = WHOLE.replace("torch.float64)", "torch.float32)")


@pytest.mark.proof
@pytest.mark.parametrize("source", [WHOLE, SINGLE], ids=["float64", "float32"])
def test_layer_that_leaves_out_a_mask_of_the_target_is_to_blame(
    source: str, tmp_path: Path
) -> None:
    old, new = "self.self_attn(x, x, x, tgt_mask)", "self.self_attn(x, x, x, None)"
    assert source.count(old) == 1
    wrong = source.replace(old, new)
    location = first_line(tmp_path, "make_model", wrong, "model.formula")
    assert location is not None
    assert new in location.code
    assert location.computed == "scores without the mask"
    assert location.confirmed


@pytest.mark.proof
def test_last_norm_is_not_confirmed_where_what_it_is_given_is_wrong(tmp_path: Path) -> None:
    old = "return self.linears[-1]("
    assert WHOLE.count(old) == 1
    clause = "model.encode-decode-is-forward"
    location = first_line(tmp_path, "make_model", WHOLE.replace(old, "return ("), clause)
    assert location is None or not location.confirmed or "return (" in location.code
