"""The behaviour of a module in one call: its output, and the tensors passing through its parts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters.degenerate import with_numbers
from attentest_spec import Setting, Sizes
from attentest_spec.setting import Array, Floats
from attentest_spec.torch import to_array

Inputs = tuple[Array | None, ...]

BATCH, QUERIES, KEYS = 2, 3, 4
"""Unlike lengths, so that a tensor's axes tell what it is."""


@dataclass(frozen=True)
class Sample:
    """Inputs in the contract's order, and the output that was seen."""

    inputs: Inputs
    output: Floats


@dataclass(frozen=True)
class Fired:
    """One call of a submodule: the floats that went in, and the first float that came out."""

    path: str
    inputs: tuple[Floats, ...]
    output: Floats


Compute = Callable[[Setting], Floats]
"""The formula of a part, from the setting of the whole."""


@dataclass(frozen=True)
class Stage:
    """A part of a whole that was called as a module of its own: its `output` in the first sample.

    `axes` are the open choices that its formula depends on, `formulas` all that it may be.
    """

    axes: tuple[str, ...]
    formulas: tuple[Compute, ...]
    output: Floats


@dataclass
class Run:
    """Everything seen of one module with random parameters."""

    own: dict[str, Floats]
    trained: frozenset[str] = frozenset()
    samples: list[Sample] = field(default_factory=list)
    fired: list[Fired] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    failure: str = ""

    def when(self, path: str) -> int | None:
        """Return when the submodule at `path`, or the nearest above it that was called, began."""
        while path:
            if path in self.order:
                return self.order.index(path)
            path = path.rpartition(".")[0]
        return None

    def home(self, paths: list[str], above: str) -> Fired | None:
        """Return the call of the innermost submodule below `above` that holds all `paths`."""
        for one in sorted(self.fired, key=lambda fired: -len(fired.path)):
            below = not above or one.path.startswith(f"{above}.")
            if one.path and below and all(f"{path}.".startswith(f"{one.path}.") for path in paths):
                return one
        return None


def observe(module: nn.Module, call: Callable[..., Any], component: str, sizes: Sizes) -> Run:
    """Give `module` random parameters in float64, call it, and write down what happens.

    Nothing is raised: where every call fails, `samples` is empty and `failure` says why.
    """
    rng = np.random.default_rng(0)
    module.double().eval()
    _randomise(module, rng, sizes)
    trained = frozenset(name for name, one in _named(module) if one.requires_grad)
    run = Run({name: to_array(one) for name, one in _named(module)}, trained)
    hooks = list(_hooks(module, run))
    for inputs in drawn(component, sizes, rng):
        if len(run.samples) == 2:
            break
        try:
            result = call(module, *(_tensor(one) for one in inputs))
            output = _first(result)
        except Exception as failure:  # whatever a foreign module raises
            if run.samples:
                continue  # it takes the easier inputs alone: what was watched stays
            run.failure = f"{type(failure).__name__}: {failure}"
            run.order.clear()
            run.fired.clear()
            continue
        if output is not None:
            run.samples.append(Sample(inputs, output))
            run.failure = ""
        for hook in hooks:  # the first call that works is the one that is watched
            hook.remove()
    return run


def drawn(component: str, sizes: Sizes, rng: np.random.Generator) -> list[Inputs]:
    """Return inputs for `component` to try in turn: plain ones first, easier ones after them."""
    width = sizes.d_model
    x, memory, value = (rng.normal(size=(BATCH, n, width)) for n in (QUERIES, KEYS, KEYS))
    keep = np.ones((BATCH, 1, 1, KEYS), dtype=bool)
    own = np.ones((BATCH, 1, QUERIES, QUERIES), dtype=bool)
    earlier = np.tril(np.ones((1, 1, QUERIES, QUERIES), dtype=bool))
    source = rng.integers(1, sizes.source_vocabulary, size=(BATCH, KEYS))
    target = rng.integers(1, sizes.target_vocabulary, size=(BATCH, QUERIES))
    tries: dict[str, list[Inputs]] = {
        "multi_head_attention": [
            (x, memory, value, None),
            (x, memory, value, keep.repeat(QUERIES, 2)),
            (x, x, x, None),
            (x, x, x, own),
            (x, x, x, earlier),
        ],
        "residual": [(x, rng.normal(size=(width, width)))],
        "embedding": [(source,)],
        "encoder_layer": [(x, None), (x, own), (x, earlier)],
        "decoder_layer": [
            (x, memory, None, None),
            (x, memory, keep.repeat(QUERIES, 2), own),
            (x, memory, None, earlier),
        ],
        "model": [(source, target)],
    }
    tries |= {"encoder": tries["encoder_layer"], "decoder": tries["decoder_layer"]}
    return tries.get(component, [(x,)])


def _randomise(module: nn.Module, rng: np.random.Generator, sizes: Sizes) -> None:
    """Move every parameter away from its birth; vectors stay near it, gains away from zero."""
    with_numbers(module)  # a vector that is not a number does not get nearer to one
    held = list(filter(torch.is_floating_point, module.parameters()))
    trained = [one for one in held if one.requires_grad]
    with torch.no_grad():
        for parameter in trained or held:
            noise = torch.from_numpy(rng.normal(size=tuple(parameter.shape)))
            if parameter.dim() > 1 and max(parameter.shape) != parameter.numel():
                parameter.copy_(noise / sizes.d_model**0.5)
            else:
                parameter.add_(0.5 * noise)


def _named(module: nn.Module) -> list[tuple[str, Tensor]]:
    return list(module.named_parameters(remove_duplicate=False))


def _hooks(module: nn.Module, run: Run) -> Iterator[Any]:
    for path, inner in module.named_modules():

        def before(_: nn.Module, *rest: Any, path: str = path) -> None:
            run.order.append(path)

        def after(_: nn.Module, given: Any, named: Any, result: Any, path: str = path) -> None:
            output = _first(result)
            floats = [one for one in (*given, *named.values()) if _float(one)]
            if output is not None and path not in [one.path for one in run.fired]:
                inputs = tuple(to_array(one).copy() for one in floats)
                run.fired.append(Fired(path, inputs, output.copy()))

        yield inner.register_forward_pre_hook(before)
        yield inner.register_forward_hook(after, with_kwargs=True)


def _first(result: Any) -> Floats | None:
    """Return the first float tensor of a result, as an array."""
    results = result if isinstance(result, tuple | list) else (result,)
    return next((to_array(one) for one in results if _float(one)), None)


def _float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _tensor(value: Array | None) -> Tensor | None:
    return None if value is None else torch.from_numpy(value.copy())
