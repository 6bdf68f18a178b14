"""The inferred adapter of a component as a Python file, ready to be edited and registered.

It imports the spec and the user's code, and nothing of the suite.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import indent, wrap
from typing import Any

from torch import nn

from attentest.targets.adapt.adapter import Adapter, without_the_causal
from attentest.targets.adapt.code import POSITIONS, Code
from attentest.targets.adapt.construction import Construction, splits_heads
from attentest.targets.adapt.encoders.stack import STACK_SOURCE
from attentest.targets.adapt.fillings import Filling, head_width
from attentest.targets.adapt.layouts import split
from attentest.targets.adapt.makers.maker import CODE, Maker, as_long, with_axes
from attentest.targets.adapt.masks import lengths_of, shaped_mask
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.objects.mask_holders import held_as
from attentest.targets.adapt.parameters.telling import lines as table_lines
from attentest.targets.adapt.probing import SIZES
from attentest.targets.adapt.wrappers.batches import OF_ITEMS_SOURCE, of_items
from attentest.targets.adapt.wrappers.lazy import LAZY_SOURCE, materialised
from attentest.targets.adapt.wrappers.own_heads import OWN_HEADS_SOURCE, own_heads
from attentest.targets.adapt.wrappers.own_layers import OWN_LAYERS_SOURCE, own_layers
from attentest.targets.adapt.writing.values import Expression, Writer
from attentest.targets.constants.copies import COPIES_SOURCE, copied
from attentest.targets.layout import folded
from attentest.targets.models.forms import ADDITIVE
from attentest.targets.models.tables.vocabularies import VOCABULARY_SOURCE, Vocabulary
from attentest.targets.models.written import UNREAD, definition, head_line
from attentest_spec import COMPONENTS, Limits, Table
from attentest_spec.choices import Value

_WIDE = ("attention",)
"""Components whose tensors have an axis of heads."""


@dataclass
class Written:
    """One adapter in the making: how `code` is built and called, and what is declared of it."""

    code: Code
    call: Adapter | Maker
    table: Table
    choices: dict[str, Value]
    limits: Limits
    writer: Writer = field(default_factory=Writer)
    helpers: dict[str, str] = field(default_factory=dict)

    @property
    def adapter(self) -> Adapter:
        """The adapter that calls the code."""
        return self.call.adapter if isinstance(self.call, Maker) else self.call

    def text(self, said: Iterable[str]) -> str:
        """Return the whole file; `said` are comments on what was inferred."""
        parts = ["\n".join(["def build(sizes):", *self._build()]), self._call()]
        rows = [line for line in table_lines(self.table) if not line.startswith("from ")]
        parts += ["\n".join(rows).strip()] * bool(self.table)
        parts += [UNREAD.strip()] * bool(self._methods)
        parts.append(self._definition())
        sentences = [one for one in said if not one.startswith(("parameters:", " "))]
        comments = [f"# {line}" for one in sentences for line in wrap(one, 86)]
        body = "\n\n\n".join([*self.helpers.values(), *parts])
        lines = [*self._head(body), *comments, "", "", *map(folded, body.splitlines())]
        return "\n".join(lines) + "\n"

    @property
    def _methods(self) -> tuple[str, ...]:
        return tuple(COMPONENTS[self.code.component].methods)

    def _head(self, body: str) -> Iterator[str]:
        yield head_line(self.code.name)
        yield ""
        self.writer.need(*self.code.origin.imports)
        known = {
            "from collections.abc import Sequence": "Sequence[",
            "from torch import Tensor": "Tensor",
            "from attentest_spec import Limits": "Limits(",
            "from attentest_spec import Place": "Place(",
            "from attentest_spec import Sizes": "Sizes)",
            "from attentest_spec import Unsupported": "Unsupported(",
            "from attentest_spec.torch import Recipe, TorchBackend": "Recipe(",
        }
        self.writer.need(*(line for line, use in known.items() if use in body))
        yield from sorted(one for one in self.writer.imports if one.startswith("import "))
        yield ""
        yield from (one for one in self.writer.imports if not one.startswith("import "))
        yield ""

    def _build(self) -> Iterator[str]:
        yield '    """Return what is judged, at `sizes`."""'
        own, inner = self.code.origin.expression, self.code.inner
        if splits_heads(self.code.constants):
            self.helpers["head_width"] = inspect.getsource(head_width).strip()
            yield "    head_width(sizes)  # raises Unsupported where there is no whole one"
        if self.code.construction is None:
            module = isinstance(self.code.thing, nn.Module)
            if module:
                self.writer.need("import copy")
            own = self._wrapped(self._copy(own, self.code.constants))
            yield f"    return copy.deepcopy({own}).eval()" if module else f"    return {own}"
            return
        made = self._made(own, self.code.construction)
        if inner is None:
            yield f"    return {self._wrapped(made)}"
            return
        yield f"    around = sizes.but(max_length=max(sizes.max_length, {POSITIONS}))"
        made = made.replace("sizes.", "around.")
        found = f"{made}.get_submodule({inner.path!r})" if inner.path else made
        if inner.stack:
            self.helpers["stack"] = STACK_SOURCE.strip()
            options = {name: one for name, one in inner.stack.items() if one}
            options |= {"pad": Expression("sizes.source_pad")} if inner.pads else {}
            found = self.writer.call("EmbeddedStack", [Expression(found)], options)
        yield f"    return {self._wrapped(found)}"

    def _wrapped(self, made: str) -> str:
        """Return the expression `made` with the class around it that it is judged in."""
        if (around := self.code.wrapper) is None:
            return made
        self.helpers["wrapper"] = around.source.strip()
        given = [Expression(made), Expression(around.width)]
        return self.writer.call(around.cls.__name__, given, around.options)

    def _made(self, function: str, how: Construction) -> str:
        """Return the call of a constructor as an expression of `sizes`."""
        given = self._given(how.fillings)
        made = self.writer.call(self._copy(function, how.constants), (), given)
        if how.is_lazy:
            self.helpers["lazy"] = LAZY_SOURCE.strip()
            of_sizes = [Expression(made), Expression("sizes")]
            made = self.writer.call(materialised.__name__, of_sizes, {})
        if how.batch:
            self.helpers["items"] = OF_ITEMS_SOURCE.strip()
            made = self.writer.call(of_items.__name__, [Expression(made), *how.batch], {})
        if how.heads or how.outputs:
            self.helpers["own heads"] = OWN_HEADS_SOURCE.strip()
            of_heads = [Expression(made), how.heads, how.heads_axis, Expression("sizes.heads")]
            more = {"outputs": how.outputs} if how.outputs else {}
            made = self.writer.call(own_heads.__name__, of_heads, more)
        if how.shared:
            self.helpers["own layers"] = OWN_LAYERS_SOURCE.strip()
            of_layers = [
                *(Expression(made), how.shared),
                1 if how.has_one_layer else Expression("sizes.layers"),
            ]
            made = self.writer.call(own_layers.__name__, of_layers, {})
        return made

    def _copy(self, function: str, constants: Mapping[str, Filling]) -> str:
        """Return the copy of `function` whose `constants` are sizes; itself for none."""
        if not constants:
            return function
        self.helpers["copies"] = COPIES_SOURCE.strip()
        given = self._given(constants)
        return self.writer.call(copied.__name__, [Expression(function)], given)

    def _given(self, fillings: Mapping[str, Filling]) -> dict[str, Any]:
        """Return the expression of `sizes` for each of the `fillings`."""
        given = {}
        for own, one in fillings.items():
            if isinstance(one.value, Construction):
                given[own] = Expression(self._made(self.writer.named(one.value.make), one.value))
            else:
                given[own] = Expression(one.code) if one.code else one.value(SIZES)
            if "head_width(" in one.code:
                self.helpers["head_width"] = inspect.getsource(head_width).strip()
            if one.code.startswith(Vocabulary.__name__):
                self.helpers["vocabulary"] = VOCABULARY_SOURCE.strip()
        return given

    def _call(self) -> str:
        inputs = COMPONENTS[self.code.component].inputs
        body = [*self._refusals(), *self._masks(inputs), *self._results(inputs)]
        about = f'"""Return what {self.code.name} makes of the inputs of the contract."""'
        return "\n".join(
            [f"def call(module, {', '.join(inputs)}):", indent("\n".join([about, *body]), "    ")]
        )

    def _refusals(self) -> Iterator[str]:
        for one, other in self.adapter.arguments.joined:
            yield f"if not torch.equal({one}, {other}):"
            yield f'    raise Unsupported("its {one} is its {other}, and these differ")'

    def _masks(self, inputs: Iterable[str]) -> Iterator[str]:
        """Yield the lines that fill `masks`: the mask arguments of the call."""
        adapter, roles = self.adapter, self.adapter.arguments.roles
        asked = [one for one in inputs if one in MASKS]
        if not asked:
            return
        required = [
            own
            for own, one in adapter.signature.parameters.items()
            if one.default is one.empty
            and own in {*(roles.get(role) for role in asked), adapter.arguments.padding}
        ]
        yield f"masks = {self.writer.value(dict.fromkeys(required))}"
        for role in asked:
            keys = next((one for one in ("key", "memory", "x") if one in inputs), self._like)
            keys = self._like if role == "target_mask" else keys
            if adapter.causal and role != "source_mask":
                self.helpers["causal"] = inspect.getsource(without_the_causal).strip()
                yield f"{role} = without_the_causal({role}, {self._like}.shape[-2])"
            own = roles.get(role, "")
            if own in adapter.needs_mask:
                yield f"if {role} is None:"
                yield (
                    f"    {role} = torch.ones((1, 1, 1, {keys}.shape[-2]), dtype=torch.bool, "
                    f"device={keys}.device)"
                )
            word = "if"
            if adapter.arguments.padding and role == "mask":
                yield "if mask is not None and mask.shape[1] == mask.shape[2] == 1:"
                yield f"    {self._mask(adapter.arguments.padding, 'padding', 'mask')}"
                word = "elif"
            yield f"{word} {role} is not None:"
            taken = self._mask(own, role, role) if own else 'raise Unsupported("it takes no mask")'
            yield f"    {taken}"

    def _mask(self, own: str, slot: str, role: str) -> str:
        """Return the line that writes the mask `role` into the argument `own`."""
        style, fold = self.adapter.styles[slot], self.adapter.layout.fold
        if (kind := self.adapter.holders.get(own)) is not None:
            entries = self._entries(slot, role)
            return f"masks[{own!r}] = {held_as(kind, entries, self.writer.named)}"
        if style.meaning == "additive":
            self.helpers["additive"] = ADDITIVE.strip()
        if style.meaning == "lengths":
            self.helpers["lengths"] = inspect.getsource(lengths_of).strip()
            counts = f"lengths_of({role}, {self._like}, {style.shape!r}, {fold!r})"
            return f"masks[{own!r}] = {counts}[0]"
        if fold == "alone":
            each = f"{style.code('one', self._like)} for one in {self._shaped(slot, role)}"
            return f"masks[{own!r}] = [{each}]"
        return f"masks[{own!r}] = {self._entries(slot, role)}"

    def _entries(self, slot: str, role: str) -> str:
        """Return the expression of the one mask `role` in the style of `slot`."""
        style, fold = self.adapter.styles[slot], self.adapter.layout.fold
        if style.shape == "broadcast" and fold == "whole":
            return style.code(role, self._like)
        return style.code(f"{self._shaped(slot, role)}[0]", self._like)

    def _shaped(self, slot: str, role: str) -> str:
        """Return the expression of the mask `role` in the shape of `slot`, one for each call."""
        style, fold = self.adapter.styles[slot], self.adapter.layout.fold
        self.helpers["split"] = inspect.getsource(split).strip()
        self.helpers["mask"] = inspect.getsource(shaped_mask).strip()
        return f"shaped_mask({role}, {self._like}, {style.shape!r}, {fold!r})"

    @property
    def _like(self) -> str:
        return next(iter(COMPONENTS[self.code.component].inputs))

    def _results(self, inputs: Iterable[str]) -> Iterator[str]:
        adapter = self.adapter
        masked = any(one in MASKS for one in inputs)
        values = {
            own: Expression(self._entering(role))
            for role, own in adapter.arguments.roles.items()
            if role not in MASKS
        }
        repeated = adapter.arguments.repeated
        values |= {own: Expression(self._entering(role)) for own, role in repeated.items()}
        values |= {own: Expression("key.shape[-1]") for own in adapter.arguments.derived}
        values |= {own: Expression(code) for own, code in adapter.arguments.computed.items()}
        for name, helper in adapter.helpers.items():
            if any(name in code for code in adapter.arguments.computed.values()):
                self.helpers[name] = inspect.getsource(helper).strip()
        rest: dict[str, Any] = {**adapter.arguments.fixed, **values}
        placed = []
        for one in adapter.signature.parameters.values():
            several = one.kind is inspect.Parameter.VAR_POSITIONAL and one.name in rest
            if one.kind is inspect.Parameter.POSITIONAL_ONLY or several:
                default = None if one.default is one.empty else one.default
                mask = Expression(f"masks.get({one.name!r})")
                placed.append(rest.pop(one.name, mask if "mask" in one.name else default))
        alone = adapter.layout.fold == "alone"
        own = "{own: parts[i % len(parts)] for own, parts in masks.items()}" if alone else "masks"
        call = self.writer.call("module", placed, rest)
        if masked and not placed:
            call = f"{call[:-1]}{', ' * bool(rest)}**{own})"
        if isinstance(self.call, Maker):
            self.helpers["axes"] = inspect.getsource(with_axes).strip()
            made = CODE[self.call.meaning].format(call)
            made = f"with_axes({made}, {self.code.component!r})"
            if self.call.cut:
                self.helpers["as_long"] = inspect.getsource(as_long).strip()
                made = f"as_long({made}, tokens.shape[1])"
            yield f"return {made}"
            return
        if alone:
            count = f"len({self._entering(self._like, whole=True)})"
            call = f"[{call} for i in range({count})]"
        yield f"result = {call}"
        yield from self._outputs()

    def _entering(self, role: str, *, whole: bool = False) -> str:
        """Return the expression of the input `role` as the call gets it."""
        if role == "sublayer":
            return "lambda x: x @ sublayer"
        if role in ("pad", "length"):
            return role
        ndim = 4 if self.code.component in _WIDE else 3
        entering = self.adapter.layout.code_entering(role, ndim)
        return entering.partition("[i]")[0] if whole else entering

    def _outputs(self) -> Iterator[str]:
        returns, layout = self.adapter.returns, self.adapter.layout

        def left(key: Any, turn: str) -> str:
            part = returns.code("result", key)
            if layout.fold == "alone":
                part = f"torch.stack([{returns.code('one', key)} for one in result])"
            wide = layout.fold != "whole" and self.code.component in _WIDE
            return f"{part}{turn}" + f".unflatten(0, {self._like}.shape[:2])" * wide

        output = left(returns.output, layout.code_of_turn())
        if returns.added:
            output = f"{self._like} + {output}.to({self._like}.dtype)"
        if self.code.component != "attention":
            yield f"return {output}"
        else:
            weights = "None" if returns.weights is None else left(returns.weights, "")
            yield f"return {output}, {weights}"

    def _definition(self) -> str:
        component = self.code.component
        methods = ", ".join(f'"{one}": not_inferred' for one in self._methods)
        given = ["build", "call", f"{{{methods}}}", "PARAMETERS" if self.table else ""]
        recipe = ", ".join(given if self.table else given[: 3 if methods else 2])
        return definition(self.code.name, component, recipe, self.choices, self.limits).strip()
