"""Functions that compute with arrays of NumPy or JAX, called with tensors."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest_spec.contract import Unsupported
from attentest_spec.names import require
from attentest_spec.torch.values import to_array, to_tensor

LIBRARIES = ("numpy", "jax")


def on_arrays(
    function: Callable[..., Any], library: str = "numpy", *, rounded: bool = False
) -> Callable[..., Any]:
    """Return `function`, which computes with arrays of a `library`, as a function of tensors.

    Arguments that are tensors, in tuples, lists and dictionaries too, reach it as arrays of the
    same shape and precision, and the arrays of its result are tensors again. JAX computes the
    gradients of its own functions; it computes in 64 bits where a tensor has them. NumPy has no
    gradients and no bfloat16, and float16 is a format for storage there; both compute on the CPU
    here. With `rounded`, a result in float64 has the precision of the input of its shape, or of
    the widest input: one scalar of NumPy, such as a root, makes it float64 whatever these are.
    Raises :class:`~attentest_spec.names.UnknownName` for other libraries, and Unsupported in a call
    for what the library does not have.
    """
    call = {"numpy": _call_numpy, "jax": _call_jax}[require("library", library, LIBRARIES)]

    @wraps(function)
    def on_tensors(*args: Any, **named: Any) -> Any:
        found = call(function, args, named)
        return _rounded(found, (args, named)) if rounded else found

    # For those who write code that calls it.
    vars(on_tensors)["written_as"] = f"on_arrays({{}}, {library!r}, rounded={rounded})"
    return on_tensors


def by_tensors(module: Callable[..., Any], args: Any, named: Any) -> Any:
    """Return what `module`, which computes with tensors, returns for arrays of NumPy, as arrays."""
    given_args, given_named = _mapped((args, named), _tensor)
    with torch.no_grad():
        return _mapped(module(*given_args, **given_named), to_array)


def _rounded(result: Any, given: Any) -> Any:
    """Return `result` without double precision where its inputs have less.

    The input of its shape says so, and the widest where none has that shape: tables of sines are
    in double precision beside an input in single precision.
    """
    floats = [one for one in _tensors(given) if one.is_floating_point()]

    def rounded(one: Tensor) -> Tensor:
        alike = [each for each in floats if each.shape == one.shape] or floats
        widest = max(alike, key=lambda each: torch.finfo(each.dtype).bits)
        return one.to(widest.dtype) if one.dtype == torch.float64 else one

    return _mapped(result, rounded) if floats else result


def _call_numpy(function: Callable[..., Any], args: Any, named: Any) -> Any:
    for one in _tensors((args, named)):
        if one.dtype in (torch.bfloat16, torch.float16):
            raise Unsupported(f"NumPy does not compute in {str(one.dtype).removeprefix('torch.')}")
        if one.requires_grad and torch.is_grad_enabled():
            raise Unsupported("NumPy computes no gradients")
    given_args, given_named = _mapped((args, named), _host_array)
    quiet = {kind: "ignore" for kind, how in np.geterr().items() if how == "warn"}
    with np.errstate(**quiet):  # type: ignore[arg-type]  # as for tensors, 0 / 0 is no warning
        return _mapped(function(*given_args, **given_named), _tensor)


def _call_jax(function: Callable[..., Any], args: Any, named: Any) -> Any:
    tensors = list(_tensors((args, named)))
    if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
        return _Pulled.run(function, (args, named), tensors)
    return _computed(function, (args, named))


def _computed(function: Callable[..., Any], given: Any) -> Any:
    import jax
    import jax.numpy as jnp

    wide = any(one.dtype == torch.float64 for one in _tensors(given))
    with jax.enable_x64(wide):
        args, named = _mapped(given, lambda one: jnp.asarray(_host_array(one)))
        return _mapped(function(*args, **named), _tensor)


class _Pulled(torch.autograd.Function):
    """A function of JAX, whose gradients JAX computes."""

    @staticmethod
    def run(function: Callable[..., Any], given: Any, tensors: list[Tensor]) -> Any:
        """Return the result of `function` for `given`, connected with the `tensors` in it."""
        structure: list[Any] = []
        found = _Pulled.apply(function, given, structure, *tensors)  # type: ignore[no-untyped-call]
        outputs = iter(found)
        return _mapped(structure[0], lambda _: next(outputs))

    @staticmethod
    def forward(ctx: Any, function: Any, given: Any, structure: Any, *tensors: Tensor) -> Any:
        """Compute, and keep what pulls a cotangent back."""
        import jax
        import jax.numpy as jnp

        floats = [number for number, one in enumerate(tensors) if one.is_floating_point()]

        def called(*values: Any) -> Any:
            new = dict(zip(floats, values, strict=True))
            arrays = iter(
                new.get(number, jnp.asarray(_host_array(one))) for number, one in enumerate(tensors)
            )
            args, named = _mapped(given, lambda _: next(arrays))
            return function(*args, **named)

        wide = any(one.dtype == torch.float64 for one in tensors)
        with jax.enable_x64(wide):
            values = [jnp.asarray(_host_array(tensors[number])) for number in floats]
            result, pull = jax.vjp(called, *values)
        ctx.count, ctx.floats, ctx.pull, ctx.wide = len(tensors), floats, pull, wide
        made = _mapped(result, _tensor)
        structure.append(made)
        ctx.result = result
        return tuple(_tensors(made))

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Return the gradients with respect to the tensors; None for whole numbers."""
        import jax
        import jax.numpy as jnp

        given = iter(cotangents)
        with jax.enable_x64(ctx.wide):
            pulled = ctx.pull(
                jax.tree.map(
                    lambda one: jnp.asarray(_host_array(next(given)), one.dtype), ctx.result
                )
            )
        found: list[Tensor | None] = [None] * ctx.count
        for number, one in zip(ctx.floats, pulled, strict=True):
            found[number] = _tensor(one)
        return None, None, None, *found


def _host_array(tensor: Tensor) -> Any:
    if tensor.device.type != "cpu":
        raise Unsupported(f"it computes on the CPU, and the input lies on {tensor.device.type}")
    return to_array(tensor)


def _tensor(value: Any) -> Tensor:
    return to_tensor(np.asarray(value))


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in `value`, in the order in which `_mapped` meets them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return `value` with all tensors and arrays in it changed."""
    if isinstance(value, dict):
        return {name: _mapped(one, change) for name, one in value.items()}
    if isinstance(value, tuple | list):
        many = [_mapped(one, change) for one in value]
        return many if isinstance(value, list) else tuple(many)
    is_array = isinstance(value, Tensor | np.ndarray | np.generic) or _is_jax(value)
    return change(value) if is_array else value


def _is_jax(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
