"""Decoder-only models that have the numbers of the reference but for one mistake.

One that no design makes, in every layer, is judged: the rest of the model is read around it. What a
design computes as well is asked about.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.building import Building
from attentest.targets.language_models.calling import Call, apart_without_labels
from attentest.targets.language_models.numbers.findings import Found
from attentest.targets.language_models.numbers.mistakes import (
    WITHOUT_NORM,
    WITHOUT_RESIDUAL,
    Mistake,
)
from attentest.targets.language_models.numbers.search import search
from attentest.targets.language_models.numbers.tracing import widened
from attentest.targets.language_models.probing import Probed, probe_of, probe_sizes
from attentest.targets.language_models.tables import table_of
from attentest_spec import Sizes

_DECODERS = re.compile(r"(gpt\d*|llama\d*|causallm|decoderonly(transformer|model)?)$")
"""Names of models that continue texts: others, as BERT, have logits for tokens as well."""

_CONTINUES = ("generate", "sample")
_FILLS_IN = re.compile(r"(?i)mask_?token|mask_?id|mlm|bert\b|bidirection|diffusion|denois|prefix")
"""Words of code that fills in tokens, or sees a part of its text whole."""


def is_meant_to_continue(thing: Callable[..., Any], name: str, built: Building, call: Call) -> bool:
    """Say whether a model is one that continues texts, so that it has to hide later tokens.

    Its name says so, or a method that generates, or that it returns the last step alone to code
    that generates.
    """
    if _FILLS_IN.search(_source(thing)):
        return False
    if _DECODERS.search(squashed(name)) or any(hasattr(thing, one) for one in _CONTINUES):
        return True
    with widened():
        return apart_without_labels(probe_of(built, probe_sizes(built)), call) is not None


def _source(thing: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(inspect.getmodule(thing) or thing)
    except (OSError, TypeError):
        return "bert"  # nothing is known of it


def confirming(sizes: Sizes) -> Sizes:
    """Return other sizes than those of the probe, at which a mistake is the same one."""
    return sizes.but(d_model=160, heads=8)


def read_with_mistake(
    one: Probed, other: Callable[[], Probed], *, continues: bool
) -> tuple[Found, Mistake] | None:
    """Return what is read of a model if one mistake is taken for a formula, and the mistake.

    None where the numbers of `one` and of the `other` probe, at other sizes, are not those of the
    reference with it, or where a design may compute it.
    """
    for mistake in _mistakes(one, continues=continues):
        found = search(one.with_mistake(mistake), *one.given)
        if found is not None:
            second = other()
            again = search(second.with_mistake(mistake), *second.given)
            return (found, mistake) if again and _is_one(found, again) else None
    return None


def _is_one(found: Found, other: Found) -> bool:
    """Say whether both are the same reading, at two sets of sizes."""
    return found.choices == other.choices and table_of(found.views) == table_of(other.views)


def _mistakes(one: Probed, *, continues: bool) -> Sequence[Mistake]:
    """Return the mistakes that may explain where the search ended."""
    suspected, (_, what) = one.reader.suspected, one.reader.reached
    if suspected:
        sure = suspected.sure or (suspected.of_texts and continues)
        return [suspected] if sure else []
    if what.startswith("the norms of"):
        return WITHOUT_NORM if one.reader.idle else ()
    summed = what.startswith("the sum after") and what.rpartition(".")[2]
    return WITHOUT_RESIDUAL.get(summed or "", ())
