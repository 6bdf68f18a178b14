"""Functions that make decoder-only models, in the place of a class."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear
from attentest.targets.members import members

MODEL = '''
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, n_head):
        super().__init__()
        self.n_head = n_head
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for one in self.qkv(self.ln_1(x)).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.ln_2(x))))


class Positions(nn.Module):
    def __init__(self, places, width):
        super().__init__()
        self.table = nn.Embedding(places, width)

    def forward(self, x):
        return x + self.table(torch.arange(x.shape[1]))


def writer(vocab_size, d_model, n_head, n_layers, max_len):
    """Return a network of a given size."""
    net = nn.Sequential(
        nn.Embedding(vocab_size, d_model),
        Positions(max_len, d_model),
        *[Block(d_model, n_head) for _ in range(n_layers)],
        nn.LayerNorm(d_model),
        nn.Linear(d_model, vocab_size, bias=False),
    )
    net[-1].weight = net[0].weight
    return net
'''
HANDED = (
    MODEL.partition("def writer")[0]
    + '''
class TextDecoder(nn.Module):
    def __init__(self, *, words: nn.Embedding, places, layers, norm: nn.Module, output):
        super().__init__()
        self.words, self.places, self.layers = words, places, layers
        self.norm, self.output = norm, output

    def forward(self, tokens):
        x = self.places(self.words(tokens))
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def small(vocab_size: int, d_model: int, n_head: int, n_layers: int, max_len: int) -> TextDecoder:
    """Return a decoder with its parts."""
    return TextDecoder(
        words=nn.Embedding(vocab_size, d_model),
        places=Positions(max_len, d_model),
        layers=nn.ModuleList(Block(d_model, n_head) for _ in range(n_layers)),
        norm=nn.LayerNorm(d_model),
        output=nn.Linear(d_model, vocab_size),
    )
'''
)
WORKS = '''

def train_small(vocab_size, d_model, n_head, n_layers, max_len):
    """Train a network and return it."""
    open("ran", "w").close()
    return writer(vocab_size, d_model, n_head, n_layers, max_len)


def stack(d_model, n_head, n_layers):
    """Return layers without tokens."""
    return nn.Sequential(*[Block(d_model, n_head) for _ in range(n_layers)])
'''


@pytest.mark.proof
def test_function_that_returns_a_series_of_modules_is_judged(tmp_path):
    backend = adapted(tmp_path, "writer", MODEL)
    assert "language_model" in backend.recipes
    assert not broken(backend, "language_model.formula")


@pytest.mark.proof
def test_class_that_takes_its_parts_is_judged_once_with_the_function_that_makes_it(tmp_path):
    file = tmp_path / "own.py"
    backend = adapted(tmp_path, "small", HANDED)
    assert not broken(backend, "language_model.formula")
    found = {one.name: (one.component, one.inside) for one in members(str(file))}
    assert found["TextDecoder"] == ("language_model", "")
    assert found["Positions"][0] != "language_model"
    assert found["small"][0] == ""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("is_causal=True", "is_causal=True, scale=1.0"),
        ("x = x + self.out(", "x = self.ln_1(x) + self.out("),
        ("self.table(torch.arange(x.shape[1]))", "self.table(torch.arange(x.shape[1])) * 0.5"),
        ("is_causal=True", "is_causal=False"),
    ],
)
def test_mistake_in_what_a_function_makes_is_found(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "writer", MODEL, right, wrong, "language_model.formula")


def test_function_of_a_model_that_is_not_causal_is_no_silent_one(tmp_path):
    wrong = MODEL.replace("is_causal=True", "is_causal=False").replace("writer", "tiny_gpt")
    (tmp_path / "own.py").write_text(wrong)
    found = {one.name: one.component for one in members(str(tmp_path / "own.py"))}
    assert found["tiny_gpt"] == "language_model"


def test_functions_that_do_other_work_are_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(MODEL + WORKS)
    found = {one.name: one.component for one in members(str(file))}
    assert found["writer"] == "language_model"
    assert found["train_small"] == found["stack"] == ""
    assert not (tmp_path / "ran").exists()


def test_function_of_arrays_is_no_maker(tmp_path):
    source = "def gpt2(inputs, wte, wpe, blocks, n_head):\n    return wte[inputs] @ wte.T\n"
    with pytest.raises(Unclear, match="makes the model at sizes"):
        adapted(tmp_path, "gpt2", source, component="language_model")
