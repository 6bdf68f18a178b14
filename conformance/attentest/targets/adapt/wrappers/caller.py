"""A norm that is a function of its weights, with a module around it that holds these.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import EPSILON, words
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper

_GAINS = words("weight gamma gain g scale w alpha")
_BIASES = words("bias beta b")
"""Names of arguments that carry the parameters of a norm."""

_EPSILON = 1e-5
"""The epsilon that a norm gets where its caller says it: every one is judged by one formula."""


class HeldByCaller(nn.Module):
    """Calls `function` with parameters of `width` numbers: `gains` are ones, `biases` zeros.

    The arguments `without` get None, and those of `constants` their numbers.
    """

    def __init__(
        self,
        function: Any,
        width: int,
        *,
        gains: Sequence[str] = (),
        biases: Sequence[str] = (),
        without: Sequence[str] = (),
        constants: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        self.function, self.without = function, tuple(without)
        self.constants = dict(constants or {})
        for name in (*gains, *biases):
            start = torch.ones(width) if name in gains else torch.zeros(width)
            self.register_parameter(name, nn.Parameter(start))

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the function does."""
        held = {**dict(self.named_parameters()), **dict.fromkeys(self.without), **self.constants}
        return self.function(*args, **named, **held)


SOURCE = "\n".join(
    [
        "from collections.abc import Mapping, Sequence",
        "from typing import Any",
        "",
        "import torch",
        "from torch import nn",
        "",
        "",
        inspect.getsource(HeldByCaller),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_SENTENCE = (
    "its caller holds {}: it is judged in a module that does, where the weights begin as ones"
)


def held_by_caller(
    thing: Callable[..., Any], component: str, reading: Reading
) -> tuple[Wrapper, inspect.Signature] | None:
    """Return what holds the parameters of a norm, and its signature without them, None for others.

    One of them at least has no default. An RMS norm has no bias: one that is needed gets None.
    """
    if component not in ("layer_norm", "rms_norm") or not inspect.isfunction(thing):
        return None
    signature = inspect.signature(thing)
    rest = {name: one for name, one in signature.parameters.items() if name not in reading.given}
    gains = [name for name in rest if squashed(name) in _GAINS]
    biases = [name for name in rest if squashed(name) in _BIASES]
    needed = [name for name in (*gains, *biases) if rest[name].default is inspect.Parameter.empty]
    if not needed or len(gains) != 1 or len(biases) > 1:
        return None
    options: dict[str, Any] = {"gains": gains}
    if component == "layer_norm":
        options["biases"] = biases
    else:
        options["without"] = [one for one in biases if one in needed]
    empty = inspect.Parameter.empty
    epsilons = [one for one in rest if squashed(one) in EPSILON and rest[one].default is empty]
    if epsilons:
        options["constants"] = dict.fromkeys(epsilons, _EPSILON)
    held = {name for names in options.values() for name in names}
    left = [one for name, one in signature.parameters.items() if name not in held]
    said = " and ".join([*gains, *options.get("biases", ())])
    wrapper = Wrapper(HeldByCaller, SOURCE, WIDTH, _SENTENCE.format(said), options)
    return wrapper, signature.replace(parameters=left)
