"""Mixtures of experts whose one shared expert is in a list, as DeepSeek's ports keep them."""

import pytest
from torch import Tensor, nn
from torch.nn import functional

import attentest
from attentest.targets.adapt import Unclear


class Expert(nn.Module):
    """A gated network."""

    def __init__(self, dim: int, inner: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, inner, bias=False)
        self.w2 = nn.Linear(inner, dim, bias=False)
        self.w3 = nn.Linear(dim, inner, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))  # type: ignore[no-any-return]


class MoE(nn.Module):
    """Chosen experts, and a list with one expert that all positions go through."""

    def __init__(self, d_model: int, d_ff: int, n_experts: int, top_k: int) -> None:
        super().__init__()
        self.k = top_k
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList([Expert(d_model, d_ff) for _ in range(n_experts)])
        self.shared_experts = nn.ModuleList([Expert(d_model, d_ff)])

    def always(self, x: Tensor) -> Tensor:
        return self.shared_experts[0](x)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        scores, chosen = self.router(flat).topk(self.k)
        weights = scores.softmax(-1)
        y = self.always(flat)
        for number, expert in enumerate(self.experts):
            row, place = (chosen == number).nonzero(as_tuple=True)
            y = y.index_add(0, row, weights[row, place].unsqueeze(-1) * expert(flat[row]))
        return y.view_as(x)


class HalvedMoE(MoE):
    """Wrong: halves what the shared expert says."""

    def always(self, x: Tensor) -> Tensor:
        return 0.5 * self.shared_experts[0](x)


def test_shared_expert_in_a_list_is_read() -> None:
    found = attentest.adapted(MoE)
    assert (found.choices["shared_expert"], found.fits) == ("added", True)


@pytest.mark.proof
def test_mistake_in_what_it_adds_is_asked_about() -> None:
    with pytest.raises(Unclear, match="of no option, and of no mistake of the catalogue"):
        attentest.adapted(HalvedMoE)
