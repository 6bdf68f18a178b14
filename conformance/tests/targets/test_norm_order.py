"""Norms that are named in another order than they are used in: numbers come before names."""

import pytest
from torch import nn

import attentest
from attentest.targets.adapt import Unclear
from attentest_spec import UnknownName


class Decoder(nn.Module):
    """A decoder layer whose norms are named in another order than they are used in."""

    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.cross = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory):
        x = self.norm3(x + self.attn(x, x, x, need_weights=False)[0])
        x = self.norm1(x + self.cross(x, memory, memory, need_weights=False)[0])
        return self.norm2(x + self.fc2(self.fc1(x).relu()))


def test_norms_follow_the_numbers_unless_the_user_names_them():
    slugs = ["decoder.layer-formula"]
    report = attentest.check(Decoder, "decoder_layer", clauses=slugs)
    assert "the numbers fit this one alone" in "\n".join(report.inferred)
    assert report[slugs[0]].status in ("pass", "absent"), str(report)
    named = {"self_attention_norm": "norm1"}
    forced = attentest.adapted(Decoder, "decoder_layer", parameters=named, anyway=True)
    assert '"self_attention_norm.gain": "norm1.weight"' in "\n".join(forced.understood)
    with pytest.raises(UnknownName, match="self_attention_norm"):
        attentest.adapted(Decoder, "decoder_layer", parameters={"self_attention_nrm": "norm1"})
    with pytest.raises(Unclear, match="has no parameter 'norm9'"):
        attentest.adapted(Decoder, "decoder_layer", parameters={"self_attention_norm": "norm9"})
