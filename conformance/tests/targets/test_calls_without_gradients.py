"""Models whose call switches gradients off, as code for inference alone: none are asked of them."""

from pathlib import Path

import pytest
import torch
from folders import SUPPORT
from proof import share
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Unsupported
from attentest_spec.torch.untrained import InferenceAlone

MINI = SUPPORT / "wild_language_models" / "mini.py"
CALL = "    def forward(self, idx"
CLAUSES = ("gradient", "every-parameter-trained")


class _Kept(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).detach()


class _Off(_Kept):
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class _Part(_Kept):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            hidden = self.inner(x)
        return self.inner(hidden).detach()


class _Cache(_Kept):
    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.zeros(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        self.rows[: len(x)] = self.inner(x)
        return self.rows[: len(x)]


class _Once(_Kept):
    def __init__(self) -> None:
        super().__init__()
        self.table = 2 * self.inner.weight

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.table


@pytest.mark.parametrize(("kind", "held"), [(_Kept, False), (_Once, False), (_Cache, True)])
def test_a_cache_with_gradients_holds_those_of_the_call_before(
    kind: type[nn.Module], *, held: bool
) -> None:
    built = kind()
    assert InferenceAlone(built, lambda: built(torch.ones(1, 2))).holds_calls() is held


@pytest.mark.parametrize("kind", [_Once, _Cache])
def test_gradients_of_an_earlier_call_alone_are_not_asked_for(kind: type[nn.Module]) -> None:
    built = kind()
    alone = InferenceAlone(built, lambda: built(torch.ones(1, 2)))
    expected = Unsupported if kind is _Cache else RuntimeError
    built(torch.ones(1, 2)).sum().backward()
    with pytest.raises(expected), alone:
        built(torch.ones(1, 2)).sum().backward()


@pytest.mark.parametrize(("kind", "off"), [(_Kept, False), (_Part, False), (_Off, True)])
def test_gradients_are_off_where_no_module_inside_keeps_them(
    kind: type[nn.Module], *, off: bool
) -> None:
    built = kind()
    assert InferenceAlone(built, lambda: built(torch.ones(1, 2))).switches_off() is off


@share(2, rest=1)
@pytest.mark.parametrize("switch", ["torch.no_grad()", "torch.inference_mode()"])
def test_a_model_for_inference_alone_is_not_accused(switch: str, tmp_path: Path) -> None:
    backend = _adapted(tmp_path, (CALL, f"    @{switch}\n{CALL}"))
    assert any("switches gradients off" in one for one in backend.assumed)
    found = [judge(Bench.for_status(backend), f"language_model.{one}") for one in CLAUSES]
    assert [one.status for one in found] == [Status.ABSENT] * 2


@pytest.mark.proof
def test_a_result_that_is_detached_is_accused(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, ("return logits, loss", "return logits.detach(), loss"))
    assert not any("switches gradients off" in one for one in backend.assumed)
    found = [judge(Bench.for_status(backend), f"language_model.{one}") for one in CLAUSES]
    assert all(one.status.fails_run for one in found)


def _adapted(folder: Path, change: tuple[str, str]) -> AdaptedWhole:
    """Return the backend of the small model, with one text of it exchanged."""
    text = MINI.read_text()
    assert change[0] in text
    (folder / "mini.py").write_text(text.replace(*change))
    backend = attentest.adapted(f"{folder / 'mini.py'}:GPT")
    assert isinstance(backend, AdaptedWhole)
    return backend


@pytest.mark.parametrize("own", [False, True])
def test_a_kernel_of_torch_without_a_gradient_is_for_inference_alone(own: bool) -> None:
    """A gradient that the user's own code refuses is a mistake of that code."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, given):
            raise NotImplementedError("not yet")

    def run(x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        return Doubled.apply(x).sum() if own else flex_attention(x, x, x).sum()

    alone = InferenceAlone(nn.Identity(), lambda: None)
    with pytest.raises(NotImplementedError if own else Unsupported), alone:
        run(torch.ones(1, 1, 2, 16)).backward()
