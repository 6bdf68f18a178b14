"""Tables of tokens whose number of rows is rounded up: models are judged without the rows beyond.

A table of 50304 rows for 50257 tokens is faster on some devices. The function `whole_rows` needs
nothing else of the suite: written adapters contain its source.
"""

import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest_spec import Sizes


def whole_rows(model: nn.Module, rows: int, tables: Sequence[str]) -> nn.Module:
    """Return `model` with the first `rows` rows of each of its `tables` by name, and no others."""
    for name in tables:
        own = model.get_parameter(name)
        own.data = own.data[:rows].clone()
        for module in model.modules():
            if any(one is own for one in module.parameters(recurse=False)):
                for size in ("num_embeddings", "out_features"):
                    if hasattr(module, size):
                        setattr(module, size, rows)
    return model


OWN: dict[str, Any] = {whole_rows.__name__: whole_rows}
"""The function by its name, as expressions call it."""

WHOLE_ROWS_SOURCE = "\n".join(
    ["from collections.abc import Sequence", "from torch import nn", "", "", ""]
) + inspect.getsource(whole_rows)
"""The function as code of its own, for a reproduction or a written adapter."""

SAID = (
    "assumed that the rows of {} are as many as there are tokens, rounded up to a multiple of {}: "
    "it is judged without those beyond its tokens, and without their logits"
)

_TRIED = (29, 70, 130, 301, 515)
"""Numbers of tokens whose multiples above differ, for any number that rows are rounded up to."""

_GREATEST = 512
"""The greatest number that rows are rounded up to."""


def with_whole_rows(
    failures: Sequence[tuple[str, str]], space: Mapping[str, Any], doubts: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions of models whose tables have more rows than tokens, without the rows beyond.

    With each come its `doubts`, and that on the rows. Their numbers are multiples of one number,
    and none is greater than it has to be.
    """
    for expression, failure in failures[:2]:
        if "holds no table" not in failure:
            continue
        names, multiple = _rounded(expression, space)
        if names:
            cut = f"{whole_rows.__name__}({expression}, sizes.target_vocabulary, {names})"
            yield cut, (*doubts, SAID.format(" and ".join(names), multiple))


def _rounded(expression: str, space: Mapping[str, Any]) -> tuple[tuple[str, ...], int]:
    """Return the names of the tables whose rows are rounded up, and to a multiple of which number.

    No names where there are none, or where they follow no such rule.
    """
    try:
        with undisturbed():
            counts = [_rows(expression, space, tokens) for tokens in _TRIED]
    except Exception:  # code that a user wrote may raise anything
        return (), 0
    first, *others = counts
    names = [one for one in first if any(other.get(one) != first[one] for other in others)]
    for name in names:
        found = [one.get(name, 0) for one in counts]
        multiple = math.gcd(*found)
        rounded = [-(-tokens // multiple) * multiple for tokens in _TRIED] if multiple else []
        if found != rounded or not 1 < multiple <= _GREATEST:
            return (), 0
    return tuple(names), math.gcd(*(one[name] for one in counts for name in names))


def _rows(expression: str, space: Mapping[str, Any], tokens: int) -> dict[str, int]:
    """Return the number of rows of each parameter of the model for a number of `tokens`."""
    sizes = Sizes(
        d_model=96,
        heads=6,
        kv_heads=2,
        d_ff=44,
        layers=2,
        source_vocabulary=tokens,
        target_vocabulary=tokens,
        max_length=33,
        window=64,
    )
    model = eval(expression, {**space, "sizes": sizes})
    return {name: len(one) for name, one in model.named_parameters() if one.dim()}


def with_size_of_table(
    failures: Sequence[tuple[str, str]], doubts: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield expressions that give the width twice, with the size of an embedding as its rows.

    OLMo pads its vocabulary to that size. With each come the `doubts`.
    """
    for expression, failure in failures[:2]:
        own = _SIZE_OF_TABLE.search(expression)
        if own and failure.startswith(NO_TABLE) and expression.count("=sizes.d_model") > 1:
            rows = f"{own[1]}=sizes.target_vocabulary"
            said = f"assumed {own[1]} is the number of rows of the table: as a width, {failure}"
            yield expression.replace(own[0], rows), (*doubts, said)


_SIZE_OF_TABLE = re.compile(r"\b(emb(?:edding)?_?size)=sizes\.d_model")
NO_TABLE = "it holds no table of"
"""The beginning of the sentence on a model without a table of its tokens."""
