"""Recipes, backends and parts that adapt JAX functions and modules to the contract.

An adapter writes one :class:`Recipe` per component and one :class:`JaxBackend`. In JAX a model is a
pure function and a tree of parameters: the recipe has the function, and the part holds the tree, as
NumPy arrays by the names of its leaves. Everything is compiled by `jax.jit`, as users do.
"""

import copy
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import numpy as np

from attentest_spec.choices import Choices
from attentest_spec.contract import (
    CAPABILITIES,
    Gradient,
    Input,
    NoParameterMap,
    Output,
    Unsupported,
)
from attentest_spec.jax.computing import (
    Key,
    compile_program,
    compute,
    initialiser,
    next_key,
    settings,
)
from attentest_spec.jax.values import (
    is_float,
    join_inputs,
    split_inputs,
    step_name,
    to_output,
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
from attentest_spec.precision import PRECISIONS, dtype
from attentest_spec.recipes import RecipeBackend
from attentest_spec.setting import Array
from attentest_spec.sizes import Sizes


def _nothing(built: Any, key: Key) -> Any:
    return {}


def _direct(built: Any, parameters: Any, key: Key, *inputs: Any) -> Any:
    return built(*inputs)


@dataclass(frozen=True)
class Recipe:
    """Recipe of one component of a JAX backend: to build, initialise, call and map it.

    `build` takes the sizes and the dtype to compute in, and returns what the others begin with: a
    module, a function or anything else that is hashable, equal where it draws equal parameters.
    `init` takes that and a random key, and returns the tree of parameters, all of them trained.
    `call` takes what was built, the parameters, a key for dropout (None in evaluation mode) and the
    contract's inputs as JAX arrays, and returns an array or a tuple; `methods` holds further calls
    by name. In `parameters`, the map, a leaf's own name is its path in the tree, joined by dots.
    With `compiled` False the call is no program of `jax.jit`: it may look at the numbers it gets.
    """

    build: Callable[[Sizes, Any], Any]
    init: Callable[[Any, Key], Any] = _nothing
    call: Callable[..., Any] = _direct
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    parameters: Table = field(default_factory=dict)
    compiled: bool = True


@dataclass(frozen=True, kw_only=True)
class JaxBackend(RecipeBackend[Recipe]):
    """A backend made of recipes."""

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> "JaxPart":
        """Build `component` at `sizes`; see :meth:`attentest_spec.Backend.build`."""
        recipe = self.recipe(component)
        part = JaxPart(recipe, self.sizes_of(sizes), precision, device)
        if recipe.parameters:  # last: impossible sizes are for the backend to refuse
            part.names = tuple(shapes(component, sizes, Choices.of(self.choices)))
        return part


@dataclass(frozen=True)
class _Program:
    """A call of a part, without its numbers: equal ones compute the same.

    `leaves` are the names of the leaves of the tree that `structure` puts together.
    """

    call: Callable[..., Any]
    built: Any
    leaves: tuple[str, ...]
    structure: Any

    def __call__(self, own: Any, key: Key, arrays: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
        """Return what the call gives for its own arrays and the inputs."""
        tree = jax.tree.unflatten(self.structure, [own[name] for name in self.leaves])
        return self.call(self.built, tree, key, *join_inputs(arrays, rest))

    def pulled(
        self, own: Any, key: Key, arrays: tuple[Any, ...], rest: tuple[Any, ...], cotangent: Any
    ) -> Any:
        """Return the output and the gradients of `own` and of the inputs that are floats."""

        def answered(own: Any, floats: list[Any]) -> Any:
            found = iter(floats)
            given = tuple(next(found) if is_float(one) else one for one in arrays)
            result = self(own, key, given, rest)
            return result[0] if isinstance(result, tuple) else result

        output, pull = jax.vjp(answered, own, [one for one in arrays if is_float(one)])
        return output, *pull(cotangent.astype(output.dtype))


@dataclass
class _Compiled:
    """A program and its gradients, and the settings of JAX that tracing them has changed."""

    run: Callable[..., Any]
    pull: Callable[..., Any]
    changed: set[str] = field(default_factory=set)


@lru_cache(maxsize=256)
def _compiled(program: _Program) -> _Compiled:
    """Return the compiled `program`: the same for equal ones, which parts of one size have."""
    run = compile_program(program, static=(3,))
    return _Compiled(run, compile_program(program.pulled, static=(3,)))


@dataclass
class _Tree:
    """The leaves of a tree of parameters by their names, inferred without computing them."""

    shapes: Mapping[str, Any]
    structure: Any
    changed: set[str] = field(default_factory=set)


@lru_cache(maxsize=256)
def _tree(init: Callable[[Any, Key], Any], built: Any, precision: str) -> _Tree:
    """Return the tree that `init` draws in a precision: the same for what was built equally."""
    tree = jax.eval_shape(partial(init, built), jax.random.key(0))
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    return _Tree({".".join(map(step_name, path)): leaf for path, leaf in paths}, structure)


class JaxPart:
    """One JAX component behind the contract.

    `names` are the canonical parameters that it holds. JAX has no shared random state and no
    device without memory.
    """

    capabilities: Collection[str] = CAPABILITIES

    def __init__(self, recipe: Recipe, sizes: Sizes, precision: str, device: str) -> None:
        """Build from `recipe`; the shapes of the parameters are inferred without computing them."""
        self.names: tuple[str, ...] = ()
        self._recipe = recipe
        self._sizes = sizes
        self._heads = sizes.heads, sizes.kv_heads
        self._precision = require("precision", precision, PRECISIONS)
        self._device = device
        self._training = False
        self._changed: set[str] = set()
        with self._computing(self._changed):
            self._built = recipe.build(sizes, dtype(precision))
        traced: set[str] = set()
        with self._computing(traced):
            tree = _tree(recipe.init, self._built, precision)
        tree.changed |= traced
        self._changed |= tree.changed
        self._structure, self._shapes = tree.structure, tree.shapes

    @contextmanager
    def _computing(self, changed: set[str]) -> Iterator[None]:
        """Compute on the device, in 64 bits for float64 alone.

        Settings that the code inside changes are set back, and their names added to `changed`.
        """
        wide, place = self._precision == "float64", jax.devices(self._device)[0]
        before = settings()
        try:
            with jax.enable_x64(wide), jax.default_device(place):
                yield
        finally:  # outside of the local settings, which would hide the global ones
            for name, value in settings().items():
                if value != before[name]:
                    changed.add(name)
                    jax.config.update(name, before[name])

    @cached_property
    def _own(self) -> dict[str, Array]:
        """The parameters by their own names, drawn at the first use."""
        with self._computing(self._changed):
            tree = initialiser()(self._recipe.init, self._built, next_key())
        return dict(zip(self._shapes, map(np.array, jax.tree.leaves(tree)), strict=True))

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute the component; see :meth:`attentest_spec.Part.__call__`."""
        arrays, rest = split_inputs(inputs)
        with self._calling(method) as program:
            return to_output(compute(program.run, self._own, self._key(), arrays, rest))

    def _key(self) -> Key:
        return next_key() if self._training else None

    @contextmanager
    def _calling(self, method: str = "") -> Iterator["_Compiled"]:
        """Compute with the program of a call: what tracing it has changed, every part reports."""
        call = self._recipe.call
        if method:
            call = self._recipe.methods[require("method", method, self._recipe.methods)]
        program = _Program(call, self._built, tuple(self._shapes), self._structure)
        compiled = self._recipe.compiled
        found = _compiled(program) if compiled else _Compiled(program, program.pulled)
        try:
            with self._computing(found.changed):
                yield found
        finally:
            self._changed |= found.changed

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull `cotangent` back; see :meth:`attentest_spec.Part.vjp`."""
        arrays, rest = split_inputs(inputs)
        with self._calling() as program:
            output, own, pulled = program.pull(self._own, self._key(), arrays, rest, cotangent)
        gradients = iter(pulled)
        return Gradient(
            output=np.array(output),
            inputs=tuple(np.array(next(gradients)) if is_float(one) else None for one in inputs),
            parameters=self._canonical(
                {name: np.array(one) for name, one in own.items()}, gradient=True
            ),
        )

    def _places(self) -> dict[str, Place]:
        return {name: locate(name, self._recipe.parameters) for name in self.names}

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Copy canonical `parameters` into the tree; ValueError for missing or extra ones."""
        if parameters and not self.names:
            raise NoParameterMap
        check_names(self.names, parameters)
        places = self._places()
        reached = {leaf for place in places.values() for leaf in place.names(self._shapes)}
        own = {  # only what is not loaded is drawn
            name: np.zeros(leaf.shape, leaf.dtype) if name in reached else self._own[name].copy()
            for name, leaf in self._shapes.items()
        }
        for name, place in places.items():
            room = tuple(place.read(require_mapped(own, name, place, "tree"), *self._heads).shape)
            check_shape(name, parameters[name].shape, place.name, room)
            place.write(own, parameters[name], *self._heads)
        if own:
            self._own = own

    def export(self) -> dict[str, Array]:
        """Return copies of the parameters under their canonical names."""
        return self._canonical(self._own)

    def _canonical(self, own: Mapping[str, Array], *, gradient: bool = False) -> dict[str, Array]:
        read = Place.gradient if gradient else Place.read
        return {
            name: np.array(read(place, require_mapped(own, name, place, "tree"), *self._heads))
            for name, place in self._places().items()
        }

    def train(self) -> None:
        """Switch to training mode: calls are given a key."""
        self._training = True

    def eval(self) -> None:
        """Switch to evaluation mode."""
        self._training = False

    def state(self) -> dict[str, Array]:
        """Return copies of the leaves; see :meth:`attentest_spec.Stateful.state`."""
        return copy.deepcopy(self._own)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Set all leaves; ValueError for missing and extra names and other shapes."""
        check_names(self._shapes, state)
        for name, leaf in self._shapes.items():
            check_shape(name, state[name].shape, name, leaf.shape)
        self._own = {name: np.array(state[name], leaf.dtype) for name, leaf in self._shapes.items()}

    def reloaded(self) -> "JaxPart":
        """Save the tree to bytes, load it into a fresh build, and return that."""
        return self._rebuilt(pickle.loads(pickle.dumps(self._own)), self._precision)

    def copied(self, how: str) -> "JaxPart":
        """Return a fresh build with a copy of the tree: the function itself has no state.

        Raises :class:`~attentest_spec.names.UnknownName` for any other `how`.
        """
        if require("way of copying", how, ("deepcopy", "pickle")) == "pickle":
            return self.reloaded()
        return self._rebuilt(self.state(), self._precision)

    def moved(self, precision: str = "", device: str = "") -> "JaxPart":
        """Return a build of another precision that has loaded this one's tree, rounded."""
        if device not in ("", self._device):
            raise Unsupported("JAX has no device without memory")
        return self._rebuilt(self._own, precision or self._precision)

    def _rebuilt(self, state: Mapping[str, Array], precision: str) -> "JaxPart":
        other = JaxPart(self._recipe, self._sizes, precision, self._device)
        other.names = self.names
        other.restore(state)
        return other

    def placed(self, inputs: tuple[Input, ...], device: str) -> str:
        """Refuse: JAX has no device without memory."""
        raise Unsupported("JAX has no device without memory")

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """List the leaves of the tree; a JAX model holds nothing else."""
        facts = {
            name: {"shape": tuple(one.shape), "dtype": str(one.dtype), "device": self._device}
            for name, one in self._shapes.items()
        }
        return {
            "parameters": {name: {**one, "trained": True} for name, one in facts.items()},
            "buffers": {},
            "loose": {},
            "modes": {"": self._training},
            "state": {name: one["shape"] for name, one in facts.items()},
        }

    def global_state(self) -> Mapping[str, Any]:
        """Return JAX's settings, and which of them building and calling have changed."""
        state = {name: str(value) for name, value in settings().items()}
        return {**state, "changed": tuple(sorted(self._changed))}
