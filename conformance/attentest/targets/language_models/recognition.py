"""Recognises decoder-only models: classes that map token ids alone to causal logits."""

import ast
import inspect
import re
import sys
import textwrap
from typing import Any

from torch import nn

from attentest.targets.adapt.components import component_named, side_named, squashed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.argument_names import (
    AT_START,
    MASKS,
    POSITIONS,
    caches_named,
    is_none,
)
from attentest.targets.language_models.caching import cache_argument
from attentest.targets.language_models.calling import is_causal
from attentest.targets.language_models.calls.losses import is_of_loss
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.construction.makers import NAMED, makes_language_models
from attentest.targets.language_models.construction.parts import parts_near
from attentest.targets.language_models.inference import called
from attentest.targets.language_models.mistaken import is_continued, means_order
from attentest.targets.language_models.probing import probe_of
from attentest.targets.signatures import source_of

_MASKED = re.compile(r"masked(lm|languagemodel)|mlm$|bert(?!.*decod)")
"""Names of models that fill in tokens: their files may speak of later ones all the same.

They are decoder-only where their numbers alone show it.
"""

_FILLS = re.compile(r"(?i)<mask>|\[mask\]|\bmlm|masked.?l(anguage|m)|mask_(idx|token)")
_GOES_ON = re.compile(r"(?i)causal|autoregress|generat|next.?token|tri[lu]\b|square_subsequent")
"""Words of files whose models fill in tokens, and of those whose models continue texts."""

_OF_DECODERS = ("decoderinputids", "decoderinput")
"""Arguments that only models of two sides have, where they can be left out, too."""

_OF_TOKENS = re.compile(r"(?i)mask|len|pad|pos|type|seg")
"""Parts of the names of what comes with tokens."""

_FAMILIES = re.compile(r"(?!.*(encod|bidir|classif|bert)).*(gpt|llama|mistral|gemma|qwen|smollm)")
"""Families of decoder-only models, anywhere in a name that says nothing else of its model."""

_EMBEDS = re.compile(r"(?i)vocab|embed|tokens|input_ids")
_TABLE = re.compile(r"(?i)vocab|embedding\w*\(")


def is_language_model(thing: Any, reading: Reading, name: str) -> bool:
    """Say whether `thing` is a class of decoder-only models: by its name, or as probing shows.

    It may be a function that makes them, too.
    """
    if inspect.isfunction(thing):
        return makes_language_models(thing, reading, name)
    if not inspect.isclass(thing) or not issubclass(thing, nn.Module) or thing is nn.Module:
        return False
    if reading.component:
        return reading.component == "language_model"
    own = name or thing.__name__
    if component_named(own) not in ("", "model", "decoder") or not takes_tokens_alone(thing):
        return False
    if is_table(thing):
        return False
    embeds = re.search("(?i)embed", _source(thing)) is not None
    fills = _MASKED.search(squashed(own)) is not None or (embeds and _fills_in(thing))
    named = NAMED.search(squashed(own)) is not None and not fills
    parts = parts_near(thing, {}).values()  # a head may get the body that embeds
    if not named and not any(_EMBEDS.search(_source(one)) for one in (thing, *parts)):
        return False
    named = named or _goes_on(thing)
    more = _may_hold_cache(thing) or hasattr(thing, "generate")
    held = named or (more and not fills and _TABLE.search(_source(thing)) is not None)
    try:
        built, _, call = called(thing, own, reading)
    except Unclear as question:  # what cannot be read is asked about as that
        family = _FAMILIES.match(squashed(own)) is not None
        return held or (family and _raises(question) and _TABLE.search(_source(thing)) is not None)
    model = probe_of(built, PROBE)
    if named or is_causal(model, call):
        return True
    goes_on = means_order(model, thing) or bool(cache_argument(model))  # or by a mask that is given
    goes_on = goes_on or _FAMILIES.match(squashed(own)) is not None or is_continued(thing)
    return goes_on and not fills


_MADE = re.compile(r"\bnn\.(?!init\b|functional\b|Module\b|Parameter\b)(\w+)\(")
"""A call of a class of torch in a source."""


def is_table(thing: type[nn.Module]) -> bool:
    """Say whether a class makes tables alone, as a model of pairs of tokens: it has no layers."""
    tree = ast.parse(textwrap.dedent(_source(thing)))
    made = set(_MADE.findall(ast.unparse(tree)))
    calls = [one.func for one in ast.walk(tree) if isinstance(one, ast.Call)]
    own = any(getattr(one, "id", "")[:1].isupper() for one in calls)
    return made == {"Embedding"} and not own


def _raises(question: Unclear) -> bool:
    """Say whether a call with tokens alone raised: a layer that is called by itself may not."""
    return re.search(r"could not be called as .*: \w+Error: ", question.text) is not None


def takes_tokens_alone(thing: type[nn.Module]) -> bool:
    """Say whether a call takes one input, besides masks, positions, labels and where it begins."""
    parameters = list(inspect.signature(thing.forward).parameters.values())[1:]
    named = [one.name for one in parameters if not _OF_TOKENS.search(one.name)]
    sides = [side_named(one) for one in named if not is_of_loss(thing.forward, one)]
    if any(squashed(one.name) in _OF_DECODERS for one in parameters) or len({*sides} - {""}) > 1:
        return False  # what a target may be left out for is a method of a model of two sides
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        one.name
        for one in parameters
        if one.kind not in loose and one.default is inspect.Parameter.empty and not is_none(one)
        if not is_of_loss(thing.forward, one.name)
    ]
    others = (*AT_START, *MASKS, *POSITIONS)
    return len([one for one in needed if squashed(one) not in others]) <= 1 and bool(parameters)


def has_parts_to_judge(thing: type[nn.Module], name: str) -> bool:
    """Say whether the parts of a decoder-only model are judged by themselves, as it cannot be.

    That is asked only of those that no name says: they may take one token at a time.
    """
    if NAMED.search(squashed(name)) or not _goes_on(thing):
        return False
    try:
        called(thing, name, Reading())
    except Unclear:
        return True
    return False


def _fills_in(thing: type[nn.Module]) -> bool:
    """Say whether the file of a class speaks of tokens that are masked, and of no later ones."""
    try:
        source = inspect.getsource(sys.modules[thing.__module__])
    except (KeyError, OSError, TypeError):
        return False
    return _FILLS.search(source) is not None and _GOES_ON.search(source) is None


def _goes_on(thing: type[nn.Module]) -> bool:
    """Say whether a call has to be given where its tokens begin: it continues one text."""
    parameters = inspect.signature(thing.forward).parameters.values()
    required = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    return any(squashed(one) in AT_START for one in required)


def _may_hold_cache(thing: type[nn.Module]) -> bool:
    """Say whether a call takes one input, and a cache where it continues a text."""
    parameters = list(inspect.signature(thing.forward).parameters.values())[2:]
    return bool(caches_named({one.name: one for one in parameters if one.default is None}))


def _source(thing: type[nn.Module]) -> str:
    return source_of(thing, "vocabulary")  # nothing is known of it: it is tried
