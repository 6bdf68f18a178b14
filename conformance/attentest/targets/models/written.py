"""An inferred backend as a Python file: readable, ready to be edited and registered."""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from attentest.targets.adapt.assumptions.choices import named, pairs
from attentest.targets.adapt.parameters.telling import lines as table_lines
from attentest.targets.adapt.ungiven import sentence
from attentest.targets.adapt.wrappers.own_heads import OWN_HEADS_SOURCE, own_heads
from attentest.targets.adapt.wrappers.own_norms import InTurn
from attentest.targets.constants.copies import COPIES_SOURCE, copied
from attentest.targets.layout import folded
from attentest.targets.models.forms import ADDITIVE
from attentest.targets.models.inferring import Inferred
from attentest.targets.models.surrounded import SURROUNDED_SOURCE, Surrounded
from attentest.targets.models.tables.fixed_rows import RESIZED_SOURCE, resized
from attentest.targets.models.tables.handed_positions import SINES_SOURCE, sines
from attentest.targets.models.tables.heads_of_layers import PLAIN_HEAD_SOURCE, plain_head
from attentest.targets.models.tables.idle_norms import LEFT_OUT_SOURCE, left_out
from attentest.targets.models.tables.lone_norm import WITH_IDLE_NORM_SOURCE, with_idle_norm
from attentest.targets.models.tables.memory_norms import (
    PLAIN_MEMORY_SOURCE,
    MemoryAsItIs,
    with_plain_memory,
)
from attentest.targets.models.tables.norms_in_turn import UNTIED_SOURCE, untied
from attentest.targets.models.tables.norms_of_calls import (
    NORMS_OF_CALLS_SOURCE,
    NormsOfCalls,
    norms_held,
)
from attentest.targets.models.tables.one_table import PLACELESS_SOURCE, placeless
from attentest.targets.models.tables.single_numbers import IN_COLUMNS_SOURCE, in_columns
from attentest.targets.models.tables.vocabularies import VOCABULARY_SOURCE, Vocabulary
from attentest.targets.models.trials import Building
from attentest.targets.origin import Origin, origin
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.mapping import Table
from attentest_spec.profiles import DEFAULT


@dataclass(frozen=True)
class Adapter:
    """All that the file of an adapter says of a whole model."""

    name: str
    origin: Origin
    building: Building
    inferred: Inferred
    table: Table
    choices: Mapping[str, Value]
    limits: Limits

    def text(self, said: Iterable[str] = ()) -> str:
        """Return the whole file; `said` are comments on what was inferred."""
        sentences = [one for one in said if not one.startswith(("parameters:", " "))]
        comments = [f"# {line}" for one in sentences for line in wrap(one, 86)]
        return "\n".join([*self._head(), *comments, "", "", self.body()])

    def loader(self) -> str:
        """Return the code without comments, as a reproduction begins."""
        return "\n".join([*self.origin.imports, *self._needed(), *_IMPORTS, "", self.body()])

    def body(self) -> str:
        """Return the functions, the parameter map and the backend, without imports."""
        calls = [self.inferred.call, *self.inferred.methods.values()]
        sources = [one.source() for one in calls]
        helpers = [ADDITIVE] if any("additive(" in one for one in sources) else []
        helpers += [SURROUNDED_SOURCE] * self.is_surrounded
        for called, source in (
            (copied, COPIES_SOURCE),
            (Vocabulary, VOCABULARY_SOURCE),
            (sines, SINES_SOURCE),
            (plain_head, PLAIN_HEAD_SOURCE),
            (resized, RESIZED_SOURCE),
            (placeless, PLACELESS_SOURCE),
            (in_columns, IN_COLUMNS_SOURCE),
            (untied, UNTIED_SOURCE),
            (with_plain_memory, PLAIN_MEMORY_SOURCE),
            (left_out, LEFT_OUT_SOURCE),
            (with_idle_norm, WITH_IDLE_NORM_SOURCE),
            (norms_held, NORMS_OF_CALLS_SOURCE),
            (own_heads, OWN_HEADS_SOURCE),
        ):
            helpers += [source] * (f"{called.__name__}(" in self.expression())
        parts = [self._build(), *helpers, *sources, *self._tail()]
        return "\n".join(folded(line) for line in "\n\n".join(parts).splitlines()) + "\n"

    @property
    def is_surrounded(self) -> bool:
        """Whether the embeddings and the generator are those of the adapter."""
        return self.building.expression.startswith(f"{Surrounded.__name__}(")

    def _head(self) -> Iterator[str]:
        yield head_line(self.name)
        yield ""
        yield from self.origin.imports
        yield from self._needed()
        yield from _IMPORTS
        yield ""

    def _needed(self) -> list[str]:
        return imports_of(self.building.expression, self.building.space, self.origin)

    def _build(self) -> str:
        rows = []
        if "target_vocabulary" not in self.building.known:
            rows += [
                "    if sizes.source_vocabulary != sizes.target_vocabulary:",
                '        raise ValueError("one vocabulary serves both sides")',
            ]
        if self.building.is_split:
            rows += [
                "    if sizes.heads > 0 and sizes.d_model % sizes.heads:",
                '        raise Unsupported("the width of a head is no whole number")',
            ]
        is_filled = self.inferred.call.conventions.filled
        if any("model.pads" in one.source() for one in self._calls()):
            rows += [
                f"    model = {self.expression()}",
                "    model.pads = sizes.source_pad, sizes.target_pad",
                *["    model.longest = sizes.max_length"] * is_filled,
                "    return model",
            ]
        else:
            rows += [f"    return {self.expression()}"]
        return "\n".join(["def build(sizes):", '    """Return the model at `sizes`."""', *rows, ""])

    def _calls(self) -> list[Any]:
        return [self.inferred.call, *self.inferred.methods.values()]

    def expression(self) -> str:
        """Return the expression that builds the model, by names that are imported."""
        return self.building.expression

    def _tail(self) -> Iterator[str]:
        yield "\n".join(line for line in table_lines(self.table) if not line.startswith("from "))
        if not self.inferred.methods:
            yield UNREAD
        held = {one: one for one in self.inferred.methods} or dict.fromkeys(
            ("encode", "decode"), "not_inferred"
        )
        methods = ", ".join(f'"{one}": {function}' for one, function in held.items())
        given = "build, call" + f", {{{methods}}}"
        recipe = f"{given}, PARAMETERS"
        yield definition(self.name, "model", recipe, self.choices, self.limits)


def summary_of(adapter: Adapter) -> str:
    """Return how the model is called, its masks and its parameters, in one line."""
    read = adapter.inferred.call.every_argument
    given = adapter.inferred.call.conventions.masks
    called = ", ".join([*pairs(read.tokens.items()), *given])
    masks = [] if given else ["it makes its masks itself"]
    missing = filter(None, [sentence(adapter.inferred.ungiven)])
    return "; ".join([f"{adapter.name} called ({called})", *missing, *masks, *named(adapter.table)])


def head_line(name: str) -> str:
    """Return the docstring of a written adapter."""
    return f'"""The adapter of {name}, as attentest inferred it: edit and register it."""'


def definition(
    name: str,
    component: str,
    recipe: str,
    choices: Mapping[str, Value],
    limits: Limits,
    profile: str = DEFAULT,
) -> str:
    """Return the definition of a backend with one `recipe`."""
    changed = {one: held for one, held in vars(limits).items() if held != getattr(Limits(), one)}
    written = ", ".join(f"{one}={held!r}" for one, held in changed.items())
    rows = [f'        "{one}": {_quoted(value)},' for one, value in choices.items()]
    return "\n".join(
        [
            "backend = TorchBackend(",
            f'    name="{name}",',
            f'    title="{name}, read as {component}",',
            *([f'    profile="{profile}",'] if profile != DEFAULT else []),
            *(["    choices={", *rows, "    },"] if rows else []),
            f"    limits=Limits({written}),",
            f'    recipes={{"{component}": Recipe({recipe})}},',
            ")",
            "",
        ]
    )


def _quoted(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


UNREAD = '''\
def not_inferred(*_):
    """Answer for a method that could not be inferred."""
    raise Unsupported("only its call was read, and no method of it")
'''
_IMPORTS = (
    "import torch",
    "",
    "from attentest_spec import Limits, Place, Unsupported",
    "from attentest_spec.torch import Recipe, TorchBackend",
)


def imports_of(expression: str, space: Mapping[str, Any], own: Origin) -> list[str]:
    """Return the imports of the classes in `expression` that `own`, the model's, does not have.

    They are taken from `space`: the classes of settings, of parts, and namespaces.
    """
    named = [one.id for one in ast.walk(ast.parse(expression)) if isinstance(one, ast.Name)]
    found = [
        origin(space[name]) if space[name].__qualname__ == name else Origin(name)
        for name in dict.fromkeys(named)
        if inspect.isclass(space.get(name)) and name not in (own.expression, *_WRITTEN)
    ]
    lines = [line for one in found for line in one.imports]
    return [one for one in dict.fromkeys(lines) if one and one not in own.imports]


_WRITTEN = (
    *("Generated", "OfBlocks", "Turned"),
    *(one.__name__ for one in (Surrounded, Vocabulary, InTurn, NormsOfCalls, MemoryAsItIs)),
)
"""The classes whose code is written into the file."""
