"""Code that repeats what was done to code behind an inferred adapter, with nothing in between.

It builds, loads and calls the user's class or function under its own names. Masks are written as
the code received them; tensors are the contract's, and change their layout in the call.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attentest.harness.reproduction import (
    Action,
    Build,
    Call,
    Load,
    Pull,
    Request,
    contract_script,
    variable,
)
from attentest.targets.adapt.adapter import Adapter, first_tensor
from attentest.targets.adapt.code import Code, Inner
from attentest.targets.adapt.encoders.stack import STACK_SOURCE
from attentest.targets.adapt.makers.maker import CODE, Maker
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.objects.mask_holders import held_as
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.wrappers.batches import OF_ITEMS_SOURCE
from attentest.targets.adapt.wrappers.own_heads import OWN_HEADS_SOURCE
from attentest.targets.adapt.wrappers.own_layers import OWN_LAYERS_SOURCE
from attentest.targets.adapt.writing.adapted import loader
from attentest.targets.adapt.writing.values import Expression, Writer, tensor
from attentest.targets.constants.copies import COPIES_SOURCE
from attentest.targets.models.tables.vocabularies import VOCABULARY_SOURCE
from attentest_spec import COMPONENTS, Sizes
from attentest_spec.contract import Input
from attentest_spec.setting import Array
from attentest_spec.torch import DTYPES, to_array, to_tensor


@dataclass
class Script:
    """One reproduction in the making; `parts` holds how each part was built."""

    code: Code
    call: Any
    writer: Writer = field(default_factory=Writer)
    parts: dict[int, Build] = field(default_factory=dict)

    @property
    def adapter(self) -> Adapter:
        """The call of the code."""
        return self.call.adapter if isinstance(self.call, Maker) else self.call

    def text(self, actions: Sequence[Action]) -> str:
        """Return the code that repeats `actions`, through the contract for another component."""
        own = self.code.origin
        if any(isinstance(one, Build) and one.component != self.code.component for one in actions):
            return contract_script(loader(own, {}), actions)
        self.writer.need(*own.imports)
        loaded = {one.number for one in actions if isinstance(one, Load)}
        body = [line for one in actions for line in self._lines(one, loaded)]
        plain = sorted(one for one in self.writer.imports if one.startswith("import "))
        rest = [one for one in self.writer.imports if not one.startswith("import ")]
        inner = self.code.inner
        helper = [STACK_SOURCE, ""] if inner is not None and inner.stack else []
        helper += [COPIES_SOURCE, ""] * bool(self.code.constants)
        built = self.code.construction
        is_own = built is not None and bool(built.heads or built.outputs)
        helper += [OWN_HEADS_SOURCE, ""] * is_own
        helper += [OF_ITEMS_SOURCE, ""] * (built is not None and bool(built.batch))
        codes = [one.code for one in built.fillings.values()] if built is not None else []
        helper += [VOCABULARY_SOURCE, ""] * any(one.startswith("Vocabulary(") for one in codes)
        helper += [OWN_LAYERS_SOURCE, ""] * (built is not None and bool(built.shared))
        helper += [self.code.wrapper.source, ""] if self.code.wrapper is not None else []
        ready = "torch.set_printoptions(precision=8)"
        return "\n".join([*plain, "", *rest, "", *helper, ready, *body])

    def _lines(self, action: Action, loaded: set[int]) -> Iterator[str]:
        name = self._name(action.number)
        match action:
            case Build():
                self.parts[action.number] = action
                yield from self._build(name, action)
                if action.number not in loaded:
                    yield from self._state(name, action, {})
            case Load(number, parameters) if parameters:
                yield from self._state(name, self.parts[number], parameters)
            case Call(number, inputs):
                yield from self._call(name, self.parts[number], inputs)
            case Pull(number, inputs, cotangent):
                yield from self._gradients(name, self.parts[number], inputs, cotangent)
            case Request():
                yield from self._request(name, action)

    def _name(self, number: int) -> str:
        built = self.code.construction is not None or isinstance(self.code.thing, nn.Module)
        built = built or bool(self.code.constants) or self.code.wrapper is not None
        return variable(number, "module") if built else self.code.origin.expression

    def _build(self, name: str, built: Build) -> Iterator[str]:
        """Yield the line that makes the module; a function is there already."""
        own = self.code.origin.expression
        ready = f".to({DTYPES[built.precision]}).eval()"
        if built.device != "cpu":
            ready = f".to({built.device!r}, {DTYPES[built.precision]}).eval()"
        if self.code.construction is not None:
            inner = self.code.inner
            sizes = built.sizes if inner is None else inner.around(built.sizes)
            made = self.writer.construction(own, self.code.construction, sizes)
            made = made if inner is None else self._inner(made, inner, sizes)
            made = self._wrapped(made, sizes)
            thing = self.code.thing
            is_module = not isinstance(thing, type) or issubclass(thing, nn.Module)
            yield f"{name} = {made}{ready if is_module else ''}"
        elif self.code.wrapper is not None:
            yield f"{name} = {self._wrapped(own, built.sizes)}{ready}"
        elif self.code.constants:
            yield f"{name} = {self.writer.copy(own, self.code.constants, built.sizes)}"
        elif isinstance(self.code.thing, nn.Module):
            self.writer.need("import copy")
            yield f"{name} = copy.deepcopy({own}){ready}"

    def _wrapped(self, made: str, sizes: Sizes) -> str:
        """Return the expression `made` with the class around it that it is judged in."""
        if (around := self.code.wrapper) is None:
            return made
        given = [Expression(made), around.size(sizes)]
        return self.writer.call(around.cls.__name__, given, around.options)

    def _inner(self, made: str, inner: Inner, sizes: Sizes) -> str:
        """Return the expression of the part of the module `made` that is judged."""
        found = f"{made}.get_submodule({inner.path!r})" if inner.path else made
        if not inner.stack:
            return found
        return self.writer.call("EmbeddedStack", [Expression(found)], inner.options(sizes))

    def _state(self, name: str, built: Build, parameters: Mapping[str, Array]) -> Iterator[str]:
        """Yield the lines that load what a module holds after `parameters` were loaded."""
        state = _state_after(built.part, parameters)
        fresh = self._fresh(built)
        rows = [
            f"    {own!r}: {tensor(to_tensor(values), device=built.device)},"
            for own, values in state.items()
            if own not in fresh or not np.array_equal(values, fresh[own])
        ]
        if rows:
            yield from (f"{name}.load_state_dict({{", *rows, "}, strict=False)")

    def _fresh(self, built: Build) -> Mapping[str, Array]:
        """Return what a module holds when it is built anew, {} where that cannot be said."""
        with suppress(Exception), undisturbed():  # code that a user wrote may raise anything
            state = self.code.build(built.sizes).to(DTYPES[built.precision]).state_dict()
            return {own: to_array(values) for own, values in state.items()}
        return {}

    def _call(self, name: str, built: Build, inputs: tuple[Input, ...]) -> Iterator[str]:
        lines, output = self._compute(name, built, inputs)
        *before, last = lines
        yield from (*before, "with torch.no_grad():", f"    {last}")
        if isinstance(self.call, Maker):
            yield f"print({CODE[self.call.meaning].format('result')})"
            return
        yield f"print({output})"
        weights = self._weights(_by_name(self.adapter, inputs))
        if weights:
            yield f"print({weights})"

    def _compute(
        self, name: str, built: Build, inputs: tuple[Input, ...], *, grad: bool = False
    ) -> tuple[list[str], str]:
        """Return the lines that compute a result, and the expression of the contract's output."""
        given = _by_name(self.adapter, inputs)
        lines, values, count = self._values(given, built.device, grad=grad)

        def render(*placed: Any, **named: Any) -> str:
            return self.writer.call(name, placed, named)

        call = self.adapter.call(render, values)
        many = self.adapter.layout.fold == "alone"
        lines.append(f"result = [{call} for i in range({count})]" if many else f"result = {call}")
        output = self._part(self.adapter.returns.output)
        left = self.adapter.layout.code_leaving(output, first_tensor(given))
        if self.adapter.returns.added:
            x = self._variable(self.adapter.arguments.roles.get("x", "x"))
            left = f"{x} + {left}.to({x}.dtype)"
        return lines, left

    def _part(self, key: Any) -> str:
        """Return the expression for a part of `result`, or of each of many."""
        if self.adapter.layout.fold != "alone" or key is None:
            return self.adapter.returns.code("result", key)
        return f"[{self.adapter.returns.code('one', key)} for one in result]"

    def _weights(self, given: Mapping[str, Any]) -> str:
        key = self.adapter.returns.weights
        if self.adapter.component != "attention" or key is None:
            return ""
        like = first_tensor(given)
        return self.adapter.layout.code_leaving(self._part(key), like, swapped=False)

    def _values(
        self, given: Mapping[str, Any], device: str, *, grad: bool
    ) -> tuple[list[str], dict[str, Any], int]:
        """Return the lines that define what is given, the arguments, and the number of calls."""
        lines: list[str] = []
        values: dict[str, Any] = {}
        like = first_tensor(given)
        roles = self.adapter.arguments.roles
        for role, own in roles.items():
            if role not in MASKS:
                values[own] = self._value(own, given[role], role, device, lines, grad=grad)
        values |= {
            own: values[roles[role]] for own, role in self.adapter.arguments.repeated.items()
        }
        for role in (one for one in COMPONENTS[self.adapter.component].inputs if one in MASKS):
            for own, parts in self.adapter.masks(role, given, like).items():
                style = self.adapter.styles["padding" if own not in roles.values() else role]
                name = self._variable(own)
                many = len(parts) > 1
                written = tensor(torch.stack(list(parts)) if many else parts[0], device=device)
                lines.append(f"{name} = {written}  # {style.words}")
                value = f"{name}[i]" if many else name
                kind = self.adapter.holders.get(own)
                value = held_as(kind, value, self.writer.named) if kind is not None else value
                values[own] = Expression(value)
        for own in self.adapter.arguments.derived:
            values[own] = given["key"].shape[-1]
        values |= self._computed(given, device, lines)
        return lines, values, len(self.adapter.layout.enter(like))

    def _computed(self, given: Mapping[str, Any], device: str, lines: list[str]) -> dict[str, Any]:
        """Return the arguments that are computed, after adding lines that define the inputs."""
        computed = self.adapter.arguments.computed
        for role, value in given.items():
            if any(role in code for code in computed.values()):
                known = tensor(value, device=device) if isinstance(value, Tensor) else repr(value)
                lines.append(f"{role} = {known}")
        lengths = "(tokens != pad).sum(-1)"
        return {
            own: Expression(code.replace("token_lengths(tokens, pad)", lengths))
            for own, code in computed.items()
        }

    def _value(
        self, own: str, value: Any, role: str, device: str, lines: list[str], *, grad: bool
    ) -> Any:
        """Return what the argument `own` gets, after adding the line that defines it."""
        if not isinstance(value, Tensor):
            return value
        written = tensor(value, grad=grad and value.is_floating_point(), device=device)
        if role == "sublayer":
            lines.append(f"weight = {written}")
            return Expression("lambda x: x @ weight")
        name = self._variable(own)
        lines.append(f"{name} = {written}")
        return Expression(self.adapter.layout.code_entering(name, value.ndim))

    def _variable(self, own: str) -> str:
        """Return the name of the variable for the argument `own`."""
        own_name, _, _ = self.code.origin.expression.partition(".")
        return f"{own}_" if own == own_name or own.partition("_")[0] in _TAKEN else own

    def _gradients(
        self, name: str, built: Build, inputs: tuple[Input, ...], cotangent: Array
    ) -> Iterator[str]:
        lines, output = self._compute(name, built, inputs, grad=True)
        yield from lines
        leaves = self._leaves(_by_name(self.adapter, inputs))
        yield f"output = {output}"
        yield f"cotangent = {tensor(to_tensor(cotangent), device=built.device)}.to(output.dtype)"
        yield f"wanted = {{{', '.join(f'{one!r}: {one}' for one in leaves)}}}"
        if built.part is not None and "state" in built.part.capabilities:
            trained = f"for name, one in {name}.named_parameters() if one.requires_grad"
            yield f"wanted |= {{name: one {trained}}}"
        yield "found = torch.autograd.grad("
        yield "    output, list(wanted.values()), cotangent, allow_unused=True"
        yield ") if output.requires_grad else [None] * len(wanted)"
        yield "for name, gradient in zip(wanted, found):"
        yield "    print(name, gradient)"

    def _leaves(self, given: Mapping[str, Any]) -> list[str]:
        """Return the variables that hold floating-point inputs."""
        return [
            "weight" if role == "sublayer" else self._variable(own)
            for role, own in self.adapter.arguments.roles.items()
            if isinstance(given[role], Tensor) and given[role].is_floating_point()
        ]

    def _request(self, name: str, action: Request) -> Iterator[str]:
        """Yield the torch code for a capability of the contract, a comment where there is none."""
        if action.made is not None:
            self.parts[action.made] = self.parts[action.number]
            other = self._name(action.made)
            yield from self._copy(name, other, action) if other != name else ()
            return
        match action.name:
            case "train" | "eval":
                yield f"{name}.{action.name}()"
            case "export" | "state":
                yield f"print({name}.state_dict())"
            case "inventory":
                shapes = f"tuple(own.shape) for one, own in {name}.state_dict().items()"
                yield f"print({{one: {shapes}}})"
            case _:
                yield f"# then: {action.doing}"

    def _copy(self, name: str, other: str, action: Request) -> Iterator[str]:
        """Yield the lines that make the module `other` out of the module `name`."""
        match action.name, action.given:
            case "copied", ("pickle",):
                self.writer.need("import pickle")
                yield f"{other} = pickle.loads(pickle.dumps({name}))"
            case "reloaded", _:
                yield from self._build(other, self.parts[action.number])
                yield f"{other}.load_state_dict({name}.state_dict())"
            case (("copied" | "moved"), _):
                self.writer.need("import copy")
                yield f"{other} = copy.deepcopy({name}){_move(action.named or {})}"
            case _:
                yield f"{other} = {name}  # then: {action.doing}"


_TAKEN = {"torch", "copy", "pickle", "sys", "importlib", "module", "weight", "result", "i"} | {
    *("output", "cotangent", "wanted", "found", "name", "one", "gradient")
}
"""The names that a reproduction uses itself."""


def _by_name(adapter: Adapter, inputs: tuple[Input, ...]) -> Mapping[str, Any]:
    """Return the contract's `inputs` by name, arrays as tensors."""
    values = (to_tensor(one) if isinstance(one, np.ndarray) else one for one in inputs)
    return dict(zip(COMPONENTS[adapter.component].inputs, values, strict=True))


def _state_after(part: Any, parameters: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the state of `part` after `parameters` were loaded; {} for what has none."""
    if part is None or "state" not in part.capabilities:
        return {}
    if not parameters:
        return dict(part.state())
    other = part.copied("deepcopy")
    other.load(parameters)
    return dict(other.state())


def _move(named: Mapping[str, Any]) -> str:
    """Return the call that moves a module to the device or the precision in `named`."""
    device, precision = named.get("device", ""), named.get("precision", "")
    moves = [repr(device)] * bool(device) + [str(DTYPES.get(precision))] * bool(precision)
    return f".to({', '.join(moves)})" if moves else ""
