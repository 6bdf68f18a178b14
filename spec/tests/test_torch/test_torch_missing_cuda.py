"""Code that names CUDA runs on the CPU where torch is built without it."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from attentest_spec.torch.meta import OnMeta
from attentest_spec.torch.missing_cuda import _MAKERS, _NEW, ignore_moves, ignore_names
from attentest_spec.torch.settings import keep_functions, watch

pytestmark = pytest.mark.skipif(torch.version.cuda is not None, reason="CUDA is there")

CUDA = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def _torch_as_it_was() -> Iterator[None]:
    patched = ((torch, _MAKERS), (Tensor, f"{_NEW} to cuda"), (nn.Module, "to cuda"))
    with pytest.MonkeyPatch.context() as context:
        for owner, names in patched:
            for name in names.split():
                context.setattr(owner, name, getattr(owner, name))
        ignore_moves()
        ignore_names()
        yield
    keep_functions()


@pytest.mark.parametrize("device", ["cuda", "cuda:1", CUDA])
def test_tensors_are_made_on_the_cpu(device: object) -> None:
    made = torch.zeros(2, 3, device=device)  # type: ignore[call-overload]
    assert made.device.type == "cpu"
    assert made.new_ones(2, device=device).device.type == "cpu"


def test_tensors_are_made_on_meta_where_a_call_is() -> None:
    with OnMeta():
        assert torch.arange(3, device="cuda").device.type == "meta"


def test_moved_tensor_is_itself() -> None:
    x = torch.ones(2)
    assert x.to("cuda") is x
    assert x.to(device=CUDA) is x
    assert x.cuda() is x


def test_precision_is_changed_by_the_same_call() -> None:
    assert torch.ones(2).to("cuda", torch.float64).dtype == torch.float64
    assert torch.ones(2).to(device="cuda", dtype=torch.float16).dtype == torch.float16


def test_other_moves_are_those_of_torch() -> None:
    assert torch.ones(2).to("meta").device.type == "meta"
    assert torch.ones(2).to(torch.float64).dtype == torch.float64


def test_module_stays_where_it_is() -> None:
    layer = nn.Linear(2, 3)
    assert layer.to("cuda:0") is layer
    assert layer.to("cuda", torch.float64).weight.dtype == torch.float64


def test_functions_are_replaced_once() -> None:
    before = torch.zeros
    ignore_names()
    assert torch.zeros is before


def test_replaced_functions_are_no_change_of_a_backend() -> None:
    changed: set[str] = set()
    with watch(changed):
        torch.zeros(2, device="cuda")
    assert not changed
