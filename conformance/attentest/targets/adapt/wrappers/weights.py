"""Networks, attention and norms that are functions of their weights, which a module holds.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import component_guessed, squashed
from attentest.targets.adapt.names import EPSILON, OFF, ROLES
from attentest.targets.adapt.names import SIZES as NAMES
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import SHAPES, Wrapper
from attentest.targets.libraries import with_tensors
from attentest_spec import COMPONENTS


class HoldsWeights(nn.Module):
    """Calls `function` with weights that it holds.

    `sizes` are the width of the model, that of the network and the number of heads. `shapes` are
    those of the weights, one letter for each axis: D the width of the model, F that of the
    network, P three widths of the model, G one width of numbers that begin as ones. The name of a
    weight in a dictionary is that of the argument, a dot, and its key, and so on within. The
    arguments `heads` get the number of heads. A copy by pickle has the same function, which need
    not be found by its name.
    """

    functions: ClassVar[dict[int, Any]] = {}

    def __init__(
        self,
        function: Any,
        sizes: tuple[int, int, int],
        *,
        shapes: Mapping[str, str],
        heads: Sequence[str] = (),
    ) -> None:
        super().__init__()
        width, inner, count = sizes
        self.function, self.fixed = function, dict.fromkeys(heads, count)
        numbers = {"D": width, "F": inner, "P": 3 * width, "G": width}
        for name, axes in shapes.items():
            start = torch.full([numbers[one] for one in axes], float(axes == "G"))
            if len(axes) > 1:
                start = torch.randn(start.shape) / width**0.5
            *path, key = name.split(".")
            held: nn.Module = self
            for one in path:
                if one not in held._modules:
                    held.add_module(one, nn.ParameterDict())
                held = held.get_submodule(one)
            held.register_parameter(key, nn.Parameter(start))

    def __getstate__(self) -> dict[str, Any]:
        """Return what is copied: the number of the function instead of it."""
        self.functions[id(self.function)] = self.function
        return {**vars(self), "function": id(self.function)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was copied."""
        whole = {**state, "function": self.functions[state["function"]]}
        super().__setstate__(whole)  # type: ignore[no-untyped-call]

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the function does."""
        return self.function(*args, **named, **self.nested(self), **self.fixed)

    def nested(self, held: nn.Module) -> dict[str, Any]:
        """Return the weights of a module by their keys, those within in dictionaries."""
        inner = {name: self.nested(one) for name, one in held.named_children()}
        return {**dict(held.named_parameters(recurse=False)), **inner}


SOURCE = "\n".join(
    [
        "from collections.abc import Mapping, Sequence",
        "from typing import Any, ClassVar",
        "",
        "import torch",
        "from torch import nn",
        "",
        "",
        inspect.getsource(HoldsWeights),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_SENTENCE = "its caller holds {}: it is judged in a module that does"
_AXES = {
    "feed_forward": (("DF", "FD"), ("F", "D")),
    "multi_head_attention": (("DD", "DP", "PD"), ("D", "P")),
    "layer_norm": (("G",), ("D",)),
    "rms_norm": (("G",), ("D",)),
}
"""The shapes of weights, and of those whose names are of biases."""

_LAYER = "encoder_layer"
"""The component whose weights are dictionaries of those of its parts."""

_MOST = 4096
"""The number of assignments of shapes that are tried."""

_SECONDS = 5.0
"""The CPU seconds that these may take: JAX compiles a function for each."""


def weights_of_caller(
    thing: Callable[..., Any], component: str, reading: Reading
) -> tuple[Wrapper, inspect.Signature] | None:
    """Return what holds the weights of a function, and its signature without them; None for others.

    Arguments that have no default are weights, or dictionaries of them, two at least in all: with
    one assignment of shapes the function gives an output of the right shape.
    """
    if component not in (*_AXES, _LAYER) or not inspect.isfunction(thing):
        return None
    signature = inspect.signature(thing)
    rest = [name for name in signature.parameters if name not in reading.given]
    roles = {own for role in COMPONENTS[component].inputs for own in ROLES[role]} | {*ROLES["x"]}
    inputs = [name for name in rest if squashed(name) in roles]
    heads = [name for name in rest if squashed(name) in NAMES["heads"] and name not in inputs]
    needed = [one for one in rest if signature.parameters[one].default is inspect.Parameter.empty]
    plain = (*OFF, *EPSILON)
    weights = [one for one in needed if one not in (*inputs, *heads) and squashed(one) not in plain]
    if not weights:
        return None
    asked = [one for one in inputs if one in needed]
    if component == _LAYER:
        tried: Iterable[dict[str, str]] = _of_parts(thing, weights, reading)
    else:
        tried = _assignments(component, [leaf for one in weights for leaf in _leaves(thing, one)])
    shapes = _fitting(thing, component, asked, tried, heads)
    if shapes is None or (len(shapes) < 2 and component != "rms_norm"):
        return None
    left = [one for name, one in signature.parameters.items() if name not in (*weights, *heads)]
    options: dict[str, Any] = {"shapes": shapes, "heads": tuple(heads)}
    sentence = _SENTENCE.format(" and ".join(filter(None, [", ".join(weights[:-1]), weights[-1]])))
    known = {"d_model", *(["heads"] if heads else []), *(["d_ff"] if _has_inner(shapes) else [])}
    wrapper = Wrapper(HoldsWeights, SOURCE, SHAPES, sentence, options, known=frozenset(known))
    return wrapper, signature.replace(parameters=left)


def _has_inner(shapes: Mapping[str, str]) -> bool:
    return any("F" in axes for axes in shapes.values())


def _leaves(thing: Callable[..., Any], argument: str) -> list[str]:
    """Return the names of the weights of an argument: its own, or those of its keys."""
    keys: list[str] = []
    with suppress(OSError, TypeError, SyntaxError):
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
        space = getattr(inspect.unwrap(thing), "__globals__", {})
        lists = dict(pair for node in ast.walk(tree) for pair in _lists(node))
        keys = [key for node in ast.walk(tree) for key in _keys(node, argument, space, lists)]
    return [f"{argument}.{key}" for key in dict.fromkeys(keys)] or [argument]


def _lists(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield a variable that runs over words, with these: `for n in ("wq", "wk")`."""
    match node:
        case ast.comprehension() | ast.For() if isinstance(node.iter, ast.Tuple | ast.List):
            found = [one.value for one in node.iter.elts if isinstance(one, ast.Constant)]
            if isinstance(node.target, ast.Name):
                yield node.target.id, [one for one in found if isinstance(one, str)]


def _keys(
    node: ast.AST, argument: str, space: Mapping[str, Any], lists: Mapping[str, list[str]]
) -> Iterator[str]:
    """Yield the keys of `argument` that a node reads: `p["w"]`, `p[n]`, or `linear(x, **p)`.

    `lists` are the words that variables run over.
    """
    match node:
        case ast.Subscript(value=ast.Name(id=own), slice=ast.Name(id=variable)):
            yield from lists.get(variable, []) if own == argument else []
        case ast.Subscript(value=ast.Name(id=own), slice=ast.Constant(value=str(key))):
            yield from [key] * (own == argument)
        case ast.Call(func=ast.Name(id=callee)) if callee in space:
            unpacked = [one.value for one in node.keywords if one.arg is None]
            if any(isinstance(one, ast.Name) and one.id == argument for one in unpacked):
                taken = [*inspect.signature(space[callee]).parameters][len(node.args) :]
                yield from (one for one in taken if one not in {two.arg for two in node.keywords})


def _given(component: str, needed: Sequence[str], batch: Sequence[int]) -> dict[str, Any]:
    """Return inputs for a call with the axes of `batch`, without masks."""
    rows = torch.randn(*batch, 5, SIZES.d_model)
    masks = ROLES["mask"] if "mask" in COMPONENTS[component].inputs else ()
    return {name: None if squashed(name) in masks else rows for name in needed}


def _fitting(
    thing: Callable[..., Any],
    component: str,
    needed: Sequence[str],
    assignments: Iterable[dict[str, str]],
    heads: Sequence[str],
) -> dict[str, str] | None:
    """Return the first shapes of the weights with which a call gives rows of the right shape.

    These are rows of two texts, or of one without an axis for texts.
    """
    sizes, clock = (SIZES.d_model, SIZES.d_ff, SIZES.heads), Clock(_SECONDS)
    with undisturbed():
        tried = islice(assignments, _MOST)
        for batch, shapes in ((axes, one) for one in tried for axes in ((2,), ())):
            given = _given(component, needed, batch)
            if clock.rings():
                return None
            try:
                result = HoldsWeights(thing, sizes, shapes=shapes, heads=heads)(**given)
            except Exception:  # code that a user wrote may raise anything
                continue
            output = result[0] if isinstance(result, tuple) and result else result
            if isinstance(output, Tensor) and output.shape == (*batch, 5, SIZES.d_model):
                return shapes
    return None


def _of_parts(
    thing: Callable[..., Any], weights: Sequence[str], reading: Reading
) -> Iterator[dict[str, str]]:
    """Yield the shapes of the dictionaries that a layer gives to functions of its parts, if any."""
    found: dict[str, str] = {}
    for own in weights:
        part = _part(thing, own)
        if part and inspect.unwrap(thing) is not thing:  # it is called with arrays, and so are they
            part = with_tensors(part, rounded=not reading.strict)
        held = part and weights_of_caller(part, component_guessed(part.__name__), reading)
        if not held:
            return
        shapes: Mapping[str, str] = held[0].options["shapes"]
        found |= {f"{own}.{name}": axes for name, axes in shapes.items()}
    yield found


def _part(thing: Callable[..., Any], argument: str) -> Callable[..., Any] | None:
    """Return the function that a layer gives the dictionary `argument` to, `f(x, **argument)`."""
    space = getattr(inspect.unwrap(thing), "__globals__", {})
    with suppress(OSError, TypeError, SyntaxError):
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(thing)))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            unpacked = [one.value for one in node.keywords if one.arg is None]
            if any(isinstance(one, ast.Name) and one.id == argument for one in unpacked):
                called = space.get(node.func.id)
                return called if inspect.isfunction(called) else None
    return None


def _assignments(component: str, weights: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield shapes for the weights; one whose name begins or ends as that of a bias is a vector."""
    matrices, vectors = _AXES[component]
    kinds = [vectors if _is_bias(name) else matrices for name in weights]
    for chosen in product(*kinds):
        yield dict(zip(weights, chosen, strict=True))


def _is_bias(name: str) -> bool:
    own = squashed(name.rpartition(".")[2])
    return own.startswith("b") or "bias" in own
