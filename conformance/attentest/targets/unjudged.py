"""Code of a file that is no component, and looks like a mask or a model: it is named."""

import ast
import inspect
import re
import textwrap
from typing import Any

from torch import nn

from attentest.targets.adapt.components import component_named, squashed, words_of

_MODELS = {
    *("transformer", "transformers", "seq", "model", "translator", "translation", "nmt", "gpt"),
    *("bert", "bart", "llama", "decoder", "encoder", "lm", "vit"),
}
_STACKED = {"encoder", "decoder", "encoder_layer", "decoder_layer"}
"""The parts of a model, as the names of their classes say them."""
_HIDING = re.compile(r"(tril|triu|masked_fill)_?")
_OF_IMAGES = re.compile(
    r"(image|img)(size|height|width|h|w)?|(num|n)?patch(es)?(size|height|width|h|w)?|conv2d"
)
_MASKS = re.compile(r"\w*(mask|causal|subsequent|tril|triu)\w*", re.IGNORECASE)


def looks_like(name: str, thing: Any) -> str:
    """Return "mask", "model" or "head" where `thing` looks like one, "" for none of them.

    A class of modules with masks in its code, with layers or stacks of them, or with a telling
    name, may be a model, or one head of attention where its name ends so; a function with arguments
    that makes a triangle or fills by a mask may be a mask.
    """
    words, used = {*words_of(name), squashed(name)}, _names_in(thing)
    if inspect.isclass(thing):
        called = issubclass(thing, nn.Module) and "forward" in vars(thing)
        if called and words_of(name)[-1:] == ["head"] and {"key", "query", "value"} <= used:
            return "head"
        parts = {component_named(one) for one in used if one[:1].isupper() and one != name}
        telling = words & _MODELS or parts & _STACKED or any(map(_MASKS.fullmatch, used))
        return "model" if called and telling else ""
    named = words & {"mask", "masks", "masked"} or any(map(_HIDING.fullmatch, used))
    return "mask" if named and inspect.signature(thing).parameters else ""


def embeds_images(component: str, thing: Any) -> bool:
    """Say whether the class `thing`, an embedding or an encoding by its name, is one of patches.

    It is built with the size of images or of their patches, or with how many these are, or with a
    convolution over them.
    """
    if component not in ("embedding", "positional_encoding") or not inspect.isclass(thing):
        return False
    return any(_OF_IMAGES.fullmatch(squashed(one)) for one in _names_in(thing) | _keys_in(thing))


def is_head(thing: Any) -> bool:
    """Say whether a class, a model by its name, is a head: one input, and maps of it alone.

    Its code names no table, no layers, and no other model, as that of a "MaskedLanguageModel" over
    the states of a BERT does not.
    """
    if not isinstance(thing, type) or not issubclass(thing, nn.Module):
        return False
    names = _names_in(thing)
    taken = list(inspect.signature(thing.forward).parameters.values())[1:]
    required = [one for one in taken if one.default is inspect.Parameter.empty]
    rest = (one.lower() for one in names - {thing.__name__})
    return "Linear" in names and len(required) == 1 and not any(map(_INSIDE.search, rest))


_INSIDE = re.compile(
    r"embed|encod|decod|transformer|layers|block|attention|bert|gpt|model|lstm|rnn"
)
"""Words of names in the code of a class that holds more than a head does."""


def is_recurrent(thing: Any) -> bool:
    """Say whether the constructor of the class `thing` makes a recurrent network of torch.

    One that makes attention or layers of torch as well is none.
    """
    if not isinstance(thing, type) or not issubclass(thing, nn.Module):
        return False
    names = _names_in(vars(thing).get("__init__"))
    others = (one.lower() for one in _names_in(thing) - {thing.__name__})
    return not names.isdisjoint(_RECURRENT) and not any(map(_ATTENDING.search, others))


_RECURRENT = {"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"}
_ATTENDING = re.compile(
    r"multihead|transformer|self_?att|scaled_?dot|(encoder|decoder)_?(layer|block)|attention_?block"
)
"""Words of names in the code of a class that attends, and is recurrent besides."""


def names_masks(thing: Any) -> bool:
    """Say whether a name in the code of `thing` is that of a mask, or makes one."""
    return any(_MASKS.fullmatch(one) or "pad" in one.lower() for one in _names_in(thing))


def names_padding(thing: Any) -> bool:
    """Say whether a name in the code of `thing` is one of padding."""
    return any("pad" in one.lower() for one in _names_in(thing))


def names_alibi(thing: Any) -> bool:
    """Say whether a name in the code of `thing` is one of attention with linear biases."""
    return any("alibi" in one.lower() for one in _names_in(thing))


def _names_in(thing: Any) -> set[str]:
    """Return the names, attributes and arguments in the code of `thing`, none where it has none."""
    nodes = _nodes(thing)
    names = {one.id for one in nodes if isinstance(one, ast.Name)}
    names |= {one.arg or "" for one in nodes if isinstance(one, ast.arg | ast.keyword)}
    return names | {one.attr for one in nodes if isinstance(one, ast.Attribute)}


def _keys_in(thing: Any) -> set[str]:
    """Return the strings in the code of `thing`: the keys of settings are among them."""
    values = (one.value for one in _nodes(thing) if isinstance(one, ast.Constant))
    return {one for one in values if isinstance(one, str)}


def _nodes(thing: Any) -> list[ast.AST]:
    """Return all nodes of the code of `thing`, none where it has none."""
    try:
        return list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(thing)))))
    except (OSError, TypeError, SyntaxError):
        return []
