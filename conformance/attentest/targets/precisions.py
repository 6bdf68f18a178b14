"""The precisions that code computes in: those in which it answers, and which it keeps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from attentest_spec.torch import DTYPES

RAISES_AS_BUILT = (
    "{} answers where all of it is in float64. As it is built, in {}, its call raises {}: look for "
    "numbers that stay in another precision, such as those of a buffer, and mend that first. "
    "--anyway (in Python: anyway=True) judges it in the precisions in which it answers."
)
"""The question about a model that cannot be called as it is built."""


def precisions_of(answers: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the precisions in which a call `answers` and computes, float64 where there is none.

    A call under autocast computes in the precision of that, whichever it is given, but float64.
    """
    found = []
    for name in DTYPES:
        with _Autocast() as autocast:
            answered = answers(name)
        if answered and (name == "float64" or autocast.dtypes <= {DTYPES[name]}):
            found.append(name)
    return tuple(found) or ("float64",)


_DEVICES = ("cpu", "cuda")
"""Code that is read on the CPU may be judged on a GPU, for which its autocast is."""


class _Autocast(TorchFunctionMode):
    """Watches the functions of torch for those that are called under autocast, and its dtypes."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func`, and note the dtype that autocast gives its arguments."""
        for device in _DEVICES:
            if torch.is_autocast_enabled(device):
                self.dtypes.add(torch.get_autocast_dtype(device))
        return func(*args, **(kwargs or {}))
