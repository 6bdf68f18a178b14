"""Models that are decoder-only by their names, and raise where they are called with tokens."""

import pytest
import torch
from torch import Tensor, nn

from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.recognition import is_language_model


class GPTModel(nn.Module):
    """A model whose positions replace its tokens, by mistake."""

    def __init__(self, vocab_size: int, d_model: int, heads: int, layers: int, max_len: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList([nn.Linear(d_model, heads * 7) for _ in range(layers)])

    def forward(self, ids: Tensor) -> Tensor:
        """Raise: the states have no batch."""
        x = self.places(torch.arange(ids.shape[1]))
        b, t, _ = x.shape
        return x.view(b, t)


class ListModel(GPTModel):
    """The same model by a name that says nothing."""


@pytest.mark.parametrize(("made", "expected"), [(GPTModel, True), (ListModel, False)])
def test_model_of_a_family_that_raises_is_no_encoder(made: type, *, expected: bool) -> None:
    assert is_language_model(made, Reading(), made.__name__) == expected
