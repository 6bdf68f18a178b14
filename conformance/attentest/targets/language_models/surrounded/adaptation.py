"""Parts of decoder-only models that no other reading explains, judged inside of a whole model."""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import Any

from torch import nn

from attentest.targets.adapt import probing
from attentest.targets.adapt.components import component_guessed, component_named
from attentest.targets.adapt.encoders.inputs.classifying import is_classifier
from attentest.targets.adapt.reading import Contrary, Offered, Reading, Unclear, Windowed
from attentest.targets.language_models.adaptation import adapt_language_model
from attentest.targets.language_models.calling import NO_LOGITS, Call, is_causal
from attentest.targets.language_models.construction.building import Build, Building
from attentest.targets.language_models.ordering import with_order
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.language_models.questions.bodies import OF_BODIES
from attentest.targets.language_models.recognition import takes_tokens_alone
from attentest.targets.language_models.surrounded.blocks import buildings_of_blocks, takes_positions
from attentest.targets.language_models.surrounded.layers import Read, adapt_layers
from attentest.targets.language_models.surrounded.states import (
    building_of_last_steps,
    building_of_states,
)
from attentest.targets.single import widened
from attentest_spec import Backend

_MISTAKEN, _OTHER_PAIRS = "it computes ", "angles for other pairs of columns"
_LAYERS = ("encoder_layer", "decoder_layer")
_READ = "was read as a decoder-only model,"


def adapt_surrounded(
    question: Unclear,
    thing: Any,
    reading: Reading,
    name: str,
    home: ModuleType | None,
    read: Read,
) -> Backend:
    """Return the backend of a part of a decoder-only model, or of the layers of one.

    Raises the `question` that is asked of it otherwise where its numbers are none's. Layers are
    judged as `read` returns them.
    """
    contrary = isinstance(question, Contrary | Offered | Windowed) or probing.MISSING
    is_module = inspect.isclass(thing) and issubclass(thing, nn.Module)
    if contrary or not is_module or reading.strict or reading.anyway:
        raise question
    own = name or thing.__name__
    mistaken: list[Backend] = []
    for build in _builds(thing, own, reading):
        try:
            made = adapt_language_model(thing, reading, own, home, build)
        except Unclear as failure:
            if _READ in failure.text and OF_BODIES in question.text:
                question = _of_states(failure, own)
            continue
        said = [one for one in made.assumed if one.startswith(_MISTAKEN)]
        if not said:
            return made
        # Tables that are given in another form than the code takes have other pairs.
        mistaken += [made] * (_OTHER_PAIRS not in said[0])
    if mistaken:
        return mistaken[0]
    if NO_LOGITS in question.text and not reading.component and is_classifier(thing, reading):
        with suppress(Unclear):
            return read(replace(reading, component="encoder"))
    return adapt_layers(question, thing, reading, own, read)


def _of_states(failure: Unclear, name: str) -> Unclear:
    """Return the question about the numbers of a model that returns states."""
    said = " that returns states, with the table of its tokens as the generator,"
    text = failure.text.replace(_READ, f"{_READ.removesuffix(',')}{said}", 1)
    return Unclear(text, f"--as encoder judges the layers of {name}.")


def _builds(thing: type[nn.Module], name: str, reading: Reading) -> Iterator[Build]:
    """Yield the ways to make a whole model of the class `thing`."""
    said = reading.component or component_named(name) or component_guessed(name)
    if said in _LAYERS:
        if said == "encoder_layer" and not takes_positions(thing):
            return  # a layer that is given no positions is judged by itself, or is a question
        for built in buildings_of_blocks(thing, name, reading):
            if _hides_later(built):
                yield lambda *_, built=built: built
    elif reading.component in ("", "language_model") and takes_tokens_alone(thing):
        yield from (building_of_states, building_of_last_steps)


def _hides_later(built: Building) -> bool:
    """Say whether blocks hide later tokens: by themselves, or with a mask of their caller."""
    model = probe_of(built, probe_sizes(built))
    with widened():
        return is_causal(model, with_order(model, Call("tokens"), ()))
