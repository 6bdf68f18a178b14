"""Schedules, optimisers, clipping and decoders among what a whole file defines.

Whoever names one object asks for it; of a whole file, what an ordinary helper is called by must not
run. So the name has to say it, besides the arguments.
"""

import inspect
from typing import Any

from attentest.targets import caches
from attentest.targets.adapt.components import component_guessed, words_of
from attentest.targets.adapt.names import words
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.training import optimisers, schedules

_SCHEDULES = frozenset(
    words("lr rate schedule schedules scheduler scheduled warmup noam cosine decay annealing")
)
"""Words of which the name of a schedule has one."""

_DEEDS = frozenset(
    words(
        "train fit main run test check plot log print show draw save load evaluate eval validate "
        "benchmark report demo example display"
    )
)
"""First words of names of what does something else with the component."""

_METHODS = ("step", "update")
"""Methods of which an optimiser has one."""

_DECODERS = ("greedy_decoding", "beam_search")


def component_in_file(name: str, thing: Any) -> str:
    """Return which part of training or decoding `thing` is, "" for none."""
    parts = words_of(name)
    if not parts or parts[0] in _DEEDS:
        return ""
    if _SCHEDULES.intersection(parts) and schedules.is_schedule(thing, Reading(), name):
        return schedules.COMPONENT
    trained = optimisers.component_of(thing, Reading(), name)
    if trained:
        moves = any(callable(getattr(thing, one, None)) for one in _METHODS)
        return trained if moves or inspect.isfunction(thing) else ""
    if caches.proves_itself(thing, name) or caches.drops_tokens(thing, name):
        return caches.COMPONENT
    decoder = component_guessed(name) if inspect.isfunction(thing) else ""
    return decoder if decoder in _DECODERS else ""


def decodes_text(component: str, thing: Any) -> bool:
    """Say whether a function, of a `component` by its name, decodes what is no tokens.

    An argument that it requires gets texts, or what maps them to ids.
    """
    if component not in _DECODERS or not inspect.isfunction(thing):
        return False
    own = inspect.signature(thing).parameters.values()
    needed = [one.name for one in own if one.default is inspect.Parameter.empty]
    return any(_TEXT.intersection(words_of(one)) for one in needed)


_TEXT = frozenset(
    words(
        "tokenizer tokenizers text texts sentence sentences vocab vocabs dataset loader dataloader"
    )
)
"""Words in the name of an argument that gets texts, or what maps them to ids."""
