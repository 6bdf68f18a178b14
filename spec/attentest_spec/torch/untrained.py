"""Calls that keep no gradients, or those of the call before, as code for inference alone does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attentest_spec.contract import Unsupported

SWITCHES_OFF = "its call switches gradients off"
HOLDS_CALLS = "it holds what an earlier call computed, with its gradients"


@dataclass(frozen=True)
class InferenceAlone:
    """Tells whether what was `built` is for inference alone; `call` calls it.

    Training such code fails at its first or second step, in plain sight.
    """

    built: object
    call: Callable[[], object]

    def demand_gradients(self, output: Tensor) -> None:
        """Raise Unsupported where the call, which gave `output`, keeps no gradients by itself.

        The output has any shape.
        """
        if output.requires_grad:
            return
        if output.is_inference() or self.switches_off():
            raise Unsupported(SWITCHES_OFF)

    def __enter__(self) -> None:
        """Begin to differentiate."""

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        """Raise Unsupported for a failure that comes of what an earlier call computed.

        So is one of torch itself, which has no gradient of a kernel on this device.
        """
        if isinstance(failure, NotImplementedError) and _is_of_torch(failure):
            raise Unsupported(str(failure)) from failure
        if isinstance(failure, RuntimeError) and self.holds_calls():
            raise Unsupported(HOLDS_CALLS) from failure

    def switches_off(self) -> bool:
        """Say whether the call switches gradients off for all modules inside.

        That is a decorator of its forward, `torch.no_grad` or `torch.inference_mode`, and nothing
        that detaches a tensor on its way.
        """
        seen: list[bool] = []

        def note(*_: object) -> None:
            seen.append(torch.is_grad_enabled())

        hooks = [one.register_forward_pre_hook(note) for one in self._modules() if self._is_in(one)]
        try:
            with torch.enable_grad():
                self.call()
        finally:
            for hook in hooks:
                hook.remove()
        return bool(seen) and not any(seen)

    def holds_calls(self) -> bool:
        """Say whether tensors that modules hold get new gradients with every call.

        A call that raises shows nothing.
        """
        try:
            with torch.enable_grad():
                self.call()
                before = self._held()
                self.call()
        except Exception:  # code that a user wrote may raise anything
            return False
        after = self._held()
        return any(before.get(name) is not one for name, one in after.items())

    def _modules(self) -> list[nn.Module]:
        return list(self.built.modules()) if isinstance(self.built, nn.Module) else []

    def _is_in(self, module: nn.Module) -> bool:
        """Say whether a module is inside of what was built, or of what that only calls."""
        return module not in (self.built, getattr(self.built, "calls_alone", None))

    def _held(self) -> dict[tuple[int, str, int], object]:
        """Return the operations that gave the tensors that modules hold, by their places."""
        return {
            (id(module), name, at): one.grad_fn
            for module in self._modules()
            for name, value in {**vars(module), **module._buffers}.items()
            for at, one in enumerate(_tensors(value))
            if one.grad_fn is not None
        }


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of a value that a module holds: itself, or those of a row of them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _is_of_torch(failure: BaseException) -> bool:
    """Say whether the code of torch raised `failure`, and no code that it called."""
    trace = failure.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace else ""
    return Path(file).is_relative_to(Path(torch.__file__).parent)
