"""Settings of one run: a class that takes the names of files, and writes its fields out."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt.objects.made_settings import made_settings
from attentest.targets.resolve import module_of

SOURCE = """
import torch
from torch import nn


class Config:
    def __init__(self, dataset, embedding):
        self.words = open(dataset + "/words.txt").read().split()
        self.pretrained = load(embedding) if embedding != "random" else None
        self.n_vocab = 0
        self.embed = self.pretrained.size(1) if self.pretrained is not None else 300
        self.num_classes = 10
        self.pad_size = 32
        self.hidden = 1024
        self.num_head = 5
        self.num_encoder = 2


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        if config.pretrained is not None:
            self.embedding = nn.Embedding.from_pretrained(config.pretrained, freeze=False)
        else:
            self.embedding = nn.Embedding(config.n_vocab, config.embed)
        self.layers = nn.ModuleList(
            Layer(config.embed, config.num_head, config.hidden) for _ in range(config.num_encoder)
        )
        self.out = nn.Linear(config.pad_size * config.embed, config.num_classes)

    def forward(self, x):
        out = self.embedding(x[0])
        for layer in self.layers:
            out = layer(out)
        return self.out(out.flatten(1))
"""
CLAUSES = "encoder.formula", "encoder.depth-counts"


def test_fields_that_a_class_of_settings_writes_out_are_read(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "Model", SOURCE, component="encoder"), *CLAUSES)


def test_a_mistake_in_code_with_such_settings_is_found(tmp_path: Path) -> None:
    right, wrong = "self.norm2(x + self.down", "self.norm2(self.down"
    assert asked_or_broken(tmp_path, "Model", SOURCE, right, wrong, *CLAUSES)


@pytest.mark.parametrize(
    ("head", "fields"), [("dataset, embedding", 6), ("num_head, dataset, embedding=''", 0)]
)
def test_fields_of_arguments_are_no_fields_of_a_class(
    tmp_path: Path, head: str, fields: int
) -> None:
    source = edited(SOURCE, ("dataset, embedding", head))
    source = source.replace("num_head = 5", "num_head = num_head") if not fields else source
    (tmp_path / "own.py").write_text(source)
    model = vars(module_of(f"{tmp_path / 'own.py'}:Model"))["Model"]
    assert len(made_settings(model, "config").fields) >= fields
    assert bool(made_settings(model, "config").fields) == bool(fields)
