"""Code whose name ends in the words for a block, or that no name and no option explains."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.components import component_guessed, only_mentions
from attentest.targets.adapt.rotary.adaptation import named_rotary

BLOCK = """
from torch import nn


class CustomResidualAttentionBlock(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = nn.MultiheadAttention(d_model, n_head, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x, attn_mask=None):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=attn_mask)[0]
        return x + self.mlp(self.ln_2(x))
"""
AVERAGE = """
import torch
from torch import nn


class AverageAttention(nn.Module):
    def __init__(self, model_dim):
        super().__init__()
        self.gates = nn.Linear(2 * model_dim, 2 * model_dim)

    def forward(self, layer_in, mask=None, step=None):
        length = layer_in.size(1)
        if length > 1000:
            raise MemoryError(f"{length} positions squared")
        means = torch.ones(length, length).tril() / torch.arange(1, length + 1)[:, None]
        mean = means.to(layer_in) @ layer_in
        first, second = self.gates(torch.cat((layer_in, mean), -1)).chunk(2, dim=-1)
        return first.sigmoid() * layer_in + second.sigmoid() * mean
"""


def test_name_that_ends_in_the_words_of_a_block_is_one() -> None:
    assert component_guessed("CustomResidualAttentionBlock") == "encoder_layer"
    assert component_guessed("ResidualAttention") != "encoder_layer"


def test_name_of_what_layers_have_is_none() -> None:
    assert component_guessed("LayerScale") == component_guessed("LayerDropout") == ""
    assert component_guessed("ScaledLayer") == "encoder_layer"


def test_name_of_an_rms_norm_may_have_a_small_n() -> None:
    assert component_guessed("MyRMSnorm") == component_guessed("TinyRMSnorm") == "rms_norm"


def test_name_that_says_where_norms_of_a_layer_are_is_that_of_a_layer() -> None:
    assert component_guessed("DeepNormLayer") == "encoder_layer"
    assert component_guessed("ResPostNormBlock") == "encoder_layer"
    assert component_guessed("BatchNormLayer") == "layer_norm"
    assert component_guessed("PreNorm") == "layer_norm"
    assert component_guessed("PostNormDecoderLayer") == "decoder_layer"


def test_short_name_of_attention_after_that_of_rotary_positions_is_attention() -> None:
    assert component_guessed("Rope_MQA") == "multi_head_attention"
    assert component_guessed("GQARotaryEmbedding") == "rotary"
    assert component_guessed("RoPEAttnLayer") == "attention"
    assert component_guessed("RotaryEmbeddingSelfAttention") == "multi_head_attention"
    assert component_guessed("AttentionRotaryEmbedding") == "rotary"
    for name in ("AttentionRope", "AttentionwithRoPE", "GQAWithRoPE", "SelfAttentionRoPE"):
        assert component_guessed(name).endswith("attention")
        assert not named_rotary(name)
    assert named_rotary("AttentionRotaryEmbedding")
    assert not named_rotary("RopelessMQA")
    assert named_rotary("MLARotary")
    assert named_rotary("cached_rope")
    assert named_rotary("DropoutRoPE")


@pytest.mark.parametrize("name", ["LayerDropEncoder", "drop_embedding", "DropEmbed", "properties"])
def test_letters_of_rope_across_words_say_nothing(name: str) -> None:
    assert not named_rotary(name)


def test_block_with_another_word_in_front_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "CustomResidualAttentionBlock", BLOCK)
    assert broken(backend, "encoder.layer-formula") == []


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    "wrong", ["self.mlp(self.ln_2(y))", "self.mlp(self.ln_1(x))", "self.mlp(x)"]
)
def test_mistake_in_such_a_block_is_asked_about_or_a_violation(tmp_path: Path, wrong: str) -> None:
    code = BLOCK.replace("self.mlp(self.ln_2(x))", wrong)
    try:
        backend = adapted(tmp_path, "CustomResidualAttentionBlock", code)
    except Unclear:
        return
    assert broken(backend, "encoder.layer-formula")


def test_code_that_compares_all_pairs_is_called_with_no_long_input(tmp_path: Path) -> None:
    grown = AVERAGE.replace("raise MemoryError(", "open(__file__ + '.long', 'w').write(")
    with pytest.raises(Unclear, match="taken for multi_head_attention"):
        adapted(tmp_path, "AverageAttention", grown.replace("length > 1000", "length > 25"))
    assert not list(tmp_path.glob("*.long"))


@pytest.mark.parametrize(
    ("name", "component", "mentions"),
    [
        ("PositionalEncodingA", "positional_encoding", False),
        ("MultiHeadAttentionV2", "multi_head_attention", False),
        ("EncoderA", "encoder", False),
        ("LayerNorm2d", "layer_norm", True),
        ("EncoderPooling", "encoder", True),
    ],
)
def test_version_of_a_class_is_no_other_thing(name: str, component: str, mentions: bool) -> None:
    assert only_mentions(name, component) is mentions
