"""Attention that refuses keys of another shape than its queries, as self-attention may."""

import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attentest.results.text import line_of_user, summary
from attentest.targets.adapt.assumptions.devices import B, limited
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest_spec import Backend

SENTENCE = (
    "assumed that it attends within one sequence: keys of another length than the queries are "
    "refused ({}). If it is to attend to a memory, this is a mistake, and --strict reports it"
)
OF_CONTEXTS = (
    "assumed that what it attends to is as long as its queries: another length fails ({}). If it "
    "is to attend to a memory, this is a mistake, which no clause reports"
)
_HEADS = 2


def with_one_sequence(backend: B) -> B:
    """Return the inferred `backend`, given queries and keys of one shape where it demands that.

    Nothing is assumed of an error that the code does not raise by a statement of its own: that may
    be one of a mistake.
    """
    if not backend.limits.cross:
        refusal = refusal_of_contexts(backend)
        said = OF_CONTEXTS.format(refusal)
        return limited(backend, backend.limits, said) if refusal else backend
    refusal = _refusal(backend)
    if not refusal:
        return backend
    alone = "attention" in backend.components
    limits = replace(backend.limits, cross=alone, one_shape=alone)
    return limited(backend, limits, SENTENCE.format(refusal))


def _refusal(backend: Backend) -> str:
    """Return the statement that refuses two keys more than queries, "" where none does."""
    component = next((one for one in _SHAPES if one in backend.components), "")
    if not component:
        return ""
    try:
        with undisturbed():
            part = backend.build(component, SIZES)
            part(*_inputs(component, keys=3))
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return ""
    try:
        with undisturbed():
            part(*_inputs(component, keys=5))
    except (AssertionError, ValueError) as failure:
        return _statement(failure)
    except Exception:  # as above
        return ""
    return ""


def refusal_of_contexts(backend: Backend, *, joined: bool = True) -> str:
    """Return how a context of another length than the queries fails, "" where it does not.

    Where one argument is key and value, as it is where they are `joined`, the clauses give the
    queries for all three.
    """
    if "multi_head_attention" not in backend.components:
        return ""
    keys = 3
    try:
        with undisturbed():
            part = backend.build("multi_head_attention", SIZES)
            for keys in (3, 5):
                query, key, value, _ = _inputs("multi_head_attention", keys)
                part(query, key, key if joined else value, None)
    except Exception as failure:  # code that a user wrote may raise anything
        return summary(failure) if keys > 3 else ""
    return ""


_SHAPES: dict[str, tuple[int, ...]] = {"attention": (2, _HEADS), "multi_head_attention": (2,)}
"""The components that attend, with the axes of their inputs before the lengths."""


def _inputs(component: str, keys: int) -> tuple[Any, ...]:
    """Return three queries, so many keys and values, and no mask."""
    rng = np.random.default_rng(0)
    width = SIZES.d_model // _HEADS if component == "attention" else SIZES.d_model
    lengths = (3, keys, keys)
    return (*(rng.normal(size=(*_SHAPES[component], one, width)) for one in lengths), None)


def _statement(failure: Exception) -> str:
    """Return the statement of a user's file that raised `failure`, "" for one of a library."""
    last = traceback.extract_tb(failure.__traceback__)[-1]
    line = (last.line or "").strip()
    is_own = line_of_user(failure).endswith(f"{Path(last.filename).name}:{last.lineno}")
    return line if is_own and line.startswith(("assert ", "raise ")) else ""
