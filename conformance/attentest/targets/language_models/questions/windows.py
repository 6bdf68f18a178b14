"""Windows of decoder-only models, which are longer than the texts that a model is read by."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch

from attentest.targets.adapt.reading import Reading, Unclear, Windowed
from attentest.targets.adapt.unspecified.windows import LONG, edge
from attentest.targets.language_models.calling import Call
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.construction.windows import LONGEST, WINDOWED
from attentest.targets.language_models.inference import Inferred
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.language_models.surrounded.keywords import with_keywords
from attentest.targets.language_models.verifying import TRIED, answers, drawn
from attentest.targets.signatures import constructor_arguments
from attentest.targets.single import widened
from attentest_spec import Backend, Choices

_ENOUGH = 4096
"""A window that is longer than all texts of clauses."""

_TEXT = 33
"""The tokens of a text by which a window is measured."""

_STACKS = ((1, 4), (1, 7), (3, 7), (12, 2))
"""Numbers of layers, and windows, of the models by which a window is measured."""

_COUNTED = ("{} tokens, its own among them", "its own token and {} before it")
"""Words on the tokens of a window, without one that comes on top of it and with it."""

_SEEN = 1e-9
"""The smallest change of a logit that a token reaches."""


def with_window(name: str, inferred: Inferred, reading: Reading) -> Inferred:
    """Return `inferred` with what the argument for a window counts, measured by short texts.

    Where layers differ in it, its window is longer than all that is judged. Raises Windowed where
    every layer has a window, and the argument counts something else.
    """
    built = inferred.building
    if "window" not in built.known:
        return inferred
    own = re.findall(rf"(\w+)={WINDOWED}", built.expression)[0]
    wanted = reading.choices.get("attention_window")
    reached = [_reach(built, inferred.call, *one) for one in _STACKS]
    for counted, more in (("with-query", 0), ("beside-query", 1)):
        if reached == [layers * (wide - 1 + more) + 1 for layers, wide in _STACKS]:
            if wanted not in (None, counted):
                raise Unclear(
                    f"{name} sees {_COUNTED[more].format(own)}, which is attention_window="
                    f"{counted}. If {wanted} is meant, as --choice says, that is a mistake."
                )
            choices = {**inferred.choices, "attention_window": counted}
            return replace(inferred, choices=choices)
    (_, wide), (_, wider) = _STACKS[:2]
    other = [reached[0] - wide, reached[1] - wider]
    if 0 < reached[0] < reached[1] < _TEXT and other not in ([0, 0], [1, 1]):
        raise Windowed(
            f"{name} is not judged as a decoder-only model: built with {own}={wide}, a token sees "
            f"itself and the {reached[0] - 1} before it alone in one layer, and a window is {wide} "
            f"tokens, or {wide + 1}. --give {own}={_ENOUGH} (in Python: given={{{own!r}: "
            f"{_ENOUGH}}}) judges it without."
        )
    left = (
        f"assumed {own}={_ENOUGH}, and no text that is judged is longer: its window is not judged, "
        f"as not every layer has it"
    )
    code = built.expression.replace(WINDOWED, str(_ENOUGH))
    return replace(inferred, building=replace(built, expression=code, doubts=(*built.doubts, left)))


def _reach(built: Building, call: Call, layers: int, window: int) -> int:
    """Return the number of tokens, in a row, that see the first one and one behind it; 0 for none.

    All that see the first one, in a text that is shorter.
    """
    tokens = 3 + torch.arange(_TEXT)[None] % 7
    try:
        with widened(), torch.no_grad():
            sizes = probe_sizes(built).but(layers=layers, window=window)
            model, function = probe_of(built, sizes), call.compiled()
            plain = function(model, tokens)[0]
            rows = []
            for place in (0, 5):
                moved = tokens.clone()
                moved[:, place] = 12
                rows.append((function(model, moved)[0] - plain).abs().amax(-1) > _SEEN)
    except Exception:  # code that a user wrote may raise anything
        return 0
    wide = int(rows[0].sum())
    expected = [torch.arange(_TEXT) - place for place in (0, 5)]
    same = (
        bool((one == (at >= 0) & (at < wide)).all()) for one, at in zip(rows, expected, strict=True)
    )
    return wide if all(same) else 0


def windows_left(built: Building) -> list[str]:
    """Return the sentences on windows that stay as they are, longer than all that is judged."""
    return [
        f"{own} is left at {one.default}, and no text that is judged is longer: its window is not "
        f"judged"
        for own, one in _windows(built)
        if f"{own}=" not in built.expression
        if type(one.default) is int and one.default > LONGEST
    ]


def demand_no_window(name: str, backend: Backend, built: Building, reading: Reading) -> None:
    """Raise Windowed for a model whose tokens see near ones alone, in a text as long as in use."""
    limit, choices = backend.limits.length, Choices.of(backend.choices)
    if reading.anyway or (limit and limit < LONG) or choices.attention_window != "none":
        return
    wide = _window(backend)
    if not wide:
        return
    named = re.findall(r"\b(\w*window\w*)=\d", built.expression)
    own = next((own for own, _ in _windows(built)), next(iter(named), ""))
    given = f"--give {own}={_ENOUGH} (in Python: given={{{own!r}: {_ENOUGH}}}) judges it without. "
    raise Windowed(
        f"{name} is not judged as a decoder-only model: in one layer a token sees itself and the "
        f"{wide - 1} before it alone: a window, which is not inferred. {given * bool(own)}A "
        f"backend can declare it (attention_window)."
    )


def _window(backend: Backend) -> int:
    """Return the number of tokens that see the first one in one layer, 0 for all of them."""
    given = drawn(backend, TRIED[0].but(layers=1, max_length=LONG))
    words = given.sizes.target_vocabulary
    tokens = np.random.default_rng(2).integers(0, words, size=(1, LONG))
    other = tokens.copy()
    other[:, 0] = (tokens[:, 0] + 1) % words
    try:
        first, second = answers(backend, given, [(one, None, None) for one in (tokens, other)])
    except Exception:  # code that a user wrote may raise anything
        return 0
    return edge(torch.from_numpy(np.abs(first - second).max((0, 2))))


def _windows(built: Building) -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield the arguments of the classes that a model is built with whose names say a window."""
    called = [built.space.get(name) for name in re.findall(r"(\w+)\(", built.expression)]
    for thing in called:
        if inspect.isclass(thing) and thing.__module__ != SimpleNamespace.__module__:
            arguments = {**constructor_arguments(thing), **with_keywords(thing).parameters}
            yield from ((own, one) for own, one in arguments.items() if "window" in own.lower())
