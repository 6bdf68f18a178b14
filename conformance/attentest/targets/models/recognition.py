"""Recognises components in a file: by names first, by what can be built and called else."""

import dis
import inspect
import re
import sys
from collections.abc import Collection, Mapping
from functools import cached_property
from types import CodeType, ModuleType
from typing import Any

from torch import nn

from attentest.targets.adapt.arguments import makes_table
from attentest.targets.adapt.components import (
    component_guessed,
    component_named,
    component_suggested,
    squashed,
    takes_two_sides,
    words_of,
)
from attentest.targets.adapt.encoders.default_sizes import Switched
from attentest.targets.adapt.encoders.inputs.arguments import of_loss
from attentest.targets.adapt.encoders.mixing import Mixed
from attentest.targets.adapt.encoders.rows.reading import OfImages
from attentest.targets.adapt.encoders.seen import Uncalled
from attentest.targets.adapt.encoders.sequences import as_layer
from attentest.targets.adapt.encoders.tokens import token_encoder
from attentest.targets.adapt.makers.several import makes_several
from attentest.targets.adapt.names import ROLES
from attentest.targets.adapt.parameters.building import DISTINCT, RATIOS
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.training.in_files import component_in_file, decodes_text
from attentest.targets.constants.copies import is_copy_of
from attentest.targets.definitions import definitions
from attentest.targets.language_models.construction import building as language_models
from attentest.targets.language_models.construction.makers import makes_modules
from attentest.targets.language_models.recognition import (
    has_parts_to_judge,
    is_language_model,
    is_table,
)
from attentest.targets.libraries import library_of_class
from attentest.targets.models.arguments import FEATURES
from attentest.targets.models.building import building
from attentest.targets.models.inputs.packed import input_names
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.searches.stand_in import names
from attentest.targets.signatures import without_forward
from attentest.targets.unjudged import embeds_images, is_head, is_recurrent, looks_like

_SURE = ("decoderinputids", "decoderinput", "tgtids", "trgids", "targetids")
"""Arguments that only a whole model has."""
_OF_FUNCTIONS = ("attention", "layer_norm", "rms_norm", "feed_forward", "loss")
"""The components that a function is by the last words of its name, where numbers confirm it."""
_VERBS = names(
    "add apply bench benchmark build calculate check clear compare compute convert copy create "
    "disable draw enable eval evaluate export extract get has init inject is load log make mask "
    "measure patch plot print profile read record register replace reset run save set show step "
    "test time total train update use verify visualise visualize with"
)
"""Words that the name of a function begins with that does something with a component."""
_MAKES = re.compile(r"^(make|build|create|get|init|new)(the|a)?(?P<what>.+)$")


def makes_models(name: str, thing: Any) -> bool:
    """Say whether `thing` is a function that makes whole models: by its name, or what it takes.

    That is a vocabulary of each side; it returns a module then, and does nothing else.
    """
    if not inspect.isfunction(thing):
        return False
    found = _MAKES.match(squashed(name))
    if found is not None and component_named(found["what"]) == "model":
        return True
    if component_named(name) not in ("", "model") or not makes_modules(name, thing):
        return False
    own = [squashed(one) for one in inspect.signature(thing).parameters]
    sizes = {next(sizes_named(one, own, ""), "") for one in own}
    return sizes.issuperset(("source_vocabulary", "target_vocabulary", "d_model", "heads"))


def is_whole(name: str, thing: Any) -> bool:
    """Say whether the class `thing` is a whole model: by its name, or by what it is built with.

    A class without a telling name is one where it takes two inputs, and is built with two
    vocabularies, names its inputs source and target, or has parts by the names of an encoder and
    of a decoder.
    """
    if not inspect.isclass(thing) or not issubclass(thing, nn.Module):
        return False
    said = component_named(name) or component_suggested(name)
    parameters = inspect.signature(thing.forward).parameters
    required = [one for one in parameters.values() if one.default is inspect.Parameter.empty]
    generates = said == "generator" and len(required) > 2  # a generator gets the states alone
    if said == "model" or (said and not generates and not _has_two_vocabularies(thing)):
        return said == "model"
    own = input_names(thing.forward)
    sides = {*ROLES["source"], *FEATURES}, {*ROLES["target"]}
    sided = all(own & names for names in sides)
    if len(required) < 3 and not sided:  # the object itself is one of them
        return False
    try:
        built = building(thing, name, Reading())
        # Of a stack that takes vectors, the vocabularies are those of tables put around it. Tables
        # that are tied have one.
        two = "target_vocabulary" in built.known or _has_two_vocabularies(thing)
        return sided or (
            "Surrounded" not in built.space and (two or _is_stacked(thing, built.known))
        )
    except Unclear:
        return sided and not own.isdisjoint(_SURE)  # what cannot be built is asked about as that


def _has_two_vocabularies(thing: type[nn.Module]) -> bool:
    """Say whether a class takes a vocabulary of each side, and sizes of layers, by their names."""
    own = [squashed(one) for one in inspect.signature(thing).parameters]
    sizes = {next(sizes_named(one, own, ""), "") or size_by_words(one, "") for one in own}
    return sizes.issuperset(("source_vocabulary", "target_vocabulary", "d_model", "heads"))


def _is_stacked(thing: type[nn.Module], known: Collection[str]) -> bool:
    """Say whether a class of sizes that are `known` makes an encoder and a decoder, by names."""
    if not {"d_model", "heads", "layers"} <= set(known):
        return False
    try:
        source = inspect.getsource(thing)
    except (OSError, TypeError):
        return False
    return all(re.search(rf"self\.{one}\w*\s*=", source) for one in ("enc", "dec"))


class Recognition:
    """The components of one file."""

    def __init__(self, module: ModuleType) -> None:
        """Look at `module`."""
        self.module = module  # what is built from it may set globals: lists of them are iterated

    def facts(self, name: str, thing: Any) -> dict[str, Any]:
        """Return what `thing` is: the fields of a :class:`~..members.Member` besides its name."""
        if without_forward(thing) and self._is_extended(thing):
            return {"component": ""}  # the classes that extend it are judged
        inside = self._inside(thing)
        if not inside and inspect.isclass(thing) and not _is_class(thing) and _is_called(thing):
            inside = self._caller(thing, "")  # an object that a module holds, which is no module
        if is_recurrent(thing):
            return {"component": "", "inside": inside}
        if name in self._language_models:
            return {"component": "language_model", "inside": inside}
        said = component_named(name) or component_suggested(name)
        if said == "model" and _is_class(thing) and (is_head(thing) or is_table(thing)):
            return {"component": "", "inside": inside}
        if makes_models(name, thing):
            named = inspect.unwrap(thing).__code__.co_names
            held = {*self._language_models, *(() if name in self._models else self._models)}
            is_judged = any(one in named for one in held)
            return {"component": "" if is_judged else "model"}  # its class is judged by itself
        if makes_several(name, thing, Reading()):
            return {"component": "target_mask"}
        if name in self._encoders:
            # With an inner width of its own, the body of a model of one text is a part of that.
            is_body = inside in self._language_models and _has_own_width(self._encoders[name][0])
            return {"component": "" if is_body else "encoder", "inside": inside}
        if is_whole(name, thing):
            # It has one text, and no side, or is made by a function, alone or as a part.
            bodies = {*self._language_models, *self._encoders, *self._makers.values()}
            made = self._makers.get(name, inside)
            return {"component": "", "inside": made} if made in bodies else {"component": "model"}
        component = as_layer(component_named(name), thing, name)
        if decodes_text(component or component_guessed(name), thing):
            return {"component": ""}
        if embeds_images(component or component_guessed(name), thing):
            return {"component": "", "inside": inside, "looks": "image"}
        if component and inspect.isfunction(thing):
            inside = inside or self._caller(thing, component)
        called = inspect.isfunction(thing) or _is_called(thing) or library_of_class(thing)
        if component and called:
            made = self._makers.get(name, "")
            return {"component": "" if made else component, "inside": made or inside}
        likely = as_layer(component_guessed(name), thing, name) if _is_called(thing) else ""
        likely = likely or component_in_file(name, thing) or self._table(name, thing)
        if not likely and (hinted := self._hinted(name, thing)):
            sure = hinted == "attention" and _takes_its_inputs(thing)
            return {"component": hinted, "guessed": True, "hinted": not sure}
        looks = "" if likely or inside else looks_like(name, thing)
        return {"component": likely, "inside": inside, "guessed": bool(likely), "looks": looks}

    def _is_extended(self, thing: type) -> bool:
        """Say whether another class of the file extends the class `thing`."""
        classes = (one for _, one in definitions(self.module) if inspect.isclass(one))
        return any(one is not thing and issubclass(one, thing) for one in classes)

    def _table(self, name: str, thing: Any) -> str:
        """Return the component of a function that makes a table, "" for one that the file calls."""
        likely = component_guessed(name)
        return likely if makes_table(likely, thing) and not self._is_used(name) else ""

    def _hinted(self, name: str, thing: Any) -> str:
        """Return the component that the last words of a function's name are, "" for none.

        A function that the file calls is a part of what calls it, and one whose name begins with
        a verb does something with a component.
        """
        likely = component_suggested(name)
        is_one = inspect.isfunction(thing) and likely in _OF_FUNCTIONS
        if not is_one or name.startswith("_") or words_of(name)[0] in _VERBS:
            return ""
        return "" if self._is_used(name) else likely

    def _is_used(self, name: str) -> bool:
        """Say whether the file mentions `name` where it does not define it, or has no source."""
        try:
            return len(re.findall(rf"\b{name}\b", inspect.getsource(self.module))) > 1
        except OSError:  # a notebook
            return True

    @cached_property
    def _encoders(self) -> Mapping[str, tuple[Any, set[type]]]:
        """The encoders that embed their tokens themselves, as :attr:`_models`."""
        found = {}
        for name, thing in list(vars(self.module).items()):
            is_one = _is_class(thing) and (not takes_two_sides(thing) or of_loss(thing.forward))
            try:
                code = token_encoder(thing, Reading(), name) if is_one else None
            except (Mixed, OfImages, Switched, Uncalled):  # it is one, and asked about as that
                found[name] = (None, set[type]())
                continue
            except (Unclear, AttributeError, TypeError):  # layers may return an object of their own
                continue
            if code is not None and code.construction is not None:
                with undisturbed():
                    model = code.construction(DISTINCT)
                found[name] = (model, {type(one) for one in model.modules()})
        return found

    @cached_property
    def _language_models(self) -> Mapping[str, tuple[Any, set[type]]]:
        """The decoder-only models, as :attr:`_models`; without parts where none is built."""
        found: dict[str, tuple[Any, set[type]]] = {}
        for name, thing in list(vars(self.module).items()):
            if not _is_class(thing) or thing.__module__ != self.module.__name__:
                continue
            if is_language_model(thing, Reading(), name):
                apart = has_parts_to_judge(thing, name)
                found[name] = (None, set()) if apart else _built(thing, name)
        classes = set(found)
        for name, thing in definitions(self.module):
            if inspect.isfunction(thing) and is_language_model(thing, Reading(), name):
                made = _built(thing, name)
                if type(made[0]).__name__ not in classes:  # else its class is judged by itself
                    found[name] = made
        return found

    @cached_property
    def _models(self) -> Mapping[str, tuple[Any, set[type]]]:
        """The whole models of the file: each built, with the classes of its parts."""
        found = {}
        for name, thing in list(vars(self.module).items()):
            if not inspect.isroutine(thing) and not inspect.isclass(thing):
                continue
            if name in self._language_models:
                continue
            if makes_models(name, thing) or is_whole(name, thing):
                try:
                    with undisturbed():
                        built = building(thing, name, Reading())
                        same = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
                        model = built(same)
                except Unclear:
                    continue
                found[name] = (model, {type(one) for one in model.modules()})
        return found

    @cached_property
    def _makers(self) -> dict[str, str]:
        """The functions of the file that make models, by the names of the classes made."""
        found = {**self._language_models, **self._models}
        return {
            type(model).__name__: name
            for name, (model, _) in found.items()
            if inspect.isfunction(getattr(self.module, name))
        }

    def _inside(self, thing: Any) -> str:
        return next(
            (
                name
                for name, (model, classes) in {
                    **self._language_models,
                    **self._models,
                    **self._encoders,
                }.items()
                if any(_is_one(part, thing) for part in classes) and not _is_one(type(model), thing)
            ),
            "",
        )

    def _caller(self, thing: Any, component: str) -> str:
        """Return the whole model that calls the function `thing`, "" for none.

        Where it makes or applies rotary positions, it may be attention or a layer, too.
        """
        whole = {**self._models, **self._language_models}
        known = {name: classes for name, (_, classes) in whole.items()}
        for name, one in definitions(self.module) if component == "rotary" else ():
            own = component_named(name, heads=True) or component_guessed(name)
            if _is_class(one) and own in _WITH_POSITIONS:
                known.setdefault(name, {one})
        return next(
            (name for name, classes in known.items() if any(_names(one, thing) for one in classes)),
            "",
        )


_WITH_POSITIONS = ("attention", "multi_head_attention", "encoder_layer", "decoder_layer")
"""The parts of models whose numbers show how positions are applied in them."""


def _takes_its_inputs(thing: Any) -> bool:
    """Say whether the first arguments of a function have names of queries, keys and values."""
    own = [squashed(one) for one in inspect.signature(thing).parameters][:3]
    roles = ("query", "key", "value")
    return len(own) == 3 and all(one in ROLES[role] for one, role in zip(own, roles, strict=True))


def _names(owner: type, thing: Any) -> bool:
    """Say whether a method of the class `owner` names `thing` of its own file.

    So does one that calls a function of the file which names it.
    """
    home = vars(sys.modules.get(owner.__module__, owner))
    if owner.__module__ != thing.__module__:
        return False
    methods = (inspect.unwrap(getattr(one, "__func__", one)) for one in vars(owner).values())
    waiting = [one for one in methods if inspect.isfunction(one)]
    seen: set[str] = set()
    while waiting:
        named = _globals_of(waiting.pop().__code__) - seen
        seen |= named
        found = [home[one] for one in named if inspect.isfunction(home.get(one))]
        waiting += [one for one in found if one.__module__ == owner.__module__]
    return thing.__name__ in seen


def _globals_of(code: CodeType) -> set[str]:
    """Return the global names that `code` reads, and the code within it, as a comprehension."""
    own = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    return own.union(*(_globals_of(one) for one in code.co_consts if isinstance(one, CodeType)))


def _is_one(part: type, thing: Any) -> bool:
    """Say whether a class of a model is `thing`, or that of a copy with other constants."""
    return part is thing or is_copy_of(part, thing)


def _has_own_width(model: nn.Module | None) -> bool:
    """Say whether a stack has an inner width that no size says, and no usual ratio of widths."""
    usual = {DISTINCT.d_ff, *(ratio * DISTINCT.d_model for ratio in RATIOS)}
    held = {length for one in model.parameters() for length in one.shape} if model else usual
    return usual.isdisjoint(held)


def _is_class(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, nn.Module)


def _is_called(thing: Any) -> bool:
    return inspect.isclass(thing) and (issubclass(thing, nn.Module) or "__call__" in vars(thing))


def _built(thing: Any, name: str) -> tuple[Any, set[type]]:
    """Return a decoder-only model with the classes of its parts, none where it cannot be built."""
    try:
        with undisturbed():
            model = language_models.building(thing, name, Reading())(language_models.PROBE)
    except Unclear:
        return None, set()
    return model, {type(one) for one in model.modules()}
