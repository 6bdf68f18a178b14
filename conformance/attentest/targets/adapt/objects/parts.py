"""Classes near a class that make the parts which its constructor takes as objects."""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Literal, get_origin

from torch import nn

from attentest.targets.adapt.components import component_named, part_named, squashed
from attentest.targets.adapt.fillings import Filling, fixed, head_width, is_required, key_heads
from attentest.targets.adapt.names import SIZES, words
from attentest.targets.adapt.objects.left_out import LINEAR, makes_norms
from attentest.targets.adapt.objects.settings import is_configuration, settings_read_later
from attentest.targets.neighbours import classes_near, is_same_code, modules_near
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Sizes


def parts_of(
    thing: Callable[..., Any], component: str, unknown: Collection[str]
) -> dict[str, type[nn.Module]]:
    """Return the class that makes each of the `unknown` that is a part, the nearest one."""
    made = {own: nearest_parts(thing, component, own) for own in unknown}
    return {own: classes[0] for own, classes in made.items() if len(classes) == 1}


def several_parts(thing: Callable[..., Any], component: str, unknown: Collection[str]) -> str:
    """Return a sentence on the `unknown` that several classes may make, "" for none."""
    made = {own: nearest_parts(thing, component, own) for own in unknown}
    names = {
        own: list(dict.fromkeys(one.__name__ for one in classes)) for own, classes in made.items()
    }
    said = [
        f" Several classes may make {own}: {', '.join(several)}; "
        f"--give {own}={several[0]} says which one."
        for own, several in names.items()
        if len(several) > 1
    ]
    return "".join(said)


def class_given(thing: Callable[..., Any], parameter: inspect.Parameter, value: Any) -> type | None:
    """Return the class near `thing` that is called `value`, of settings or of a part.

    None where there is not one alone, and where the argument `parameter` may be text or neither.
    Where no value is given, it is the class of optional settings that are read later.
    """
    own = parameter.name
    if value is None:
        return settings_read_later(thing, parameter) if inspect.isclass(thing) else None
    is_object = is_required(parameter) and parameter.annotation not in (str, "str")
    named = is_configuration(own) or part_named(own) or parameter.annotation is nn.Module
    if not (isinstance(value, str) and is_object and named):
        return None
    for group in classes_near(thing, value.__eq__):
        if group:
            return group[0][1] if len(group) == 1 else None
    return None


def values_given(
    thing: Callable[..., Any], component: str, unknown: Collection[str]
) -> dict[str, Filling]:
    """Return what each of the `unknown` arguments gets: a class of norms or of a part, or a map.

    An argument for a class is called after its part, `attention_cls`. Where several classes may be
    meant, none is.
    """
    arguments = constructor_arguments(thing)
    found: dict[str, Filling] = {}
    for own in unknown:
        stem = _OF_CLASS.match(own)
        if makes_norms(arguments[own]):
            found[own] = fixed(nn.LayerNorm)
        elif stem and arguments[own].annotation not in (str, "str"):
            made = [one for one in _near(thing, component, stem[1]) if not _is_abstract(one)]
            found |= {own: fixed(made[0])} if len(made) == 1 else {}
    return found | _linear_maps({own: arguments[own] for own in {*unknown} - {*found}})


def _linear_maps(arguments: Mapping[str, inspect.Parameter]) -> dict[str, Filling]:
    """Return the maps of those `arguments` that are all of attention, or of a network.

    Their annotation says that they are modules; none for a few of them.
    """
    own = {squashed(name): name for name, one in arguments.items() if _is_module(one.annotation)}
    for needed in (_OF_ATTENTION, _OF_A_GATED_NETWORK, _OF_A_NETWORK):
        found = {own[name]: one for names, one in needed.items() for name in names if name in own}
        if len(found) == len(needed):
            return found
    return {}


def _is_module(annotation: Any) -> bool:
    """Say whether an annotation, or its text, is the class of any module, or of linear maps."""
    is_text = isinstance(annotation, str)
    return annotation in (nn.Module, nn.Linear) or (is_text and annotation in _MODULES)


_MODULES = ("nn.Module", "Module", "nn.Linear", "Linear", "torch.nn.Module", "torch.nn.Linear")


def _keys_width(sizes: Sizes) -> int:
    return key_heads(sizes) * head_width(sizes)


def _model_width(sizes: Sizes) -> int:
    return sizes.d_model


def _inner_width(sizes: Sizes) -> int:
    return sizes.d_ff


_CODE: Mapping[Callable[[Sizes], int], str] = {
    _model_width: "sizes.d_model",
    _inner_width: "sizes.d_ff",
    _keys_width: "(sizes.kv_heads or sizes.heads) * head_width(sizes)",
}
"""The expression for each of the widths."""


def _linear(
    given: Callable[[Sizes], int],
    made: Callable[[Sizes], int],
    *settled: str,
    bias: bool = True,
) -> Filling:
    """Return the linear map between two widths, with a bias where Vaswani et al. (2017) have it."""
    columns = f"{_CODE[given]}, {_CODE[made]}{', bias=False' * (not bias)}"
    return Filling(
        f"{LINEAR}({columns.replace('sizes.', '')})",
        lambda sizes: nn.Linear(given(sizes), made(sizes), bias),
        frozenset(settled),
        f"{LINEAR}({columns})",
    )


_SQUARE = _linear(_model_width, _model_width, "d_model", bias=False)
_NARROWER = _linear(_model_width, _keys_width, "d_model", "kv_heads", bias=False)
_UP = _linear(_model_width, _inner_width, "d_model", "d_ff")
_DOWN = _linear(_inner_width, _model_width, "d_model", "d_ff")

_OF_ATTENTION = {
    words("qproj queryproj wq qlinear querylinear"): _SQUARE,
    words("kproj keyproj wk klinear keylinear"): _NARROWER,
    words("vproj valueproj wv vlinear valuelinear"): _NARROWER,
    words("outputproj outproj oproj wo outlinear outputlinear"): _SQUARE,
}
_OF_A_GATED_NETWORK = {
    words("gateproj w1"): _UP,
    words("downproj w2"): _DOWN,
    words("upproj w3"): _UP,
}
_OF_A_NETWORK = {
    words("fc1 linear1 lin1 w1 upproj inproj gateproj"): _UP,
    words("fc2 linear2 lin2 w2 downproj outproj"): _DOWN,
}
"""The linear maps of attention and of networks, by the names of arguments that carry them."""


_OF_CLASS = re.compile(r"(\w+?)_?(?:cls|class|type|factory|klass)$", re.IGNORECASE)
"""A name of an argument that gets a class, with the name of the part that it makes."""


def nearest_parts(thing: Callable[..., Any], component: str, own: str) -> list[type[nn.Module]]:
    """Return the different classes that may make the argument `own`: that of its annotation alone.

    Where it has none, they are those of the nearest group. A layer attends with several heads.
    """
    parameter = constructor_arguments(thing).get(own)
    if parameter is not None and _is_written(parameter.annotation):
        return list(_written(parameter.annotation))
    if parameter is not None and _is_plain(parameter.annotation):
        return []
    return _near(thing, component, own)


def _near(thing: Callable[..., Any], component: str, own: str) -> list[type[nn.Module]]:
    """Return the different classes of the nearest group whose names are that of the part `own`."""
    side = component.removesuffix("_layer")
    side = side if side in ("encoder", "decoder") else ""
    wanted = part_named(own, side)
    wanted = "multi_head_attention" if side and wanted == "attention" else wanted
    if not wanted:
        return list(_called(thing, own))
    groups = modules_near(thing, partial(_is_component, wanted))
    made = [one for _, one in next((group for group in groups if group), [])]
    if wanted == "multi_head_attention":  # attention by itself is a part of that with heads
        made = [one for one in made if _takes_heads(one)] or made
        return list(
            _different(one for one in made if _takes_heads(one) or not takes_itself(one, own))
        )
    return list(_different(one for one in made if not takes_itself(one, own)))


def _called(thing: Callable[..., Any], own: str) -> Iterator[type[nn.Module]]:
    """Yield the class in the file of `thing` that is called as its argument is: bert, and BERT."""
    home = sys.modules.get(thing.__module__)
    for name, one in vars(home).items() if home is not None else ():
        is_called = inspect.isclass(one) and squashed(name) == squashed(own)
        if is_called and issubclass(one, nn.Module) and not _is_abstract(one):
            yield one


def _takes_heads(made: type[nn.Module]) -> bool:
    return any(squashed(one) in SIZES["heads"] for one in constructor_arguments(made))


def takes_itself(made: type[nn.Module], own: str) -> bool:
    """Say whether a class has an argument `own`: one of that name is no instance of the class.

    In `FeedForward(d_model, ffn)` it is a width, and in classes that hold one it is that too.
    """
    return own in constructor_arguments(made)


def _is_plain(annotation: Any) -> bool:
    """Say whether an annotation is that of a text or a number, or lists the values there are."""
    plain = (str, int, float, bool)
    named = [one.__name__ for one in plain]
    return annotation in plain or annotation in named or get_origin(annotation) is Literal


def _is_written(annotation: Any) -> bool:
    """Say whether an annotation is the class of a part, and none that torch has for any part."""
    is_module = inspect.isclass(annotation) and issubclass(annotation, nn.Module)
    return is_module and annotation.__module__.partition(".")[0] != "torch"


def _written(annotation: type[nn.Module]) -> Iterator[type[nn.Module]]:
    """Yield the class of an annotation, those of its file made of it where it is abstract."""
    if not _is_abstract(annotation):
        yield annotation
        return
    for one in vars(sys.modules[annotation.__module__]).values():
        made = inspect.isclass(one) and issubclass(one, annotation)
        if made and not _is_abstract(one):
            yield one


def _is_abstract(one: type[nn.Module]) -> bool:
    """Say whether a class has no call of its own, as some have that are no abstract base class."""
    undefined = one.forward is nn.Module.forward
    return inspect.isabstract(one) or undefined or hasattr(one.forward, "__isabstractmethod__")


def _different(classes: Iterator[type[nn.Module]]) -> Iterator[type[nn.Module]]:
    """Yield the classes that are no copies of an earlier one."""
    found: list[type[nn.Module]] = []
    for one in classes:
        if one not in found and not any(is_same_code(one, other) for other in found):
            found.append(one)
            yield one


def _is_component(wanted: str, name: str) -> bool:
    return component_named(name, heads=wanted == "multi_head_attention") == wanted
