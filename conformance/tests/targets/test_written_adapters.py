"""Adapters of single components as files: they are judged as the code they were inferred from."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.members import adapter_text
from attentest_spec import Backend

TARGETS = [
    ("wild/attention.py:sdpa", "attention.formula"),
    ("wild/multi_head_attention.py:MultiHeadedAttention", "multi_head_attention.formula"),
    ("wild/broken.py:CausalSelfAttention", "multi_head_attention.formula"),
    ("wild/parts.py:FeedForward", "feed_forward.formula"),
    ("wild/parts.py:TokenEmbedding", "embedding.scale"),
    ("wild/configured_parts.py:Norm", "layer_norm.formula"),
    ("wild/parts.py:PositionalEncoding", "positional_encoding.formula"),
    ("wild/masks.py:make_pad_mask", "masks.padding-keeps-exactly-real-tokens"),
    ("wild/masks.py:subsequent_mask", "masks.causal-keeps-past"),
    ("wild/masks.py:make_trg_mask", "masks.target-is-both"),
    ("wild/broken.py:EncoderLayer", "encoder.layer-formula"),
    ("wild/broken.py:DecoderLayer", "decoder.layer-formula"),
    ("wild_encoders/bert_like.py:BERT", "encoder.formula"),
    ("wild_encoders/gpt.py:GPT", "encoder.formula"),
]
"""A target for each kind of component, and a clause about its numbers."""


def verdict(backend: Backend, slug: str) -> tuple[str, str]:
    found = judge(Bench.for_status(backend, effort=0.1), slug)
    return found.status.value, found.message


@share(10)
@pytest.mark.parametrize(("target", "slug"), TARGETS)
def test_a_written_adapter_gives_the_same_verdict(target: str, slug: str, tmp_path: Path) -> None:
    inferred = attentest.adapted(str(SUPPORT / target))
    file = tmp_path / "adapter.py"
    file.write_text(adapter_text(str(SUPPORT / target), {}))
    written = attentest.adapted(str(file))
    assert "understood" not in vars(written)
    assert written.components == inferred.components
    assert (written.limits, written.choices) == (inferred.limits, inferred.choices)
    assert verdict(written, slug) == verdict(inferred, slug)


@pytest.mark.proof
def test_a_written_adapter_needs_no_suite():
    text = adapter_text(str(SUPPORT / "wild_encoders/bert_like.py:BERT"), {})
    assert "import attentest\n" not in text
    assert "from attentest." not in text


NETWORK = """
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))
"""


def test_written_adapters_of_files_of_one_name_have_their_own(tmp_path: Path) -> None:
    files = []
    for name, text in (("right", NETWORK), ("wrong", NETWORK.replace("relu", "tanh"))):
        (tmp_path / name).mkdir()
        model = tmp_path / name / "model.py"
        model.write_text(text)
        files.append(tmp_path / f"{name}.py")
        files[-1].write_text(adapter_text(f"{model}:FeedForward", {"anyway": True}))
    backends = [attentest.adapted(str(one)) for one in files]
    found = [verdict(one, "feed_forward.formula")[0] for one in backends]
    assert found == ["pass", "violation"]
