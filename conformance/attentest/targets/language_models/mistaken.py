"""Decoder-only models that have the numbers of the reference but for one mistake.

One that no design makes, in every layer, is judged: the rest of the model is read around it. What a
design computes as well is asked about.
"""

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from attentest.analysis.lines.recording import Place
from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.calling import Call
from attentest.targets.language_models.calls.labels import apart_without_labels
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.numbers.findings import Found
from attentest.targets.language_models.numbers.mistakes import (
    DEVIATING,
    WITHOUT_NORM,
    WITHOUT_RESIDUAL,
    Mistake,
)
from attentest.targets.language_models.numbers.search import search
from attentest.targets.language_models.probing import Probed, probe_of, probe_sizes
from attentest.targets.language_models.tables import table_of
from attentest.targets.neighbours import bodies_naming
from attentest.targets.signatures import source_of
from attentest.targets.single import widened
from attentest_spec import Sizes

_DECODERS = re.compile(
    r"((gpt(\d*|j|neo|neox)|llama\d*|mistral|qwen\d*|gemma\d*|smollm\d*)(model)?|causallm|"
    r"decoderonly(transformer|model|arch|architecture|network|lm)?)$"
)
"""Names of models that continue texts: others, as BERT, have logits for tokens as well."""

_TEXTS = re.compile(r"(?<!masked)(?<!m)(languagemodel|lm|lmmodel|lmheadmodel)$")
"""Names of models of language: one continues texts where its code speaks of later tokens."""

_ORDER = re.compile(r"tril|triu|causal|subsequent|look_?ahead|future")
_NO_ORDER = re.compile(r"causal\s*=\s*False")
"""Words of code that hides later tokens, and of code that says that it does not."""

CONTINUES = ("generate", "sample")
"""Methods that continue texts."""

_FILLS_IN = re.compile(r"(?i)mask_?token|mask_?id|mlm|bert\b|bidirection|diffusion|denois|prefix")
"""Words of code that fills in tokens, or sees a part of its text whole."""


def is_meant_to_continue(thing: Callable[..., Any], name: str, built: Building, call: Call) -> bool:
    """Say whether a model is one that continues texts, so that it has to hide later tokens.

    Its name says so, alone or with its code, or a method that generates, or code around it that
    chooses a token by its last step, or that it returns that step alone.
    """
    if _FILLS_IN.search(_source(thing)) or _is_causal_on_demand(_source(thing)):
        return False
    if _DECODERS.search(squashed(name)) or any(hasattr(thing, one) for one in CONTINUES):
        return True
    if inspect.isclass(thing) and is_continued(thing):
        return True
    model = probe_of(built, probe_sizes(built))
    if _TEXTS.search(squashed(name)) and means_order(model, thing):
        return True
    with widened():
        return apart_without_labels(model, call) is not None


_LAST_STEP = re.compile(r"\[:, -1(, :)?\]|\[0, -1(, :)?\]")
_NEXT_TOKEN = re.compile(r"\b(multinomial|argmax|topk)\(")
"""Code that takes the last of the steps, and chooses a token by it."""


def is_continued(thing: type) -> bool:
    """Say whether code around the class `thing` continues a text by the last of its logits."""
    for body in bodies_naming(thing):
        source = ast.unparse(ast.Module(body, []))
        if _LAST_STEP.search(source) and _NEXT_TOKEN.search(source):
            return not _FILLS_IN.search(source)
    return False


def means_order(model: nn.Module, thing: Callable[..., Any]) -> bool:
    """Say whether the code of a model speaks of later tokens: it is meant to hide them."""
    own = {type(one) for one in model.modules() if type(one).__module__ == thing.__module__}
    return any(_ORDER.search(_NO_ORDER.sub("", _source_of(one))) for one in own)


def _is_causal_on_demand(source: str) -> bool:
    """Say whether an argument or a field that is False by default says what hides later tokens."""
    for node in ast.walk(ast.parse(source)):
        held: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.arguments):
            every = [*node.posonlyargs, *node.args]
            held += zip([one.arg for one in every[::-1]], node.defaults[::-1], strict=False)
            held += zip([one.arg for one in node.kwonlyargs], node.kw_defaults, strict=True)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            held.append((node.target.id, node.value))
        if any("causal" in name and _is_false(value) for name, value in held):
            return True
    return False


def _is_false(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _source(thing: Callable[..., Any]) -> str:
    """Return the source of the file of `thing`."""
    return _source_of(inspect.getmodule(thing) or thing)


def _source_of(thing: Any) -> str:
    return source_of(thing, "bert")  # nothing is known of it


def confirming(sizes: Sizes) -> list[Sizes]:
    """Return other sizes than those of the probe, at which a mistake is the same one.

    A share of the columns of a head, as a quarter that rotary positions turn, has to be even: it
    is not at the first of them.
    """
    return [sizes.but(d_model=width, heads=8) for width in (160, 192)]


def read_with_mistake(
    one: Probed, other: Callable[[], Probed | None], *, continues: bool
) -> tuple[Found, Mistake, Place | None] | None:
    """Return what is read of a model if one mistake is taken for a formula, and the mistake.

    The third is the line of a missing residual path, None for other mistakes.

    None where the numbers of `one` and of the `other` probe, at other sizes, are not those of the
    reference with it, where there is no other, or where a design may compute it.
    """
    for mistake in _mistakes(one, continues=continues):
        reader = one.with_mistake(mistake)
        found = search(reader, *one.given)
        if found is not None:
            second = other()
            again = second and search(second.with_mistake(mistake), *second.given)
            return (found, mistake, reader.begun) if again and _is_one(found, again) else None
    return None


def _is_one(found: Found, other: Found) -> bool:
    """Say whether both are the same reading, at two sets of sizes."""
    return found.choices == other.choices and table_of(found.views) == table_of(other.views)


_FIRST_NORM = "queries, keys and values of layers.0."

_SUMS = ("the sum after", "the inner layer of layers.0.feed_forward")
"""The ends of a search without a residual sum: the network may be looked for before that."""


def _mistakes(one: Probed, *, continues: bool) -> Sequence[Mistake]:
    """Return the mistakes that may explain where the search ended."""
    suspected, (_, what) = one.reader.suspected, one.reader.reached
    if suspected:
        sure = suspected.sure or (suspected.of_texts and continues)
        return [suspected] if sure else []
    if what.startswith(_FIRST_NORM):  # no norm of the call is one of the specification
        return (DEVIATING,)
    if what.startswith("the norms of"):
        return WITHOUT_NORM if one.reader.idle else ()
    if not what.startswith(_SUMS):
        return ()
    last = what.rpartition(".")[2]  # a reading of another design may have come as far as there
    others = [each for name, own in WITHOUT_RESIDUAL.items() if name != last for each in own]
    return [*WITHOUT_RESIDUAL.get(last, ()), *others]
