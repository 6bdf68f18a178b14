"""Decoder-only models that get their tokens in a dictionary."""

from pathlib import Path

import pytest
import torch
from mistaken_code import adapted, broken, edited
from torch import Tensor, nn

from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.surrounded.batches import OfMaskedBatch, of_batch

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.packed, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, seen):
        b, t, c = x.shape
        q, k, v = (one.transpose(1, 2) for one in
                   self.packed(self.first(x)).view(b, t, 3, self.heads, -1).unbind(2))
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, -1e9)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(torch.relu(self.up(self.second(x))))


class LanguageModel(nn.Module):
    def __init__(self, vocab_size, dim, heads, max_len, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, dim), nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.final, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def forward(self, batch):
        ids = batch["input_ids"]
        t = ids.shape[1]
        seen = torch.ones(t, t, dtype=torch.bool).tril()
        seen = seen & batch["attention_mask"].bool()[:, None, None]
        x = self.tokens(ids) + self.places(torch.arange(t))
        for block in self.blocks:
            x = block(x, seen)
        found = {"logits": self.head(self.final(x))}
        if "labels" in batch:
            found["loss"] = F.cross_entropy(found["logits"].mT, batch["labels"])
        return found
"""
FORMULA = "language_model.formula"


class OfDictionary(nn.Module):
    """A model whose input is a dictionary."""

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the tokens of `batch`."""
        return batch["tokens"]


class OfTensor(nn.Module):
    """A model whose input is a tensor."""

    def forward(self, batch: Tensor) -> Tensor:
        """Return the first tokens of `batch`."""
        return batch[:, "tokens" != "none"]


def test_dictionary_that_a_call_reads_the_tokens_of_is_made() -> None:
    made = of_batch(Building("OfDictionary()", {"OfDictionary": OfDictionary}), OfDictionary)
    assert made.expression == "OfBatch(OfDictionary(), 'batch', 'tokens')"
    assert "batch is a dictionary that holds the tokens as 'tokens'" in made.doubts[0]
    tokens = torch.ones(2, 3)
    assert eval(made.expression, dict(made.space))(tokens) is tokens
    assert of_batch(made, OfDictionary) is made
    plain = Building("OfTensor()", {})
    assert of_batch(plain, OfTensor) is plain


def test_mask_in_a_dictionary_hides_nothing_where_none_is_given() -> None:
    class Masked(nn.Module):
        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return batch["mask"]

    made = OfMaskedBatch(Masked(), "batch", "ids", "mask")
    assert made(torch.zeros(2, 3)).all()
    assert not made(torch.zeros(2, 3), torch.zeros(2, 3)).any()


@pytest.mark.proof
def test_model_that_gets_a_dictionary_conforms_with_its_mask(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LanguageModel", CODE)
    assert "OfMaskedBatch(" in backend.adapter.building.expression  # type: ignore[attr-defined]
    assert "padding" in backend.limits.masks
    assert broken(backend, FORMULA, "language_model.right-padding") == []


@pytest.mark.proof
def test_mistake_in_a_model_that_gets_a_dictionary_is_found(tmp_path: Path) -> None:
    mistaken = edited(CODE, ("x = x + self.out", "x = self.out"))
    assert broken(adapted(tmp_path, "LanguageModel", mistaken), FORMULA)
