"""Tensors in other memory than their arrays: changes of the tensors are seen in the arrays."""

import numpy as np
import pytest
import torch

from attentest_spec import Sizes
from attentest_spec.torch import of_function, placement

SIZES = Sizes(d_model=4)


@pytest.fixture(params=["elsewhere", "shared"], autouse=True)
def memory(request, monkeypatch):
    """Take other memory on the CPU in the place of a GPU's, or the memory of the arrays."""
    if request.param == "elsewhere":
        monkeypatch.setattr(placement, "is_copied", lambda device: device.type != "meta")


def part(function):
    return of_function(function, "layer_norm").build("layer_norm", SIZES)


def test_change_of_an_input_is_seen():
    x = np.ones((2, 4))
    part(lambda x: x.mul_(3) + 1)(x)
    assert (x == 3).all()


def test_change_of_an_input_while_a_gradient_is_recorded_is_seen():
    x = np.ones((2, 4))

    def call(x):
        x.detach().mul_(3)
        return x * 2

    part(call).vjp((x,), np.ones((2, 4)))
    assert (x == 3).all()


def test_later_change_of_an_output_is_seen():
    buffer = torch.zeros(2, 4, dtype=torch.float64)
    one = part(lambda x: buffer.copy_(x))
    first = one(np.ones((2, 4)))
    second = one(np.full((2, 4), 7.0))
    assert (first == 7).all()
    assert (second == 7).all()


@pytest.mark.parametrize("dtype", [np.float64, np.bool_, np.int64])
def test_strides_are_kept(dtype):
    x = np.ones((6, 8), dtype=dtype)[::2, ::4]
    strides = part(lambda x: torch.tensor(x.stride()))(x)
    assert strides.tolist() == [16, 4]


def test_broadcast_input_is_placed():
    x = np.lib.stride_tricks.as_strided(np.ones(4), (3, 4), (0, 8))
    assert part(lambda x: x * 2)(x).tolist() == [[2.0] * 4] * 3


def test_array_that_its_owner_changes_stays_as_it_is():
    x, scale = np.ones((2, 4)), np.ones((2, 4))
    one = part(lambda x: x * (1 if x.max() < 5 else torch.ones(7)))
    output = one(x)
    x[:], output[:] = 9.0, 8.0
    with pytest.raises(RuntimeError):
        one(x)
    x[:] = 2.0
    one(scale)
    assert (x == 2).all()
    assert (output == 8).all()


def test_state_of_the_generators():
    torch.manual_seed(3)
    before = placement.random_state("cpu")
    torch.rand(1)
    assert placement.random_state("cpu") != before
    assert placement.random_state("meta") == placement.random_state("cpu")


def test_convolutions_elsewhere_keep_all_digits(request):
    before = torch.backends.cudnn.allow_tf32
    seen = []
    part(lambda x: seen.append(torch.backends.cudnn.allow_tf32) or x)(np.ones((2, 4)))
    expected = False if "[elsewhere]" in request.node.name else before
    assert seen == [expected]
    assert torch.backends.cudnn.allow_tf32 == before
