"""Feed-forward networks whose activation is a function of torch that is no option of the spec."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.names import words
from attentest.targets.adapt.parameters.behaviour import Run, Sample
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.trial import fitting
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.recognise import answer
from attentest_spec import Choices
from attentest_spec.components import inside
from attentest_spec.torch import to_array

_OTHERS = words(
    "leaky_relu elu selu celu mish tanh softplus hardswish relu6 softsign hardtanh leaky_relu_ elu_"
)
"""Activations of torch that are no options, by the names of their functions."""


class _Exchanged(TorchFunctionMode):
    """Computes a ReLU where code calls another activation of torch, and notes its name."""

    def __init__(self) -> None:
        super().__init__()
        self.named: list[str] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func`, or a ReLU in its place."""
        name = getattr(func, "__name__", "")
        if name in _OTHERS and args and isinstance(args[0], Tensor):
            self.named.append(name.rstrip("_"))
            return functional.relu(args[0])
        return func(*args, **(kwargs or {}))


def other_activation(probe: Probe, adapter: Adapter, found: FoundTable, known: Choices) -> str:
    """Recognise an activation of torch in the place of which a ReLU gives the formula's numbers.

    "" for none. One that code writes out itself may be a mistake in another, as a slope that was
    left in.
    """
    component, module = adapter.component, probe.built
    if "feed_forward" not in inside(component) or not isinstance(module, nn.Module):
        return ""
    seen = found.observed if found.observed and found.observed.run.samples else None
    if not found.table or not (seen or component == "feed_forward"):
        return ""
    if seen is None:
        own = {name: to_array(one) for name, one in module.named_parameters(remove_duplicate=False)}
        x = to_array(next(iter(probe.given(adapter).values())))
        seen = Observed(module, SIZES, Run(own, samples=[Sample((x,), x)]))
    mode, sample = _Exchanged(), seen.run.samples[0]
    with undisturbed(), mode:
        output = answer(adapter, seen.module, sample.inputs)
    if output is None or not mode.named:
        return ""
    exchanged, declared = [Sample(sample.inputs, output)], known.but(activation="relu")
    with undisturbed():
        fits = fitting(
            component, [found.table], exchanged, seen.run, seen.sizes, declared, Clock(1.0)
        )
    return f"its activation is {mode.named[0]}, and no option of the spec" if fits else ""
