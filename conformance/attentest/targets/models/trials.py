"""One way to build a whole model, and the trial of it: the shapes of its parameters."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from attentest.results.text import summary
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import RATIO
from attentest.targets.adapt.objects.unregistered import unregistered
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.constants.numbers_read import HEAD_WIDTH_CODE
from attentest.targets.models.surrounded import Surrounded, surrounded
from attentest.targets.signatures import sizes_in
from attentest_spec import Sizes, Unsupported


@dataclass(frozen=True)
class Building:
    """A model that is built by the `expression` of the name `sizes`, evaluated in `space`.

    `known` are the sizes that occur in it, `said` sentences for the user, and `doubts` those that
    may be wrong. `rows` is the number of rows of its tables of positions where that is fixed, and
    the expression gives them others. `doubled` says that it computes in double precision only where
    that is the default of torch, and `widened` that it does only where what its code asks for in
    single precision is computed in double precision. `equal` says that its calls fail where source
    and target differ in length: probing calls have equal lengths, and examples have not.
    """

    expression: str
    space: Mapping[str, Any]
    said: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    rows: int | None = None
    doubled: bool = False
    widened: bool = False
    equal: bool = False

    def __call__(self, sizes: Sizes) -> Any:
        """Build at `sizes`; what is shared by both sides cannot have two values."""
        if "target_vocabulary" not in self.known and (
            sizes.source_vocabulary != sizes.target_vocabulary
        ):
            raise ValueError(
                f"one vocabulary serves both sides: {sizes.source_vocabulary} and "
                f"{sizes.target_vocabulary} differ"
            )
        if self.is_split and sizes.heads > 0 and sizes.d_model % sizes.heads:
            raise Unsupported(
                f"it is built with the width of a head, and {sizes.d_model} features are no "
                f"multiple of {sizes.heads}"
            )
        return eval(self.expression, {**self.space, "sizes": sizes})

    @property
    def known(self) -> frozenset[str]:
        """The sizes that it is built with."""
        return sizes_in(self.expression)

    @property
    def is_split(self) -> bool:
        """Whether it is given the width of a head, which the adapter computes."""
        return HEAD_WIDTH_CODE in self.expression


BIASED = (
    "with a number for each head, as the relative positions of T5 are, and whole models with those "
    "are not judged: name the class of its attention"
)


def _holder(model: nn.Module, rows: int, width: int) -> str:
    """Return the name of the class of modules that hold a table of so many rows."""
    for path, one in model.named_modules():
        if isinstance(one, nn.Embedding) and tuple(one.weight.shape) == (rows, width):
            return type(model.get_submodule(path.rpartition(".")[0])).__name__
    return ""


def trial(built: Building, *, shared: bool = False) -> str:
    """Return why `built` cannot be what is meant, "" where it can.

    A `shared` vocabulary, where the arguments are two, needs a table that is shared.
    """
    sizes = DISTINCT
    if "target_vocabulary" not in built.known:
        sizes = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    try:
        with undisturbed():
            module = built(sizes)
    except (Exception, SystemExit) as failure:  # code that a user wrote may raise anything, or end
        return summary(failure, 160)
    if not isinstance(module, nn.Module):
        return f"it makes a {type(module).__name__}, and no torch.nn.Module"
    if reason := unregistered(module):
        return reason
    if not any(True for _ in module.parameters()):
        return (
            "it holds no parameters: its parts are handed to it, and these are numbers and no parts"
        )
    if any(map(is_lazy, module.parameters())):
        return (
            "it holds parameters without a shape until its first call (as of nn.LazyLinear), and "
            "whole models are judged as they are built: give each linear map its width"
        )
    linears = [one for one in module.modules() if isinstance(one, nn.Linear)]
    if any(one.bias is not None and len(one.bias) != len(one.weight) for one in linears):
        return "it holds a matrix of another number of rows than its biases: they are of two sizes"
    tables = [one.weight for one in module.modules() if isinstance(one, nn.Embedding)]
    for rows, width in (one.shape for one in tables):
        if width == sizes.heads:
            own = _holder(module, rows, width)
            return f"it holds a table of {rows} rows {BIASED}, {own}, which is"
        if width != sizes.d_model:
            return "it holds a table of another width than the model's"
    held = module.named_parameters(remove_duplicate=False)  # a layer may be in a list twice
    if (
        shared
        and len({one.data_ptr() for one in tables if len(one) == sizes.source_vocabulary}) != 1
    ):
        return "its sides do not share a table, and it is built with one vocabulary for both"
    held_rows = {len(one) for one in tables}
    both = sizes.source_vocabulary, sizes.target_vocabulary
    if both[0] in held_rows and both[1] not in held_rows and not shared and both[0] != both[1]:
        return "its sides share a table of tokens, and it is built with two vocabularies"
    shapes = [set(one.shape) for _, one in held if one.dim() > 1]
    for vocabulary in (sizes.source_vocabulary, sizes.target_vocabulary):
        if {vocabulary, sizes.d_model} not in shapes:
            return f"it holds no table of {vocabulary} tokens by {sizes.d_model}"
    wide, packed = (sum(width in one for one in shapes) for width in (sizes.d_ff, 2 * sizes.d_ff))
    networks = 2 * sizes.layers
    if "d_ff" in built.known and (wide, packed) not in _networks(networks):
        return f"it holds {wide} matrices of the inner width, and not {2 * networks}"
    factor = next((own for own, one in _factors(built.expression) if one == "4"), "")
    narrow = sum({4, sizes.d_model} == one for one in shapes)
    is_used = any(4 * sizes.d_model in one for one in shapes)
    if factor and not is_used and (narrow, 0) in _networks(networks):
        return f"its networks are {factor} wide, and no multiple of the model's width"
    return ""


def _factors(expression: str) -> list[tuple[str, str]]:
    """Return the arguments that are factors of the inner width by their names, and their values."""
    held = re.findall(r"(\w+)=([\w.]+)", expression)
    return [(own, one) for own, one in held if squashed(own) in RATIO]


def factor_doubts(expression: str) -> Iterator[str]:
    """Yield the arguments that are the inner width itself, and a factor by their names."""
    for own, one in _factors(expression):
        if one == "sizes.d_ff":
            yield (
                f"assumed that {own} is the inner width itself, as its networks show: a mistake if "
                f"a multiple of the model's width is meant, as the name says"
            )


def _networks(number: int) -> tuple[tuple[int, int], ...]:
    """Return how many matrices of the inner width, and of twice that, so many networks have.

    They have none for a gate, one for it, or one for it and what it multiplies.
    """
    return (2 * number, 0), (3 * number, 0), (number, number)


def around(built: Building) -> Building | None:
    """Return stacks that take vectors between tables and a generator; None for all else."""
    try:
        with undisturbed():
            core = built(DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
        own = list(core.modules())
    except (Exception, SystemExit):  # code that a user wrote may raise anything, or end
        return None
    if {"d_model", "heads", "layers"} - built.known or any(
        isinstance(one, nn.Embedding) for one in own
    ):
        return None
    if not any(True for _ in core.parameters()):
        return None
    expression = surrounded(built.expression, core)
    found = Building(expression, {**built.space, "Surrounded": Surrounded})
    if not expression or trial(found):
        return None
    said = (
        f"built as {built.expression}",
        "it takes vectors: tables of tokens and a generator of the adapter's are put around it, "
        "and nothing is said of embeddings, positions and generators",
    )
    return dataclasses.replace(found, said=said)
