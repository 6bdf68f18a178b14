import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attentest_spec.torch.meta import OnMeta

WITHOUT_A_COMPILER = """
import sys
import torch
from attentest_spec.torch.flops import count_flops
from attentest_spec.torch.meta import OnMeta

with OnMeta():
    tokens = torch.tensor([[1, 2, 3]]).to("meta")
    triangle = torch.tril(torch.ones(3, 3, dtype=torch.bool, device=tokens.device))
    mask = (tokens != 3)[:, None, None] & triangle
    later = torch.arange(3, device=mask.device)[None] > torch.arange(3, device=mask.device)[:, None]
    scores = torch.zeros(3, 3, device="meta").masked_fill(~mask | later, -1.0)
    table = torch.stack([scores.sin(), scores.cos()], dim=-1).flatten(-2)
    assert torch.cat((table, table), 1).shape == (1, 2, 3, 6)
with count_flops() as counted:
    torch.ones(2, 3) @ torch.ones(3, 5)
assert counted.total == 60
assert scores.shape == (1, 1, 3, 3) and scores.is_meta
sys.exit("torch._dynamo" in sys.modules or "sympy" in sys.modules)
"""


def on_meta(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


OPERATIONS: dict[str, Callable[[], Tensor]] = {
    "a comparison": lambda: on_meta(2, 3) != 3,
    "one that broadcasts": lambda: on_meta(2, 1, 1, 3) <= on_meta(3, 1),
    "both of two": lambda: on_meta(3, 3, dtype=torch.bool) & on_meta(2, 1, 3, dtype=torch.bool),
    "a triangle": lambda: torch.tril(on_meta(3, 3, dtype=torch.bool)),
    "one above the diagonal": lambda: on_meta(2, 3, 4).triu(diagonal=1),
    "one in place": lambda: on_meta(3, 3).tril_(),
    "one of a transposed matrix": lambda: on_meta(3, 4).t().tril(),
    "a filled mask": lambda: on_meta(2, 3).double().masked_fill(on_meta(3).bool(), -1.0),
    "a choice": lambda: torch.where(on_meta(3).bool(), on_meta(2, 1), 1.5),
    "what is broadcast": lambda: on_meta(3).expand(2, 3) * 2,
    "nothing": lambda: on_meta(0, 3) == 1,
    "a range": lambda: torch.arange(1, 5, 2, device="meta"),
    "a range of the CPU": lambda: torch.arange(3, device=None),
    "ones": lambda: torch.ones_like(on_meta(2, 3)),
    "a repeated row": lambda: on_meta(1, 3).repeat(2, 1),
    "a stack": lambda: torch.stack([on_meta(2, 3), on_meta(2, 3)], dim=-1),
    "a concatenation": lambda: torch.cat((on_meta(2, 3), on_meta(2, 1).double()), dim=1),
    "a concatenation of the CPU": lambda: torch.cat([torch.ones(2), torch.ones(1)]),
    "an operation of another device": lambda: torch.ones(2) + 1,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_meta_gives_what_torch_gives(name: str) -> None:
    theirs = OPERATIONS[name]()
    with OnMeta():
        ours = OPERATIONS[name]()
    for one in ("shape", "dtype", "device"):
        assert getattr(ours, one) == getattr(theirs, one)
    assert ours.stride() == theirs.stride()


def test_an_operation_in_place_returns_its_tensor() -> None:
    tensor = on_meta(3, 3)
    with OnMeta():
        assert tensor.triu_(1) is tensor


WRONG: dict[str, Callable[[], object]] = {
    "two devices": lambda: on_meta(3) == torch.ones(3),
    "several devices": lambda: torch.cat([on_meta(3), torch.ones(3)]),
    "a stack of different shapes": lambda: torch.stack([on_meta(2), on_meta(3)]),
    "shapes that do not broadcast": lambda: on_meta(2) == on_meta(3),
    "a triangle of a row": lambda: on_meta(3).tril(),
}


@pytest.mark.parametrize("name", WRONG)
def test_operation_that_torch_refuses_on_meta_is_refused(name: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        WRONG[name]()
    with OnMeta(), pytest.raises((RuntimeError, NotImplementedError)):
        WRONG[name]()


MIXED: dict[str, Callable[[], object]] = {
    "a product of matrices": lambda: on_meta(2, 3) @ torch.ones(3, 2),
    "a linear map": lambda: nn.functional.linear(on_meta(2, 3), torch.ones(4, 3)),
    "a sum in place": lambda: on_meta(3).add_(torch.ones(3)),
    "an embedding": lambda: nn.functional.embedding(on_meta(2).long(), torch.ones(4, 3)),
    "an einsum": lambda: torch.einsum("ij,kj->ik", on_meta(2, 3), torch.ones(4, 3)),
    "rows by numbers on meta": lambda: torch.ones(4, 3)[on_meta(2).long()],
    "an output": lambda: torch.add(torch.ones(3), torch.ones(3), out=on_meta(3)),
}


@pytest.mark.parametrize("name", MIXED)
def test_tensors_on_two_devices_are_refused_as_on_an_accelerator(name: str) -> None:
    with OnMeta(), pytest.raises(RuntimeError, match="two devices"):
        MIXED[name]()


ALLOWED: dict[str, Callable[[], Any]] = {
    "a move": lambda: torch.ones(3).to(on_meta(2)),
    "a move by the type of another": lambda: torch.ones(3).type_as(on_meta(2)),
    "a number": lambda: on_meta(2) * torch.tensor(2.0),
    "rows by numbers on the CPU": lambda: on_meta(4, 3)[torch.tensor([0, 1])],
    "the shape of another": lambda: on_meta(1).expand_as(torch.ones(3)),
    "a copy": lambda: on_meta(3).copy_(torch.ones(3)),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_tensors_on_two_devices_are_allowed_where_an_accelerator_allows_them(name: str) -> None:
    with OnMeta():
        assert ALLOWED[name]().is_meta


def test_numbers_that_are_read_are_zeros() -> None:
    with OnMeta():
        assert not (on_meta(2) == 1).all()
        assert int(on_meta(2).long().max()) == 0
        assert on_meta(2).tolist() == [0.0, 0.0]


def test_simple_operations_need_no_compiler() -> None:
    assert subprocess.run([sys.executable, "-c", WITHOUT_A_COMPILER], check=False).returncode == 0
