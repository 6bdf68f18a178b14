"""Windows to both sides or beyond all texts, and masks that are cut to a length."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear, Uncovered

COMPONENT = "multi_head_attention"
FORMULA = f"{COMPONENT}.formula"


class Windowed(nn.Module):
    """Causal attention that sees `window` positions."""

    sides = 1

    def __init__(self, dim: int, heads: int, window: int = 8) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def allowed(self, length: int) -> Tensor:
        place = torch.arange(length)
        behind = place[:, None] - place
        if self.sides == 2:
            return behind.abs() < self.window
        return (behind >= 0) & (behind < self.window)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=self.allowed(x.shape[1]))
        return self.out(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class TwoSided(Windowed):
    sides = 2


class Wide(Windowed):
    """A window that no short text shows."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__(dim, heads, window=4096)


class NextVisible(Wide):
    """Wrong: a position sees the next one."""

    def allowed(self, length: int) -> Tensor:
        return super().allowed(length + 1)[1:, :-1]


class CutMask(nn.Module):
    """The mask of the caller is that of the longest text, and is cut to the length."""

    power = 0.25

    def __init__(self, n_state: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def masked(self, scores: Tensor, mask: Tensor) -> Tensor:
        length = scores.shape[-2]
        return scores + mask[:length, :length]

    def forward(self, x: Tensor, xa: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        xa = x if xa is None else xa
        q, k, v = (
            one.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for one in (self.query(x), self.key(xa), self.value(xa))
        )
        scale = q.shape[-1] ** -self.power
        scores = (q * scale) @ (k * scale).mT
        if mask is not None:
            scores = self.masked(scores, mask)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class Documented(CutMask):
    """Attention; mask (T, T)."""


class WholeMask(CutMask):
    """The mask is added as it is given."""

    def masked(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores + mask


class ScaledTwice(CutMask):
    """Wrong: queries and keys are both divided by the root of the width."""

    power = 0.5


def status(thing: type[nn.Module], **settings: object) -> str:
    """Return the status of the formula for `thing`, without diagnosis."""
    read = attentest.adapted(thing, component=COMPONENT, **settings)
    return judge(Bench.for_status(read, effort=0.1), FORMULA).status.value


def test_a_window_to_both_sides_is_one_question() -> None:
    with pytest.raises(Uncovered, match="sees the 7 positions to each side of it alone"):
        attentest.adapted(TwoSided, component=COMPONENT)


def test_a_window_beyond_all_texts_is_judged_as_none():
    assert status(Wide) == "pass"


def test_a_window_does_not_excuse_a_later_position():
    assert status(NextVisible) == "violation"


def test_a_mask_that_is_cut_to_the_length_is_one_for_all_samples():
    read = attentest.adapted(CutMask, component=COMPONENT)
    assert read.limits.masks == ("none", "causal")
    assert "one mask (T, T) for all samples" in "\n".join(read.assumed)
    assert status(CutMask) == "pass"
    assert status(ScaledTwice) == "violation"


def test_a_mask_that_is_cut_is_one_question_under_strict():
    with pytest.raises(Unclear, match=r"mask=None.*numbers are those of the reference"):
        attentest.adapted(CutMask, component=COMPONENT, strict=True)


@pytest.mark.proof
def test_a_cut_mask_does_not_excuse_another_mistake():
    assert status(CutMask, given={"mask": None}) == "pass"
    assert status(ScaledTwice, given={"mask": None}) == "violation"
    with pytest.raises(Unclear) as asked:
        attentest.adapted(ScaledTwice, component=COMPONENT, strict=True)
    assert "those of the reference" not in str(asked.value)


def test_a_cut_mask_of_a_documented_shape_is_judged():
    assert status(Documented) == "pass"


def test_a_mask_that_is_added_as_it_is_given_is_judged():
    assert status(WholeMask) == "pass"
