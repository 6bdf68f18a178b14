"""The generators that Python and NumPy share, while examples are run: seeded for each of them.

Hypothesis reads and restores both for every example, and reads that of Python twice more, which
takes as long as building a small part does. Here they are read and restored once for all examples.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import hypothesis.core
import numpy as np
from hypothesis import control

_REPLACED: tuple[tuple[ModuleType, str], ...] = (
    (hypothesis.core, "deterministic_PRNG"),
    (control, "deprecate_random_in_strategy"),
)


@contextmanager
def seeded_examples() -> Iterator[None]:
    """Seed both generators for every example that is run inside, and restore them at the end.

    Another version of Hypothesis, which has none of the functions that are replaced, does it all.
    """
    of_python, of_numpy = random.getstate(), np.random.get_state(legacy=False)
    with ExitStack() as replaced:
        for module, name in _REPLACED:
            if hasattr(module, name):
                own = _seeded if name == "deterministic_PRNG" else _unobserved
                replaced.enter_context(patch.object(module, name, own))
        try:
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


@contextmanager
def _seeded(*_: Any, **__: Any) -> Iterator[None]:
    """Seed as Hypothesis does."""
    random.seed(0)
    np.random.seed(0)
    yield


@contextmanager
def _unobserved(*_: Any, **__: Any) -> Iterator[None]:
    """Draw without a look at the generators: no strategy of the suite uses them."""
    yield
