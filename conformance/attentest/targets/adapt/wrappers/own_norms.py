"""Stacks whose norms the spec has otherwise: one norm for each layer, or two epsilons.

A layer that calls one norm before or after each sublayer gets copies of it, one for each call, and
norms of two epsilons get one. The classes need nothing else of the suite: reproductions and
written adapters contain their source.
"""

import copy
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.stacks import lists_of_layers
from attentest.targets.adapt.parameters.units import units
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.unspecified.branches import epsilons_of, has_norms_by_layer
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper
from attentest_spec.torch import to_array, to_tensor


class InTurn(nn.Module):
    """Copies of one norm: those calls that are in one call of its layer get one each, in order."""

    def __init__(self, norm: nn.Module, times: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(copy.deepcopy(norm) for _ in range(times))
        self.turn = 0

    def restart(self, *_: object) -> None:
        """Begin with the first one again: the layer is called."""
        self.turn = 0

    def forward(self, x: Tensor) -> Any:
        """Return what the next norm returns."""
        self.turn += 1
        return self.norms[self.turn - 1](x)


class OwnNorms(nn.Module):
    """The stack `module` whose layers have a norm of their own for each of `times` calls.

    `layers` is the path of the list of layers, `norm` that of the one norm in each of them.
    """

    def __init__(
        self, module: nn.Module, width: int, *, layers: str, norm: str, times: int
    ) -> None:
        super().__init__()
        self.module, self.width = module, width
        path, _, own = norm.rpartition(".")
        for layer in module.get_submodule(layers).children():
            in_turn = InTurn(layer.get_submodule(norm), times)
            setattr(layer.get_submodule(path), own, in_turn)
            layer.register_forward_pre_hook(in_turn.restart)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the stack returns."""
        return self.module(*args, **named)


class OneEpsilon(nn.Module):
    """The stack `module` whose norms have one `epsilon`, in the attributes called `names`."""

    def __init__(
        self, module: nn.Module, width: int, *, names: Sequence[str], epsilon: float
    ) -> None:
        super().__init__()
        self.module, self.width = module, width
        for one in module.modules():
            for own in names:
                if isinstance(vars(one).get(own), float):
                    setattr(one, own, epsilon)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the stack returns."""
        return self.module(*args, **named)


OWN_NORMS_SOURCE = "\n".join(
    [
        *("import copy", "from typing import Any", "", "from torch import Tensor, nn", "", ""),
        *(inspect.getsource(InTurn), "", inspect.getsource(OwnNorms)),
    ]
)
ONE_EPSILON_SOURCE = "\n".join(
    [
        *("from collections.abc import Sequence", "from typing import Any", ""),
        *("from torch import nn", "", "", inspect.getsource(OneEpsilon)),
    ]
)
"""The classes as code of their own, for a reproduction or a written adapter."""

IN_TURN = (
    "assumed that one norm for all sublayers of a layer, {}, is meant: this spec has one for each "
    "sublayer, and it is judged with one for each"
)
_EPSILON = (
    "assumed that norms of two epsilons are meant, {} with {:g} and the others with {:g}: this "
    "spec has one for all norms, and it is judged with {:g} for all"
)


def with_one_epsilon(code: Code, found: FoundTable, reading: Reading) -> Iterator[Code]:
    """Yield a stack whose norms have two epsilons with the one of most of them."""
    seen = found.observed
    if seen is None or reading.strict or not _is_stack(code) or not (held := epsilons_of(seen)):
        return
    most = max(held.values(), key=list(held.values()).count)
    path, epsilon = next((place[0], one) for place, one in held.items() if one != most)
    said = _EPSILON.format(path, epsilon, most, most)
    options: dict[str, Any] = {"names": sorted({one for _, one in held}), "epsilon": most}
    yield code.wrapped(Wrapper(OneEpsilon, ONE_EPSILON_SOURCE, WIDTH, said, options))


def with_own_norms(
    code: Code, adapter: Adapter, found: FoundTable, reading: Reading
) -> Code | None:
    """Return a stack with a norm for each sublayer of its layers, None where that is no other.

    A watched call has to give the same numbers.
    """
    seen = found.observed
    if seen is None or reading.strict or not _is_stack(code):
        return None
    if not has_norms_by_layer(found, code.component):
        return None
    own, times = units(seen.module, seen.sizes.heads), 2 if code.component == "encoder" else 3
    for layers in lists_of_layers(own, seen.sizes):
        start = f"{layers.start}0."
        norms = [one.path.removeprefix(start) for one in layers.units if one.kind == "norm"]
        if len(norms) != 1:
            continue
        said = IN_TURN.format(f"{start}{norms[0]}")
        path = layers.start.removesuffix(".")
        options: dict[str, Any] = {"layers": path, "norm": norms[0], "times": times}
        wrapper = Wrapper(OwnNorms, OWN_NORMS_SOURCE, WIDTH, said, options)
        if _computes(wrapper, adapter, seen):
            return code.wrapped(wrapper)
    return None


def _is_stack(code: Code) -> bool:
    built = code.construction is not None and code.wrapper is None
    return built and code.component in ("encoder", "decoder")


def _computes(wrapper: Wrapper, adapter: Adapter, seen: Observed) -> bool:
    """Say whether the observed module gives what it gave with the class around it."""
    if not seen.run.samples:
        return False
    sample = seen.run.samples[0]
    inputs = [to_tensor(one) if isinstance(one, np.ndarray) else one for one in sample.inputs]
    try:
        with undisturbed():
            answer = to_array(adapter(wrapper(copy.deepcopy(seen.module), seen.sizes), *inputs))
    except Exception:  # its layers call the norm more often, or no hook is called with them
        return False
    return answer.shape == sample.output.shape and np.allclose(answer, sample.output, 1e-12, 1e-12)
