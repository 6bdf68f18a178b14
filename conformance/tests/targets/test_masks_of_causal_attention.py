"""Masks of attention that hides later positions by itself: a probing call shows what they mean."""

import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.targets.adapt.reading import Unclear

CLAUSE = "multi_head_attention.formula"


class CausalAttention(nn.Module):
    """Self-attention under a causal mask, to which that of the caller is added."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q = nn.Linear(d_model, d_model)
        self.k = nn.Linear(d_model, d_model)
        self.v = nn.Linear(d_model, d_model)
        self.o = nn.Linear(d_model, d_model)

    def hidden(self, mask: Tensor) -> Tensor:
        """Return which keys a mask hides."""
        return mask

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Attend to earlier positions."""
        n, length, width = x.shape
        q, k, v = (
            one(x).view(n, length, self.n_heads, -1).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        if attention_mask is not None:
            hidden = hidden | self.hidden(attention_mask)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        weights = scores.softmax(-1).masked_fill(hidden, 0.0)
        out: Tensor = self.o((weights @ v).transpose(1, 2).reshape(n, length, width))
        return out


class KeepAttention(CausalAttention):
    """True may be attended, in a mask of four axes."""

    def hidden(self, mask: Tensor) -> Tensor:
        """Return which keys a mask hides."""
        return ~mask


class TwofoldAttention(CausalAttention):
    """True may be attended in a mask of padding (B, K), and blocks in one of four axes."""

    def hidden(self, mask: Tensor) -> Tensor:
        """Return which keys a mask hides."""
        return ~mask.bool()[:, None, None] if mask.ndim == 2 else mask


class LateAttention(KeepAttention):
    """One that hides the key before the one that is marked."""

    def hidden(self, mask: Tensor) -> Tensor:
        """Return which keys a mask hides."""
        return super().hidden(mask).roll(1, -1)


@pytest.mark.parametrize("attention", [KeepAttention, TwofoldAttention])
def test_correct_masks_conform(attention: type) -> None:
    assert attentest.check(attention, clauses=[CLAUSE]).conforms


def test_a_mask_against_its_name_is_a_question() -> None:
    with pytest.raises(Unclear, match=r"By its name the attention_mask .* says what is hidden"):
        attentest.adapted(CausalAttention)
    assert attentest.check(CausalAttention, mask="blocks", clauses=[CLAUSE]).conforms


def test_a_wrong_mask_does_not_conform() -> None:
    assert not attentest.check(LateAttention, clauses=[CLAUSE], mask="keep").conforms
