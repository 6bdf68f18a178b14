"""Parts that the constructor of a decoder-only model takes as objects: the classes that make them.

The annotation says the class, and of those that extend it a decoder is the one of such a model;
without one it is the only class near the model that is called as the argument is.
"""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from attentest.targets.adapt.components import component_named, squashed
from attentest.targets.adapt.objects.compared_words import names_file
from attentest.targets.adapt.objects.parts import class_given, nearest_parts, several_parts
from attentest.targets.adapt.reading import Attempt
from attentest.targets.neighbours import file_of, modules_near
from attentest.targets.signatures import constructor_arguments

_EMBEDS = "embed"


def class_for(
    thing: Callable[..., Any], parameter: inspect.Parameter, given: Mapping[str, Any]
) -> type[nn.Module] | None:
    """Return the class that makes the required argument `parameter` of `thing`, None for none."""
    if parameter.default is not inspect.Parameter.empty or not inspect.isclass(thing):
        return None
    if parameter.name in given:
        made = class_given(thing, parameter, given[parameter.name])
        return made if made is not None and issubclass(made, nn.Module) else None
    found = nearest_parts(thing, "", parameter.name) or list(_namesakes(thing, parameter))
    if len(found) != 1:
        return None
    decoders = [one for one in _extending(found[0]) if component_named(one.__name__) == "decoder"]
    return decoders[0] if len(decoders) == 1 else found[0]


def _namesakes(thing: type, parameter: inspect.Parameter) -> Iterator[type[nn.Module]]:
    """Yield the modules of the file whose name is that of an argument: `gpt` gets a `GPT`."""
    if parameter.annotation not in (parameter.empty, nn.Module):
        return
    for name, one in vars(sys.modules[thing.__module__]).items():
        own = inspect.isclass(one) and issubclass(one, nn.Module) and one is not thing
        if own and squashed(name) == squashed(parameter.name):
            yield one


def are_handed(
    thing: Callable[..., Any],
    taken: Mapping[str, inspect.Parameter],
    required: Collection[str],
    top: Any,
) -> bool:
    """Say whether one of the `required` arguments of `thing` is a module: it gets no number.

    It is annotated as one, or several classes near `thing` may make it. A file that the model `top`
    takes gets none either; settings of it may hold the path of any file.
    """
    if thing is top and any(map(names_file, required)):
        return True
    kinds = [taken[own].annotation for own in required]
    handed = any(inspect.isclass(one) and issubclass(one, nn.Module) for one in kinds)
    return handed or (inspect.isclass(thing) and bool(several_parts(thing, "", required)))


def _extending(part: type[nn.Module]) -> Iterator[type[nn.Module]]:
    """Yield the classes of the file of `part` that extend it."""
    for one in vars(sys.modules[part.__module__]).values():
        if inspect.isclass(one) and issubclass(one, part) and one is not part:
            yield one


def _taken(
    thing: Callable[..., Any], given: Mapping[str, Any], within: tuple[Any, ...] = ()
) -> Iterator[tuple[type[nn.Module], inspect.Parameter]]:
    """Yield the classes of the parts of `thing`, and of theirs, with the arguments they are.

    A class that is `within` one of its own kind is left out.
    """
    for parameter in constructor_arguments(thing).values():
        part = class_for(thing, parameter, given)
        if part is not None and part not in within:
            yield part, parameter
            yield from _taken(part, given, (*within, thing))


def parts_near(thing: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, type[nn.Module]]:
    """Return the classes of the parts of `thing`, and of theirs, by their names."""
    return {part.__name__: part for part, _ in _taken(thing, given)}


def parts_assumed(thing: Callable[..., Any], given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the assumptions on the classes of parts that no annotation names."""
    said = []
    for part, parameter in _taken(thing, given):
        file = file_of(part)
        if part is not parameter.annotation and parameter.name not in given and file:
            said.append(
                f"assumed that {parameter.name} is a {part.__name__} of {file.name}, and judged "
                f"with that: --give {parameter.name}=CLASS says another one"
            )
    return tuple(dict.fromkeys(said))


def parts_offered(thing: Callable[..., Any], unknown: Collection[str]) -> str:
    """Return sentences on the classes that may make the arguments that nothing says.

    One that embeds is asked for where there is one class alone, too: it may add no positions.
    """
    said = [several_parts(thing, "", unknown)]
    for own in unknown if inspect.isclass(thing) else ():
        if _EMBEDS in own.lower() and not several_parts(thing, "", [own]):
            groups = modules_near(thing, lambda name: _EMBEDS in name.lower())
            names = list(dict.fromkeys(name for name, _ in next(filter(None, groups), [])))
            if names:
                said.append(f" --give {own}={names[0]} builds it of {_among(names)}.")
    return "".join(said)


def without_padding(expression: str, space: Mapping[str, Any]) -> list[Attempt]:
    """Return the attempt at a model that hides no id of padding, [] where it has no such id.

    It is the argument of a class that the expression calls, with names of `space`.
    """
    made = [space.get(name) for name in re.findall(r"\w+", expression)]
    taken = [own for one in made if inspect.isclass(one) for own in constructor_arguments(one)]
    pads = [one for one in taken if "pad" in one.lower() and f"{one}=" not in expression]
    return [Attempt(given={own: -1}) for own in pads[:1]]


def _among(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
