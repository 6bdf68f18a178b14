"""Attention whose call has an argument for a cache, and a width called embed_dim."""

from torch import nn

from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.recognition import is_language_model


class GPT2Attention(nn.Module):
    """Attention that goes on from keys and values, of rows and not of tokens."""

    def __init__(self, config):
        super().__init__()
        self.embed_dim = config.n_embd
        self.c_attn = nn.Linear(self.embed_dim, 3 * self.embed_dim)

    def forward(self, hidden_states, layer_past=None, use_cache=False):
        """Return the mixed rows."""
        return self.c_attn(hidden_states)[..., : self.embed_dim]


class Continued(nn.Module):
    """A model of tokens that goes on from a past, and cannot be built by its names."""

    def __init__(self, something_else):
        super().__init__()
        self.table = nn.Embedding(something_else, 8)
        self.head = nn.Linear(8, something_else)

    def forward(self, ids, past=None):
        """Return logits."""
        return self.head(self.table(ids))


def test_attention_with_a_cache_is_no_model() -> None:
    assert not is_language_model(GPT2Attention, Reading(), "GPT2Attention")


def test_a_model_with_a_table_and_a_past_is_one() -> None:
    assert is_language_model(Continued, Reading(), "Continued")
