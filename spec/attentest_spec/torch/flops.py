"""Observes the operations that torch carries out, and counts those of floating point."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that observes the operations of torch, without the compiler.

    Torch imports its compiler for every other mode, to keep it off the code of the mode: three
    seconds of processor time. Code that is compiled may raise inside the mode, as
    :func:`torch.nn.attention.flex_attention.flex_attention` does, and whenever it is called again.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __exit__(self, *raised: Any) -> None:
        """End the observation, and discard what was compiled during it."""
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        if "torch._dynamo.eval_frame" in sys.modules:  # the compiler itself, and not its name alone
            torch._dynamo.reset()


class FlopCounter(OperationMode):
    """Adds up the operations of all matrix products, by torch's own formulas.

    Torch's own counter also counts module by module, and so cannot follow the gradients of a
    call's inputs.
    """

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, and count it where it is a product."""
        named = kwargs or {}
        result = func(*args, **named)
        if formula := flop_registry.get(func._overloadpacket):
            self.total += int(formula(*args, **named, out_val=result))
        return result


@contextmanager
def count_flops() -> Iterator[FlopCounter]:
    """Count the operations of all matrix products inside the block.

    Fused kernels hide their products, so they are switched off: those of attention by selecting
    its plain form, those of whole layers by recording gradients, which they do not support. The
    count is that of the function, without operations that a kernel repeats.
    """
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounter() as counter:
        yield counter
