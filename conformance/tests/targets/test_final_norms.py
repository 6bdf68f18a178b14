"""Stacks of layers that end without a norm: those with norms before their sublayers are named."""

from pathlib import Path

import pytest
from proof import share

from attentest import adapted
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt.assumptions.choices import NO_FINAL_NORM

SOURCE = '''
from torch import nn


class Encoder(nn.Module):
    """A Transformer encoder."""

    def __init__(self, d_model=32, n_heads=4, n_layers=3, d_ff=64, dropout=0.1):
        super().__init__()
        layer = dict(dim_feedforward=d_ff, dropout=dropout, batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(d_model, n_heads, **layer) for _ in range(n_layers)]
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, src_key_padding_mask=None):
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=src_key_padding_mask)
        return self.norm(x)
'''
AFTER = [("norm_first=True", "norm_first=False")]
WITHOUT = [("        self.norm = nn.LayerNorm(d_model)\n", ""), ("self.norm(x)", "x")]


def target(folder: Path, edits: list[tuple[str, str]]) -> str:
    """Write the encoder with some edits, and return it as a target."""
    source = SOURCE
    for old, new in edits:
        assert source.count(old) == 1
        source = source.replace(old, new)
    file = folder / "encoder.py"
    file.write_text(source, encoding="utf-8")
    return f"{file}:Encoder"


@share(3, rest=1)
@pytest.mark.parametrize(
    ("edits", "named"),
    [([], False), ([*AFTER, *WITHOUT], False), (WITHOUT, True)],
    ids=["norm at the end", "norms after sublayers", "none at the end"],
)
def test_a_norm_that_usually_ends_a_stack_is_missed(
    edits: list[tuple[str, str]], named: bool, tmp_path: Path
) -> None:
    assert (NO_FINAL_NORM in adapted(target(tmp_path, edits)).assumed) == named


@pytest.mark.proof
def test_a_final_norm_that_is_declared_is_demanded(tmp_path: Path) -> None:
    declared = adapted(target(tmp_path, WITHOUT), choices={"final_norm": "present"})
    assert judge(Bench(declared), "encoder.final-norm").status is Status.ERROR
    said = adapted(target(tmp_path, WITHOUT), choices={"final_norm": "none"}).assumed
    assert NO_FINAL_NORM not in said
