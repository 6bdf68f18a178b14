"""Functions of NumPy and JAX that are called with tensors."""

import numpy as np
import pytest
import torch

from attentest_spec import UnknownName, Unsupported
from attentest_spec.torch import on_arrays


def tensor(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.arange(1.0, 1 + np.prod(shape)).reshape(shape).to(dtype)


def test_tensors_are_arrays_inside_and_tensors_again():
    def function(x, many, *, named):
        assert isinstance(x, np.ndarray)
        assert isinstance(many[0], np.ndarray)
        assert isinstance(named["y"], np.ndarray)
        return {"sum": x + many[0] + named["y"], "mean": x.mean(), "shape": (x.shape, None)}

    found = on_arrays(function)(tensor(2), [tensor(2)], named={"y": tensor(2)})
    assert torch.equal(found["sum"], 3 * tensor(2))
    assert found["mean"].shape == ()
    assert found["shape"] == ((2,), None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_precision_is_kept(dtype):
    assert on_arrays(lambda x: x.copy())(tensor(3, dtype=dtype)).dtype == dtype


def test_changes_of_an_input_are_seen():
    x = tensor(3)
    on_arrays(lambda x: np.multiply(x, 2, out=x))(x)
    assert torch.equal(x, 2 * tensor(3))


@pytest.mark.parametrize(("rounded", "dtype"), [(True, torch.float32), (False, torch.float64)])
def test_double_precision_of_a_scalar_is_rounded_on_demand(rounded, dtype):
    found = on_arrays(lambda x: x / np.sqrt(2), rounded=rounded)(tensor(3, dtype=torch.float32))
    assert found.dtype == dtype


def test_an_input_of_the_shape_of_the_result_says_its_precision():
    table = tensor(1, 4)
    multiplied = on_arrays(lambda x, table: x * table, rounded=True)
    assert multiplied(tensor(3, 4, dtype=torch.float32), table).dtype == torch.float32
    assert multiplied(tensor(3, 4), table.float()).dtype == torch.float64
    summed = on_arrays(lambda x, table: (x * table).sum(), rounded=True)
    assert summed(tensor(3, 4, dtype=torch.float32), table).dtype == torch.float64


def test_bfloat16_gradients_and_other_devices_are_unsupported_in_numpy():
    copied = on_arrays(lambda x: x + 1)
    with pytest.raises(Unsupported, match="bfloat16"):
        copied(tensor(3, dtype=torch.bfloat16))
    with pytest.raises(Unsupported, match="gradients"):
        copied(tensor(3).requires_grad_())
    with torch.no_grad():
        assert torch.equal(copied(tensor(3).requires_grad_()), tensor(3) + 1)
    with pytest.raises(Unsupported, match="meta"):
        copied(tensor(3).to("meta"))


def test_numpy_does_not_warn_of_a_quotient_of_zeros_and_raises_where_the_user_says_so():
    divided = on_arrays(lambda x: x / x)
    assert divided(torch.zeros(2)).isnan().all()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        divided(torch.zeros(2))


def test_other_libraries_are_refused():
    with pytest.raises(UnknownName, match="library"):
        on_arrays(lambda x: x, "cupy")


def test_jax_computes_values_and_gradients():
    jnp = pytest.importorskip("jax.numpy")

    def function(x, rows, scale):
        return jnp.sin(x[rows]) * scale["by"], x.sum()

    def same(x, rows, scale):
        return torch.sin(x[rows]) * scale["by"], x.sum()

    rows = torch.tensor([0, 2])
    answers = []
    for one in (on_arrays(function, "jax"), same):
        x, by = tensor(3).requires_grad_(), tensor(2).requires_grad_()
        first, second = one(x, rows, {"by": by})
        (first.sum() * 2 + second).backward()
        answers.append((first.detach(), second.detach(), x.grad, by.grad))
    for mine, theirs in zip(*answers, strict=True):
        assert mine.dtype == theirs.dtype == torch.float64
        assert torch.allclose(mine, theirs, rtol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_jax_computes_in_the_precision_of_its_input(dtype):
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    found = on_arrays(lambda x: jax.nn.relu(x) * 2, "jax")(tensor(3, dtype=dtype))
    assert found.dtype == dtype
    assert jax.config.jax_enable_x64 == before
