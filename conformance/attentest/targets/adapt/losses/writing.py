"""A loss that a user wrote, as code: the reproduction of an example, and an adapter to edit."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np
from torch import nn

from attentest.harness.reproduction import Action, Build, Call, Pull, Request, variable
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.losses.calling import LossCall
from attentest.targets.adapt.writing.values import Expression, Writer, tensor
from attentest.targets.models.written import definition, head_line
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.torch import DTYPES, to_tensor


@dataclass
class LossScript:
    """One reproduction in the making; `parts` holds how each part was built."""

    code: Code
    call: LossCall
    given: Mapping[str, Any]
    writer: Writer = field(default_factory=Writer)
    parts: dict[int, Build] = field(default_factory=dict)

    def text(self, actions: Sequence[Action]) -> str:
        """Return the code that repeats `actions`."""
        self.writer.need(*self.code.origin.imports)
        body = [line for one in actions for line in self._lines(one)]
        plain = sorted(one for one in self.writer.imports if one.startswith("import "))
        rest = [one for one in self.writer.imports if not one.startswith("import ")]
        return "\n".join([*plain, "", *rest, "", "torch.set_printoptions(precision=8)", *body])

    def _name(self, number: int) -> str:
        built = self.code.construction is not None
        return variable(number, "loss") if built else self.code.origin.expression

    def _lines(self, action: Action) -> Iterator[str]:
        match action:
            case Build(number):
                self.parts[number] = action
                if self.code.construction is not None:
                    own = self.code.origin.expression
                    made = self.writer.construction(own, self.code.construction, action.sizes)
                    yield f"{self._name(number)} = {made}{self._ready(action)}"
            case Call(number, inputs):
                yield from self._inputs(inputs)
                yield f"print({self._called(number)})"
            case Pull(number, inputs, cotangent):
                yield from self._inputs(inputs, grad=True)
                yield f"({self._called(number)} * {float(cotangent)}).backward()"
                yield "print(output.grad)"
            case Request(_, doing):
                yield f"# then: {doing}"

    def _ready(self, built: Build) -> str:
        module = inspect.isclass(self.code.thing) and issubclass(self.code.thing, nn.Module)
        return f".to({DTYPES[built.precision]}).eval()" if module else ""

    def _inputs(self, inputs: Sequence[Any], *, grad: bool = False) -> Iterator[str]:
        for name, value in zip(("output", "target"), inputs, strict=True):
            written = tensor(to_tensor(np.asarray(value)), grad=grad and name == "output")
            yield f"{name} = {written}"

    def _called(self, number: int) -> str:
        sizes = self.parts[number].sizes
        rest = {own: self.writer.value(one) for own, one in self.given.items()}
        rest |= {own: repr(getattr(sizes, size)) for own, size in self.call.sizes.items()}
        return self.call.code(self._name(number), str(sizes.target_pad), rest)


_BACKEND = '''\
class Held(torch.nn.Module):
    """The loss, and the sizes that it is called with."""

    def __init__(self, thing, sizes):
        super().__init__()
        self.thing, self.sizes = thing, sizes


def build(sizes):
    """Return the loss at `sizes`."""
    return Held({made}, sizes)


def call(held, output, target):
    """Return what {name} makes of the inputs of the contract."""
    sizes = held.sizes
    return {called}.reshape(())
'''


def adapter_text(
    code: Code,
    call: LossCall,
    given: Mapping[str, Any],
    choices: Mapping[str, Value],
    limits: Limits,
    said: Sequence[str],
) -> str:
    """Return the inferred adapter of a loss as a Python file."""
    writer = Writer()
    writer.need(*code.origin.imports, "from attentest_spec.torch import Recipe, TorchBackend")
    writer.need("from attentest_spec import Limits")
    own, made = code.origin.expression, code.origin.expression
    if code.construction is not None:
        filled = {
            name: Expression(one.code) if one.code else one.value(None)  # type: ignore[arg-type]  # fixed
            for name, one in code.construction.fillings.items()
        }
        made = writer.call(own, (), filled)
    rest = {name: writer.value(one) for name, one in given.items()}
    rest |= {name: f"sizes.{size}" for name, size in call.sizes.items()}
    called = call.code("held.thing", "sizes.target_pad", rest)
    body = _BACKEND.format(made=made, name=code.name, called=called)
    plain = sorted(one for one in writer.imports if one.startswith("import "))
    others = [one for one in writer.imports if not one.startswith("import ")]
    comments = [f"# {line}" for one in said for line in wrap(one, 86)]
    tail = definition(code.name, code.component, "build, call", choices, limits)
    head = [head_line(code.name), "", *plain, "", *others, "", *comments]
    return "\n".join([*head, "", "", body, "", tail])
