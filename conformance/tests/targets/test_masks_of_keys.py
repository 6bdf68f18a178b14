"""Cross-attention with a mask of its queries and another one of its keys."""

import pytest
import torch
from torch import Tensor, nn

import attentest

COMPONENT = "multi_head_attention"
FORMULA = f"{COMPONENT}.formula"


class CrossAttention(nn.Module):
    """Takes a mask (B, Q) of queries that are real, and one (B, K) of keys that are."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"{dim} features cannot be split into {heads} heads")
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def kept(self, mask: Tensor, context_mask: Tensor) -> Tensor:
        return mask[:, None, :, None] & context_mask[:, None, None, :]

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.to_q(x), *self.to_kv(context).chunk(2, dim=-1))
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool)
        if context_mask is None:
            context_mask = torch.ones(context.shape[:2], dtype=torch.bool)
        scores = scores.masked_fill(~self.kept(mask, context_mask), -1e300)
        heads = scores.softmax(dim=-1) @ v
        return self.to_out(heads.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class NextKey(CrossAttention):
    """Wrong: hides the key after the one that is hidden."""

    def kept(self, mask: Tensor, context_mask: Tensor) -> Tensor:
        return super().kept(mask, context_mask.roll(1, dims=-1))


class Ignored(CrossAttention):
    """Wrong: does not use the mask of the keys."""

    def kept(self, mask: Tensor, context_mask: Tensor) -> Tensor:
        return super().kept(mask, torch.ones_like(context_mask))


def test_the_mask_named_after_the_keys_is_the_mask() -> None:
    read = attentest.adapted(CrossAttention, COMPONENT)
    said = "\n".join(read.understood)  # type: ignore[attr-defined]
    assert "mask=context_mask" in said
    assert "not given: mask;" in said
    report = attentest.check(read, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


@pytest.mark.proof
@pytest.mark.parametrize("wrong", [NextKey, Ignored])
def test_a_wrong_mask_of_keys_is_a_violation(wrong: type) -> None:
    report = attentest.check(wrong, COMPONENT, clauses=[FORMULA])
    assert report[FORMULA].status == "violation", str(report)
