"""Values of one argument of a constructor, by its name: sizes, ratios and usual settings."""

import inspect
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch.nn.functional import relu

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.image_names import (
    PAIR,
    PAIRS,
    is_of_images,
    value_of_images,
)
from attentest.targets.adapt.losses.names import LOSS_SIZES
from attentest.targets.adapt.names import (
    ACTIVATION,
    CLASSES,
    CONFIGURATION,
    EPSILON,
    HEAD_WIDTH,
    INNER,
    ITEMS,
    KEY_HEADS,
    LAYER_INDEX,
    LETTERS_OF_BERT,
    OF_EXPERTS,
    ON,
    RATIO,
    REQUIRED,
    SHARED_INNER,
    SIZES,
    TEMPERATURE,
    WIDTH,
    WINDOW,
    words,
)
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.size_names import LONE_WIDTHS, is_input_width, size_by_words
from attentest.targets.signatures import is_accelerator
from attentest_spec import Sizes, Unsupported
from attentest_spec.components import inside


@dataclass(frozen=True)
class Filling:
    """The value of one argument: in words, as a function of the sizes, with the sizes it settles.

    `code` is the expression of `sizes` for it, "" for a value that is fixed.
    """

    words: str
    value: Callable[[Sizes], Any]
    settles: frozenset[str] = frozenset()
    code: str = ""


_WITH_SCORES = ("attention", "encoder_layer", "decoder_layer")
"""Attention, and the layers that may be built with an attention by itself."""

NORMS = ("layer_norm", "rms_norm")
_OF_A_CONTEXT = words("contextdim dimcontext dcontext crossdim dcross kvdim memorydim dimmemory")
"""Names of the width of a second sequence, which a norm by itself does not have."""

STACKS = ("encoder", "decoder", "model")
"""Components that have several layers."""

_LAYERS_OF_A_NETWORK = 2
"""The number of layers of a feed-forward network that is built for any: that of the formula."""

SOME_CLASSES = 3
"""The number of outputs of the head of a classifier: no size of the spec."""

RMS_EPSILON = 1e-6
"""The epsilon of an RMS norm whose own default, None, is a number for each precision."""


def filling_of(
    own: str,
    parameter: inspect.Parameter,
    component: str,
    reading: Reading,
    arguments: Collection[str],
) -> Filling | None:
    """Return what the argument `own` gets; None where nothing says it."""
    name = squashed(own)
    size = next((size for size, one in reading.arguments.items() if one == own), "")
    if own in reading.given:
        return fixed(reading.given[own])
    if size in SIZES or size == "window":
        return Filling(size, attrgetter(size), frozenset([size]), f"sizes.{size}")
    if component == "encoder" and name in ITEMS and is_required(parameter):
        tokens = "source_vocabulary"
        return Filling(tokens, attrgetter(tokens), frozenset([tokens]), f"sizes.{tokens}")
    if component == "encoder" and name in PAIRS:
        return fixed(PAIR)
    if component == "encoder" and is_of_images(name, [squashed(one) for one in arguments]):
        given = not is_required(parameter) and parameter.default is not None
        return None if given else fixed(value_of_images(name, parameter, arguments))
    if component in NORMS and name in SIZES["heads"] and is_required(parameter):
        return ONE_HEAD
    if name in TEMPERATURE and component in _WITH_SCORES and is_required(parameter):
        return Filling("sqrt(d_model/heads)", root_of_width, code="head_width(sizes) ** 0.5")
    if component == "multi_head_attention" and is_input_width(name, [*map(squashed, arguments)]):
        return Filling("d_model", attrgetter("d_model"), frozenset(["d_model"]), "sizes.d_model")
    if (
        name in HEAD_WIDTH
        or is_head_width(name, parameter.default, arguments)
        or (component == "attention" and _is_lone_width(name, arguments))
    ):
        return Filling("d_model/heads", head_width, code=HEAD_WIDTH_CODE)
    if name in KEY_HEADS and component == "multi_head_attention":
        return Filling("kv_heads", key_heads, frozenset(["kv_heads"]), _KEY_HEADS)
    if name in WINDOW and component == "multi_head_attention" and _is_window(parameter):
        return Filling("window", attrgetter("window"), frozenset(["window"]), "sizes.window")
    if name in SHARED_INNER and component == "mixture_of_experts":
        return Filling("shared_inner", shared_inner, frozenset(["shared_inner"]), _SHARED_INNER)
    size = _size(name, component, [squashed(one) for one in arguments])
    if component in NORMS and name in _OF_A_CONTEXT and parameter.default is None:
        return None  # the width of another sequence, which a norm beside this one has
    if size == name == "experts" and parameter.default is None:
        return None  # modules, and no number of them
    if size == "layers" and component == "feed_forward":
        return fixed(_LAYERS_OF_A_NETWORK)
    if (
        size
        and not own.startswith("_")
        and (name in _NO_AXES or size == "target_pad" or not is_no_number(parameter.default))
    ):
        return Filling(size, attrgetter(size), frozenset([size]), f"sizes.{size}")
    if name in RATIO:
        return Filling("d_ff/d_model", _ratio, frozenset(["d_ff"]), _RATIO)
    if name in CLASSES and component == "encoder" and is_required(parameter):
        return fixed(SOME_CLASSES)
    if name in LAYER_INDEX and parameter.default is None:
        return fixed(REQUIRED[name])
    if name in REQUIRED and (is_required(parameter) or is_accelerator(name, parameter.default)):
        return fixed(REQUIRED[name])
    if component == "rms_norm" and name in EPSILON and parameter.default is None:
        return fixed(RMS_EPSILON)
    if name in ACTIVATION and is_required(parameter):
        return fixed("relu" if parameter.annotation is str else relu)
    if name in ON:
        return fixed(ON[name])
    if name.endswith("seed") and is_required(parameter):
        return fixed(0)
    if _is_rate(name) and is_required(parameter):
        return Filling("dropout", attrgetter("dropout"), frozenset(["dropout"]), "sizes.dropout")
    if is_required(parameter) and is_switch(parameter.annotation):
        return fixed(False)
    return fixed(None) if is_required(parameter) and may_be_none(parameter.annotation) else None


def is_head_width(name: str, default: Any, arguments: Collection[str]) -> bool:
    """Say whether an argument such as `k_dim=64` is the width of a head, and not that of the keys.

    It has a number by default, and others say the width of the model and the number of heads. So
    is a required letter next to these, as in `(d_model, q, v, h)`. An
    `h_size` next to the width of the model is one where no other says the number of heads.
    """
    held = [squashed(one) for one in arguments]
    if name == "hsize" and not {*held} & {*SIZES["heads"]}:
        return any(one in WIDTH and one not in LONE_WIDTHS for one in held)
    is_letter = name in ("q", "k", "v") and default is inspect.Parameter.empty
    return (
        (
            is_letter
            or (name in ("kdim", "vdim", "qdim", "keydim", "valuedim") and type(default) is int)
        )
        and any(one in SIZES["heads"] for one in held)
        and any(one in WIDTH and one not in _OF_KEYS for one in held)
    )


def _is_lone_width(name: str, arguments: Collection[str]) -> bool:
    """Say whether an argument is a width, and no other says the number of heads or their width.

    Attention without projections cannot know how wide the model is: it is built with the width of
    the queries that it gets, whatever that is called.
    """
    held = {squashed(one) for one in arguments}
    return name in WIDTH and not held & {*SIZES["heads"], *HEAD_WIDTH}


_OF_KEYS = ("kdim", "vdim", "querydim", "keysize", "querysize", "valuesize")

ONE_HEAD = Filling("1", lambda sizes: 1)
"""The number of heads of a norm with weights for each, which is judged with one of them."""

WIDER_INNER = Filling(
    "3/2 d_ff",
    lambda sizes: (3 * sizes.d_ff + 1) // 2,
    frozenset(["d_ff"]),
    "(3 * sizes.d_ff + 1) // 2",
)


HEAD_WIDTH_CODE = "head_width(sizes)"


def head_width(sizes: Sizes) -> int:
    """Return the width of a head; Unsupported where there is no whole one."""
    if sizes.heads and sizes.d_model % sizes.heads:
        raise Unsupported(
            f"it is built with the width of a head, and {sizes.d_model} features are no multiple "
            f"of {sizes.heads}"
        )
    return sizes.d_model // max(1, sizes.heads)


def root_of_width(sizes: Sizes) -> float:
    """Return what the scores of attention are divided by."""
    return math.sqrt(head_width(sizes))


_KEY_HEADS = "sizes.kv_heads or sizes.heads"


def key_heads(sizes: Sizes) -> int:
    """Return the number of heads of keys and values."""
    return sizes.kv_heads or sizes.heads


_SHARED_INNER = "sizes.shared_inner or sizes.d_ff"


def shared_inner(sizes: Sizes) -> int:
    """Return the inner width of a shared expert."""
    return sizes.shared_inner or sizes.d_ff


def fixed(value: Any) -> Filling:
    """Return the filling of an argument that gets `value` at all sizes."""
    words = value.__name__ if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
    return Filling(words, lambda sizes: value)


_RATIO = "(sizes.d_ff + 0.5) / sizes.d_model"


WIDER_RATIO = Filling(
    "3/2 d_ff/d_model",
    lambda sizes: (1.5 * sizes.d_ff + 0.5) / sizes.d_model,
    frozenset(["d_ff"]),
    "(1.5 * sizes.d_ff + 0.5) / sizes.d_model",
)


def _ratio(sizes: Sizes) -> float:
    """Return the ratio that int(width * ratio) makes the inner width of."""
    return (sizes.d_ff + 0.5) / sizes.d_model


_OTHER_WIDTHS = {one for one in SIZES["d_model"] if len(one) > 1}


def _size(name: str, component: str, held: Collection[str]) -> str:
    """Return the size that an argument of this name is, "" for none.

    A word such as "hidden_dim" is the inner width beside a name for the model's, and that else:
    also beside a name that can only be the inner width.
    """
    if component == "generator" and name in ("outputdim", "outputsize", "outfeatures"):
        return "target_vocabulary"
    if component == "generator" and name in SIZES["source_vocabulary"]:
        return "target_vocabulary"
    if component == "positional_encoding" and name in SIZES["source_vocabulary"]:
        return "max_length"
    if component in _OF_ROWS and name in _NUMBERS_OF_ROWS:
        return "max_length"
    if component == "embedding" and name in _ROWS and set(held) & set(_COLUMNS):
        return "source_vocabulary"
    if component == "loss":
        return LOSS_SIZES.get(name, "")
    if name in LETTERS_OF_BERT and {"h", "a"} <= set(held) and not set(held) & _OTHER_WIDTHS:
        return LETTERS_OF_BERT[name]
    if name in _SIDES and {"querydim", "keydim"} <= set(held):
        return "d_model"  # of each input, and no width of a head
    if name == "nx" and component not in STACKS:  # the width of GPT-2, and not "N times"
        return "d_model"
    if name == "nstate" and component == "feed_forward" and set(held) & set(CONFIGURATION):
        return "d_ff"  # the configuration has the width of the model
    if name in _ONE_LAYER and any(one in SIZES["layers"] and one not in _ONE_LAYER for one in held):
        return ""  # a layer, beside the number of them
    if name in KEY_HEADS:
        return "heads"  # of layers: as many as there are heads of queries
    other = () if component == "mixture_of_experts" else OF_EXPERTS
    found = [size for size, names in SIZES.items() if name in names and size not in other]
    if found == ["d_ff"] and _is_of_heads(name, component, held):
        return "d_model"
    if len(found) < 2:
        return found[0] if found else ""
    if "feed_forward" not in inside(component) or any(
        one in INNER and one not in WIDTH for one in held
    ):
        return "d_model"
    stronger = [one for one in held if one in WIDTH and one not in INNER]
    return "d_ff" if stronger else "d_model"


_SIDES = ("querydim", "keydim", "valuedim")
"""Names of the widths of the inputs of attention, one beside another."""

_OF_ROWS = ("attention", "multi_head_attention", "encoder_layer", "decoder_layer")
_NUMBERS_OF_ROWS = words("numtokens numtoken ntokens ntoken")
"""Names of a length where there is no vocabulary: 1 would make a mask that hides nothing."""

_ROWS, _COLUMNS = words("nembed nembd nembeds"), words("dembed dembd embeddim embeddingdim dmodel")
"""Names of a number of rows of an embedding, beside those of its width."""

_OF_NETWORKS = re.compile(r"ff|mlp|feed|intermediate")
"""Words that say a feed-forward network."""


def _is_of_heads(name: str, component: str, held: Collection[str]) -> bool:
    """Say whether an inner width such as "d_hidden" is that of all heads of attention.

    It is where no feed-forward network is inside, or where another argument has the width of that.
    """
    if "feed_forward" not in inside(component):
        return component == "multi_head_attention"
    others = [one for one in held if one != name and _OF_NETWORKS.search(one)]
    sized = any(one in INNER or size_by_words(one, component) == "d_ff" for one in others)
    attends = "multi_head_attention" in inside(component)
    return attends and "hid" in name and not _OF_NETWORKS.search(name) and sized


_ONE_LAYER = ("encoderlayer", "decoderlayer")
"""Names of a number of layers, or of one layer."""


def _is_window(parameter: inspect.Parameter) -> bool:
    """Say whether an argument for a window has one: 0, -1 and None by default deny it."""
    return is_required(parameter) or (type(parameter.default) is int and parameter.default > 1)


_NO_AXES = ("ndim",)
"""Names of a width whose default may be negative, as that of an axis is: it has to be given."""


def is_required(parameter: inspect.Parameter) -> bool:
    """Say whether an argument has no default."""
    return parameter.default is inspect.Parameter.empty


_NO_RATE = ("layer", "path", "token", "last", "head", "module", "fn", "class")
"""Words of arguments that drop something else than entries, or that say how."""


_RATES = words("rate stochasticpathrate stochasticdepth stochasticdepthrate pathrate")


def _is_rate(name: str) -> bool:
    """Say whether an argument of this name is the rate of some dropout: "resid_drop_p"."""
    if name in _RATES:
        return True
    return "drop" in name and not any(word in name for word in _NO_RATE)


def is_switch(annotation: Any) -> bool:
    """Say whether an annotation, or its text, is that of a switch, which is off."""
    return annotation is bool or annotation == "bool"


def may_be_none(annotation: Any) -> bool:
    """Say whether an annotation, or its text, allows None: nothing is needed there."""
    if isinstance(annotation, str):
        return annotation.startswith(("Optional[", "None |")) or annotation.endswith("| None")
    return type(None) in typing.get_args(annotation)


def is_no_number(default: Any) -> bool:
    """Say whether a default shows that an argument is no size, such as `norm="pre"` or `dim=-1`."""
    if default is inspect.Parameter.empty or default is None:
        return False
    return isinstance(default, bool) or not isinstance(default, int | float) or default < 0


NEEDED = {
    "heads": "multi_head_attention",
    "d_ff": "feed_forward",
    "source_vocabulary": "embedding",
    "target_vocabulary": "generator",
}
"""The sizes that a component needs besides its width, by the part that has them."""


def sizes_known(read: Iterable[Filling | None]) -> frozenset[str]:
    """Return the sizes that the arguments which were `read` say."""
    return frozenset[str]().union(*(one.settles for one in read if one is not None))
