"""Recipes, backends and parts that adapt torch modules and functions to the contract.

An adapter writes one :class:`Recipe` per component (how to build it, how to call it, which of its
parameters is which) and one :class:`TorchBackend`. All that belongs to the framework (state,
copies, moves, gradients, modes) is implemented here, once.
"""

import copy
import io
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import isgeneratorfunction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attentest_spec.choices import Choices
from attentest_spec.contract import (
    CAPABILITIES,
    Gradient,
    Input,
    NoParameterMap,
    Output,
    Step,
    Unsupported,
)
from attentest_spec.mapping import (
    Place,
    Table,
    check_names,
    check_shape,
    locate,
    require_mapped,
)
from attentest_spec.names import require
from attentest_spec.parameters import shapes
from attentest_spec.recipes import RecipeBackend
from attentest_spec.setting import Array
from attentest_spec.sizes import Sizes
from attentest_spec.torch.flops import count_flops
from attentest_spec.torch.gradients import gradients, naming_overwritten, output_of
from attentest_spec.torch.inventory import inventory
from attentest_spec.torch.meta import OnMeta
from attentest_spec.torch.pickles import pickled
from attentest_spec.torch.placement import Placement, random_state, without_tf32
from attentest_spec.torch.settings import settings, watch
from attentest_spec.torch.steps import find_homes, observe
from attentest_spec.torch.untrained import InferenceAlone
from attentest_spec.torch.values import convert, to_array, to_tensor


def _direct(built: Any, *inputs: Any) -> Any:
    return built(*inputs)


@dataclass(frozen=True)
class Recipe:
    """Recipe of one component of a torch backend: to build, call and map it.

    `build` takes the sizes and returns a module or a function. `call` takes what was built and
    the contract's inputs as tensors (masks boolean, True = may be attended) and returns a tensor
    or a tuple of them; `methods` holds further calls by name. `parameters` is the parameter map.

    The `call` of an optimiser may be a generator, which yields the parameters after each update
    and reads gradients and rates side by side, by `zip`: then training can use it step by step.
    """

    build: Callable[[Sizes], Any]
    call: Callable[..., Any] = _direct
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    parameters: Table = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TorchBackend(RecipeBackend[Recipe]):
    """A backend made of recipes."""

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> "TorchPart":
        """Build `component` at `sizes`; see :meth:`attentest_spec.Backend.build`."""
        recipe = self.recipe(component)

        def names() -> tuple[str, ...]:
            return tuple(shapes(component, sizes, Choices.of(self.choices)))

        mapped = names if recipe.parameters else tuple
        return TorchPart(recipe, self.sizes_of(sizes), mapped, precision, device, self.recipes)

    def seed(self, number: int) -> None:
        """Set the seed of torch, Python and NumPy; a backend without this method has none."""
        torch.manual_seed(number)
        random.seed(number)
        np.random.seed(number % 2**32)


class TorchPart:
    """One torch component behind the contract."""

    def __init__(
        self,
        recipe: Recipe,
        sizes: Sizes,
        names: Callable[[], tuple[str, ...]],
        precision: str,
        device: str,
        recipes: Mapping[str, Recipe],
    ) -> None:
        """Build from `recipe`; `names` returns the canonical parameters it should hold.

        It is called after the build: impossible sizes are for the backend to refuse.
        `recipes` are those of the backend's components.
        """
        self._recipe, self._recipes = recipe, recipes
        self._sizes = sizes
        self._heads = sizes.heads, sizes.kv_heads
        self._precision, self._device = precision, device
        self._placement = Placement(device)
        self._changed: set[str] = set()
        # Advanced, so that code which sets the seed to its former value is noticed as well.
        torch.rand(1, device="cpu")
        with watch(self._changed):
            self._built = recipe.build(sizes)
        self._names = names()
        if isinstance(self._built, nn.Module):
            convert(self._built, precision, device).eval()
        self.capabilities: Collection[str] = (
            CAPABILITIES if isinstance(self._built, nn.Module) else ("gradient", "move", "globals")
        )

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute without recording gradients; see :meth:`attentest_spec.Part.__call__`."""
        with torch.no_grad():
            result = self._run(tuple(self._to_input(value) for value in inputs), method)
        # What is computed from a length alone, as a causal mask is, lies where its caller moves it.
        bound = any(isinstance(value, np.ndarray) for value in inputs)
        return self._placement.output(result, torch.device(self._device).type if bound else "")

    def _run(self, tensors: tuple[Any, ...], method: str = "") -> Any:
        call = self._recipe.call
        if method:
            call = self._recipe.methods[require("method", method, self._recipe.methods)]
        with watch(self._changed), without_tf32(self._device):
            result: Any = call(self._built, *tensors)
            return torch.stack(tuple(result)) if isinstance(result, Iterator) else result

    def _to_input(self, value: Input) -> Any:
        return self._placement.place(value) if isinstance(value, np.ndarray) else value

    @property
    def module(self) -> nn.Module:
        """The module that was built; Unsupported for a plain function."""
        if not isinstance(self._built, nn.Module):
            raise Unsupported("a plain function holds no parameters and has no modes")
        return self._built

    def _parameters(self) -> dict[str, Tensor]:
        return dict(self.module.named_parameters(remove_duplicate=False))

    @cached_property
    def _places(self) -> dict[str, Place]:
        return {name: locate(name, self._recipe.parameters) for name in self._names}

    def parameter_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the canonical parameter `name` in the module, whatever it declares.

        Raises KeyError where the parameter map has no entry for it, and ValueError where the module
        has no parameter of that entry.
        """
        place = locate(name, self._recipe.parameters)
        stored = require_mapped(self._parameters(), name, place, "module")
        return tuple(place.read(stored, *self._heads).shape)

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Copy canonical `parameters` into the module; ValueError for missing or extra ones."""
        places = self._places
        if parameters and not self._names:
            raise NoParameterMap
        check_names(places, parameters)
        if not places:
            return
        own = self._parameters()
        with torch.no_grad():
            for name, place in places.items():
                stored = require_mapped(own, name, place, "module")
                room = tuple(place.read(stored, *self._heads).shape)
                check_shape(name, parameters[name].shape, place.name, room)
                place.write(own, to_tensor(np.asarray(parameters[name])), *self._heads)

    def export(self) -> dict[str, Array]:
        """Return copies of the parameters under their canonical names."""
        return self._canonical(self._parameters()) if self._names else {}

    def _canonical(self, own: Mapping[str, Tensor], *, gradient: bool = False) -> dict[str, Array]:
        read = Place.gradient if gradient else Place.read
        stored = {
            name: read(place, require_mapped(own, name, place, "module"), *self._heads)
            for name, place in self._places.items()
        }
        return {name: to_array(value.clone()) for name, value in stored.items()}

    def steps(self, inputs: tuple[Input, ...]) -> list[Step]:
        """Return the calls of the modules inside; see :meth:`attentest_spec.Traceable.steps`."""
        tables = {name: one.parameters for name, one in self._recipes.items() if one.parameters}
        found = find_homes(self.module, self._places, tables)
        with torch.no_grad(), observe(found) as seen:
            self._run(tuple(self._to_input(value) for value in inputs))
        return [
            Step(one.part, one.call, tuple(map(to_array, one.inputs)), to_array(one.output))
            for one in seen
        ]

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull `cotangent` back; see :meth:`attentest_spec.Part.vjp`."""
        tensors = [self._to_input(value) for value in inputs]
        floats = [
            value.requires_grad_()
            for value in tensors
            if isinstance(value, Tensor) and value.is_floating_point()
        ]
        own = self._parameters() if self._names else {}
        trained = {name: value for name, value in own.items() if value.requires_grad}
        alone = InferenceAlone(self._built, lambda: self._run(tuple(tensors)))

        again = naming_overwritten(lambda: output_of(self._run(tuple(tensors))))
        with torch.enable_grad(), alone, again:
            output = output_of(self._run(tuple(tensors)))
            alone.demand_gradients(output)
            pulled = self._pull(output, [*floats, *trained.values()], self._to_input(cotangent))
        self._placement.copy_back()
        of_inputs = iter(pulled[: len(floats)])
        return Gradient(
            output=to_array(output.detach()),
            inputs=tuple(
                to_array(next(of_inputs)) if any(value is one for one in floats) else None
                for value in tensors
            ),
            parameters=self._canonical(
                {name: torch.zeros_like(own[name]) for name in own.keys() - trained.keys()}
                | dict(zip(trained, pulled[len(floats) :], strict=True)),
                gradient=True,
            ),
        )

    def updates(self, parameters: Array, feed: Iterable[tuple[Array, float]]) -> Iterator[Array]:
        """Yield the parameters after each update; see :class:`attentest_spec.Incremental`."""
        if not isgeneratorfunction(self._recipe.call):
            raise Unsupported("it takes all gradients at once")
        return self._stepwise(self._recipe.call, self._to_input(parameters), feed)

    def _stepwise(
        self, call: Callable[..., Any], values: Tensor, feed: Iterable[tuple[Array, float]]
    ) -> Iterator[Array]:
        waiting: list[float] = []

        def gradients() -> Iterator[Tensor]:
            for gradient, rate in feed:
                waiting.append(rate)
                yield self._to_input(gradient)

        def rates() -> Iterator[Tensor]:
            while waiting:
                yield torch.tensor(waiting.pop(), dtype=torch.float64)

        made = call(self._built, values, gradients(), rates())
        while True:
            with torch.no_grad():  # and not while this generator waits
                after = next(made, None)
            if after is None:
                return
            yield to_array(after)

    def flops(self, inputs: tuple[Input, ...], cotangent: Array | None = None) -> int:
        """Count the operations of a call; see :meth:`attentest_spec.Counted.flops`."""
        with count_flops() as counter:
            if cotangent is not None:
                self.vjp(inputs, cotangent)
            else:
                self._run(tuple(self._to_input(value) for value in inputs))
        return counter.total

    @staticmethod
    def _pull(output: Tensor, wanted: list[Tensor], cotangent: Tensor) -> list[Tensor]:
        if not output.requires_grad:
            return [torch.zeros_like(one) for one in wanted]
        if cotangent.shape != output.shape:
            given, expected = tuple(cotangent.shape), tuple(output.shape)
            raise ValueError(f"the cotangent has the shape {given}, and the output {expected}")
        # Of a sum: torch imports seconds of symbolic algebra to look at a cotangent that is given.
        total = (output * cotangent.to(output.dtype)).sum()
        found = gradients(total, wanted)
        return [
            torch.zeros_like(one) if gradient is None else gradient
            for one, gradient in zip(wanted, found, strict=True)
        ]

    def train(self) -> None:
        """Switch to training mode."""
        self.module.train()

    def eval(self) -> None:
        """Switch to evaluation mode."""
        self.module.eval()

    def _with(self, built: Any, **changes: str) -> "TorchPart":
        other = copy.copy(self)
        other._built = built
        other._precision = changes.get("precision") or self._precision
        other._device = changes.get("device") or self._device
        other._placement = Placement(other._device)
        return other

    def reloaded(self) -> "TorchPart":
        """Save the state to bytes, load it into a fresh build, and return that."""
        saved = io.BytesIO()
        torch.save(self.module.state_dict(), saved)
        saved.seek(0)
        fresh = TorchPart(
            self._recipe,
            self._sizes,
            lambda: self._names,
            self._precision,
            self._device,
            self._recipes,
        )
        fresh.module.load_state_dict(torch.load(saved, weights_only=True))
        return fresh

    def state(self) -> dict[str, Array]:
        """Return copies of the module's state; see :meth:`attentest_spec.Stateful.state`."""
        saved = self.module.state_dict(keep_vars=True)  # which leaves tied tensors one object
        copies = {id(value): to_array(value.detach().clone()) for value in saved.values()}
        return {name: copies[id(value)] for name, value in saved.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Set the module's state; ValueError for missing and extra names and other shapes."""
        try:
            self.module.load_state_dict({name: to_tensor(one) for name, one in state.items()})
        except RuntimeError as refusal:
            raise ValueError(str(refusal)) from refusal

    def copied(self, how: str) -> "TorchPart":
        """Return a deep copy or a pickled copy of the module behind the contract.

        Raises :class:`~attentest_spec.names.UnknownName` for any other `how`, and Unsupported where
        Python refuses to pickle what the module holds, such as a lambda.
        """
        require("way of copying", how, ("deepcopy", "pickle"))
        if how == "deepcopy":
            return self._with(copy.deepcopy(self.module))
        return self._with(pickled(self.module))

    def moved(self, precision: str = "", device: str = "") -> "TorchPart":
        """Return a copy of the module moved to another precision or device."""
        moved = self._built
        if isinstance(moved, nn.Module):
            moved = copy.deepcopy(moved)
            convert(moved, precision or self._precision, device or self._device)
        return self._with(moved, precision=precision, device=device)

    def placed(self, inputs: tuple[Input, ...], device: str) -> str:
        """Return the device of the output for inputs on `device`."""
        other = self.moved(device=device)
        with torch.no_grad(), OnMeta():
            result = other._run(tuple(other._to_input(value) for value in inputs))
        return str((result[0] if isinstance(result, tuple) else result).device.type)

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """List parameters, buffers, loose tensors, modes and the saved state."""
        return inventory(self.module)

    def global_state(self) -> Mapping[str, Any]:
        """Return torch's global state, and which of it building and calling have changed."""
        return {
            "random state": random_state(self._device),
            **{name: str(value) for name, value in settings().items()},
            "changed": tuple(sorted(self._changed)),
        }


def of_function(function: Callable[..., Any], component: str) -> TorchBackend:
    """Return a backend that provides `component` alone, by a function with its signature."""
    name = getattr(function, "__name__", type(function).__name__)
    recipe = Recipe(build=lambda sizes: _Plain(function))
    return TorchBackend(name=name, title=f"the function {name}", recipes={component: recipe})


@dataclass(frozen=True)
class _Plain:
    """A callable that is called unchanged, module or not: the caller's own object is not moved."""

    function: Callable[..., Any]

    def __call__(self, *inputs: Any) -> Any:
        return self.function(*inputs)
