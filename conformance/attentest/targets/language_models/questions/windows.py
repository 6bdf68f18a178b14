"""Windows of decoder-only models, which are longer than the texts that a model is read by."""

import inspect
import re
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import torch

from attentest.targets.adapt.reading import Reading, Windowed
from attentest.targets.adapt.unspecified.windows import LONG, edge
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.limits import LONGEST
from attentest.targets.language_models.surrounded.keywords import with_keywords
from attentest.targets.language_models.verifying import TRIED, answers, drawn
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Backend, Choices

_ENOUGH = 4096
"""A window that is longer than all texts of clauses."""


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
