import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

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
    "a number that is not there": lambda: bool((on_meta(2) == 1).all()),
}


@pytest.mark.parametrize("name", WRONG)
def test_operation_that_torch_refuses_on_meta_is_refused(name: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        WRONG[name]()
    with OnMeta(), pytest.raises((RuntimeError, NotImplementedError)):
        WRONG[name]()


def test_simple_operations_need_no_compiler() -> None:
    assert subprocess.run([sys.executable, "-c", WITHOUT_A_COMPILER], check=False).returncode == 0
