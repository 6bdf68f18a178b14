"""Single precision inside code that is called in double precision."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attentest.analysis.identify import identify
from attentest.targets.adapt import trust
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import Backend, Limits

SINGLE = (
    "assumed that it computes in float32, in part at least, whatever its input is, as measured, "
    "and judged in that: if it is meant to follow its input, this is a mistake, and --strict "
    "reports it"
)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Watches the operations of a call for tensors in single precision."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.single = False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `func`, and note whether one of its tensors is in single precision."""
        result = func(*args, **(kwargs or {}))
        tensors = (one for one in tree_leaves((args, kwargs, result)) if isinstance(one, Tensor))
        self.single |= any(one.dtype == torch.float32 for one in tensors)
        return result


def rounds_to_single(call: Callable[[], object]) -> bool:
    """Say whether `call`, in double precision, computes with numbers of single precision.

    They are seen in its operations, or in its output where they come from outside of torch.
    """
    with undisturbed(), _Watch() as watch:
        output = call()
    if not isinstance(output, Tensor) or output.dtype != torch.float64:
        return False
    return watch.single or torch.equal(output, output.float().double())


def in_single(backend: Backend, call: Callable[[], object]) -> Limits | None:
    """Return the limits of `backend` without double precision, None where that explains nothing.

    It does where `call` rounds to single precision, and numbers in that show an option of every
    choice.
    """
    if not rounds_to_single(call) or not trust.explained(identify(backend, precision="float32")):
        return None
    rest = tuple(one for one in backend.limits.precisions if one != "float64")
    return replace(backend.limits, precisions=rest)
