"""The inferred backend of a decoder-only model as a Python file, ready to be edited."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import wrap

from attentest.targets.adapt.parameters.telling import lines
from attentest.targets.constants.copies import COPIES_SOURCE, copied
from attentest.targets.language_models.caching import Cached
from attentest.targets.language_models.calling import Call
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.construction.memos import FRESH_SOURCE, fresh
from attentest.targets.language_models.construction.rounded_tables import (
    WHOLE_ROWS_SOURCE,
    whole_rows,
)
from attentest.targets.language_models.steps.one_by_one import OneByOne, noting_most
from attentest.targets.language_models.surrounded.batches import (
    OF_BATCH_SOURCE,
    OF_MASKED_BATCH_SOURCE,
    OfBatch,
    OfMaskedBatch,
)
from attentest.targets.language_models.surrounded.mixtures import NETWORKED_SOURCE, networked
from attentest.targets.language_models.surrounded.modules import (
    EVERY_STEP_SOURCE,
    FILLED_UP_SOURCE,
    GENERATED_SOURCE,
    OF_BLOCKS_SOURCE,
    ONE_TEXT_SOURCE,
    SECTIONS_SOURCE,
    EveryStep,
    FilledUp,
    Generated,
    OfBlocks,
    OneText,
    sectioned,
)
from attentest.targets.language_models.surrounded.set_up import SET_UP_SOURCE, SetUp
from attentest.targets.layout import folded
from attentest.targets.models.tables.fixed_rows import RESIZED_SOURCE, resized
from attentest.targets.models.tables.norms_in_turn import UNTIED_SOURCE, untied
from attentest.targets.models.tables.single_numbers import IN_COLUMNS_SOURCE, in_columns
from attentest.targets.models.written import definition, head_line, imports_of
from attentest.targets.origin import Origin
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.mapping import Table
from attentest_spec.profiles import DEFAULT


@dataclass(frozen=True)
class LanguageAdapter:
    """All that the file of an adapter says of a decoder-only model.

    `cached` is how it is continued from a cache, None where that is not read.
    """

    name: str
    origin: Origin
    building: Building
    call: Call
    table: Table
    choices: Mapping[str, Value]
    limits: Limits
    profile: str = DEFAULT
    cached: Cached | None = None

    def text(self, said: Iterable[str] = ()) -> str:
        """Return the whole file; `said` are comments on what was inferred."""
        sentences = [one for one in said if not one.startswith(("parameters:", " "))]
        comments = [f"# {line}" for one in sentences for line in wrap(one, 86)]
        imports = [*self.origin.imports, *self._needed(), *self._imports]
        return "\n".join([head_line(self.name), "", *imports, "", *comments, "", "", self.body()])

    def loader(self) -> str:
        """Return the code without comments, as a reproduction begins."""
        return "\n".join([*self.origin.imports, *self._needed(), *self._imports, "", self.body()])

    def body(self) -> str:
        """Return the functions, the parameter map and the backend, without imports."""
        expression = self.building.expression
        build = (
            f'def build(sizes):\n    """Return the model at `sizes`."""\n    return {expression}\n'
        )
        if isinstance(self.call, OneByOne) and "max_length" in self.building.known:
            build = noting_most(build)
        table = "\n".join(line for line in lines(self.table) if not line.startswith("from "))
        recipe = "build, call, {}, PARAMETERS"
        own = definition(
            self.name, "language_model", recipe, self.choices, self.limits, self.profile
        )
        steps = []
        if self.cached:
            steps = [self.cached.source(self.call)]
            end = f"{recipe})}},"
            more = f'{recipe}), "cached_language_model": {self.cached.recipe}}},'
            own = own.replace(end, more)
        helpers = [
            source
            for made, source in (
                (copied, COPIES_SOURCE),
                (Generated, GENERATED_SOURCE),
                (EveryStep, EVERY_STEP_SOURCE),
                (FilledUp, FILLED_UP_SOURCE),
                (OneText, ONE_TEXT_SOURCE),
                (OfBlocks, OF_BLOCKS_SOURCE),
                (sectioned, SECTIONS_SOURCE),
                (SetUp, SET_UP_SOURCE),
                (OfBatch, OF_BATCH_SOURCE),
                (OfMaskedBatch, OF_MASKED_BATCH_SOURCE),
                (resized, RESIZED_SOURCE),
                (fresh, FRESH_SOURCE),
                (untied, UNTIED_SOURCE),
                (in_columns, IN_COLUMNS_SOURCE),
                (networked, NETWORKED_SOURCE),
                (whole_rows, WHOLE_ROWS_SOURCE),
            )
            if f"{made.__name__}(" in expression
        ]
        parts = [build, *helpers, self.call.source(), *steps, table, own]
        return "\n".join(folded(line) for line in "\n\n".join(parts).splitlines()) + "\n"

    def _needed(self) -> list[str]:
        named = ", ".join([self.building.expression, *self.call.space])
        space = {**self.building.space, **self.call.space}
        return imports_of(f"({named})", space, self.origin)

    @property
    def _imports(self) -> tuple[str, ...]:
        return (*_IMPORTS, _CACHED) if self.cached else (*_IMPORTS, _PLAIN)


_IMPORTS = (
    "import torch",
    "",
    "from attentest_spec import Limits, Place, Unsupported",
)
_PLAIN = "from attentest_spec.torch import Recipe, TorchBackend"
_CACHED = "from attentest_spec.torch import Recipe, TorchBackend, cached_language_model"
