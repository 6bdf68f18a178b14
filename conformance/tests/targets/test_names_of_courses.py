"""Names of arguments and functions in the handouts of courses, and their solutions."""

import torch
from torch import nn

import attentest


class Embedding(nn.Module):
    """A table of so many embeddings, each of a width."""

    def __init__(self, n_embed, d_embed):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(n_embed, d_embed))

    def forward(self, token_ids):
        """Look tokens up."""
        if bool((token_ids < 0).any()):
            raise IndexError(f"{token_ids.min()} is no token")
        return self.embedding[token_ids]


class SwiGLU(nn.Module):
    """A gated network."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1, self.w3 = (
            nn.Linear(d_model, d_ff, bias=False),
            nn.Linear(d_model, d_ff, bias=False),
        )
        self.w2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, in_features):
        """Return the gated sum."""
        return self.w2(nn.functional.silu(self.w1(in_features)) * self.w3(in_features))


def get_cross_entropy_loss(inputs, targets):
    """Return the mean of the losses."""
    return nn.functional.cross_entropy(inputs, targets)


def test_a_number_of_embeddings_is_that_of_words() -> None:
    assert attentest.check(Embedding, clauses=["embedding.lookup"]).conforms


def test_in_features_are_the_input_of_a_network() -> None:
    assert attentest.check(SwiGLU, clauses=["feed_forward.formula"]).conforms


def test_a_function_that_gets_a_loss_is_one() -> None:
    assert attentest.check(get_cross_entropy_loss, clauses=["loss.formula"]).conforms


def get_gradient_clipping(parameters, max_l2_norm):
    """Shorten the gradients."""
    nn.utils.clip_grad_norm_(parameters, max_l2_norm)


def test_a_function_that_gets_a_clipping_is_one() -> None:
    report = attentest.check(get_gradient_clipping, clauses=["optimiser.clipping-formula"])
    assert report.conforms
