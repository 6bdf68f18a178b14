"""BLEU of translations by sacrebleu, an optional library: the extra `translation`."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from attentest_spec.setting import Array


def installed() -> bool:
    """Say whether the library is installed."""
    return find_spec("sacrebleu") is not None


def bleu(text: Callable[[Array], str] | None, written: Array, target: Array) -> float | None:
    """Return the BLEU of written tokens (B, T) for the target (B, T), from 0 to 100.

    `text` writes a row as words, and None is returned for a task without words, and where the
    library is missing. Words are split at spaces alone. Source: Papineni et al. 2002; Post 2018.
    """
    if text is None or not installed():
        return None
    scored = import_module("sacrebleu").corpus_bleu(
        [text(row) for row in written],
        [[text(row) for row in target]],
        tokenize="none",
        force=True,  # words that are split already are meant here
    )
    return float(scored.score)
