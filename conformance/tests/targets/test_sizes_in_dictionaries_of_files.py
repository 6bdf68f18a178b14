"""Models whose sizes are in a dictionary that their file reads from another one."""

import json
from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

CODE = """
import json
from pathlib import Path

import torch
from torch import nn

with open(Path(__file__).parent / "sizes.json") as source:
    hyps = json.load(source)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        later = torch.ones(hyps["block_size"], hyps["block_size"], dtype=torch.bool).triu(1)
        self.register_buffer("later", later)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (hyps["n_head"], -1)).transpose(1, 2)
            for one in self.inputs(x).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.later[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention(width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        width = hyps["n_embd"]
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(hyps["block_size"], width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(hyps["n_layers"]))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""

SIZES = {"n_embd": 384, "block_size": 256, "n_head": 6, "n_layers": 6, "rate": 0.001}
WORDS = {"d_model": 5, "hidden": 7, "layers": 9}


@share(2, rest=1)
@pytest.mark.parametrize("inner", ["", "model"])
def test_sizes_of_a_dictionary_from_a_file_are_those_of_the_model(
    tmp_path: Path, inner: str
) -> None:
    held = {**WORDS, inner: SIZES} if inner else {**WORDS, **SIZES}
    (tmp_path / "sizes.json").write_text(json.dumps(held))
    code = CODE.replace("hyps[", f'hyps["{inner}"][') if inner else CODE
    backend = adapted(tmp_path, "GPT", code)
    assert any("n_embd=sizes.d_model" in one for one in backend.assumed)
    assert not any("hidden=" in one for one in backend.assumed)
    assert broken(backend, "language_model.formula") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "mistake",
    [
        ("return x + self.network", "return self.network"),
        (".transpose(1, 2).flatten(2))", ".flatten(2).view(x.shape))"),
    ],
)
def test_mistake_in_a_model_with_such_sizes_is_a_violation(
    tmp_path: Path, mistake: tuple[str, str]
) -> None:
    (tmp_path / "sizes.json").write_text(json.dumps(SIZES))
    backend = adapted(tmp_path, "GPT", edited(CODE, mistake))
    assert broken(backend, "language_model.formula") != []
