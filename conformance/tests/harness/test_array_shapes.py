"""The shapes of arrays in `harness` and `testing`: in signatures and docstrings, and checked."""

import inspect
import pkgutil
import re
from importlib import import_module
from types import UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import jaxtyping
import numpy as np
import pytest
import shape_checks
from jaxtyping import TypeCheckError
from oracle_backend import probe

from attentest.harness.tolerances import distance
from attentest.testing.assertions import equal, finite
from attentest.testing.dependence import output_unchanged
from attentest.testing.layer_calls import LayerCall, permute_mask
from attentest_spec import Sizes
from attentest_spec.contract import Input


def functions():
    """Return the public functions and methods of the checked packages."""
    names = [
        module.name
        for part in shape_checks.PARTS
        for module in pkgutil.iter_modules(import_module(part).__path__, f"{part}.")
    ]
    for name in names:
        for owner, thing in vars(import_module(name)).items():
            if owner.startswith("_") or getattr(thing, "__module__", "") != name:
                continue
            members = vars(thing).values() if inspect.isclass(thing) else [thing]
            for member in members:
                function = getattr(member, "fget", member)
                if inspect.isfunction(function) and not function.__name__.startswith("_"):
                    yield function


def arrays(annotation):
    """Return the types of arrays in an annotation, with their shapes where they have some."""
    if get_origin(annotation) is Annotated or annotation in shape_checks.KINDS:
        return [annotation]
    if annotation == Input or get_origin(annotation) not in (Union, UnionType, tuple):
        return []  # the shapes of inputs are those of the contract
    return [one for inner in get_args(annotation) for one in arrays(inner)]


def signature(function):
    """Return the arrays in the signature; those in mappings are left out."""
    hints = get_type_hints(inspect.unwrap(function), include_extras=True).values()
    return [one for hint in hints for one in arrays(hint)]


ON_ARRAYS = [one for one in functions() if signature(one)]


def test_functions_on_arrays_are_found():
    assert {"equal", "near", "distance", "cast", "replace_positions"} <= {
        one.__name__ for one in ON_ARRAYS
    }


@pytest.mark.parametrize("function", ON_ARRAYS, ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_function_on_arrays_states_their_shapes(function):
    assert all(get_origin(one) is Annotated for one in signature(function))
    assert re.search(r"shape|\([BTL.]|\(length,\)", function.__doc__)


def test_shapes_are_checked_at_calls():
    unchecked = {one.__name__ for one in ON_ARRAYS if inspect.unwrap(one) is one}
    assert unchecked == {"largest", "but"}  # either may be given something else in place of arrays


# Calls --------------------------------------------------------------------------------------------

X = np.ones((2, 5, 6))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("rows", lambda: output_unchanged(X, X, np.ones((2, 4), bool), what="output")),
        ("after", lambda: output_unchanged(X, X[:, :4], np.ones((2, 5), bool), what="output")),
        ("before", lambda: output_unchanged(X[0], X[0], np.ones(5, bool), what="output")),
        ("order", lambda: permute_mask(np.ones((1, 1, 5, 5), bool), np.arange(4))),
        ("mask", lambda: permute_mask(np.ones((5, 5), bool), np.arange(5))),
        ("expected", lambda: distance(X, np.ones((2, 5, 7)))),
        ("actual", lambda: finite([1.0, 2.0])),
    ],
)
def test_argument_of_a_wrong_shape_is_refused(name, call):
    with pytest.raises(TypeCheckError, match=f"parameter '{name}'"):
        call()


def test_call_of_a_layer_with_a_mask_of_another_length_is_refused():
    part = probe("encoder_layer", Sizes(d_model=6, heads=2))
    LayerCall(part, X, np.ones((2, 1, 1, 5), bool))
    with pytest.raises(TypeCheckError, match="parameter 'mask'"):
        LayerCall(part, X, np.ones((2, 1, 1, 4), bool))


def test_shapes_are_not_checked_where_it_is_switched_off(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    finite([1.0, 2.0])


def test_objects_are_legal_arrays():
    things = np.array([1, 2.0], dtype=object)
    equal(things, np.array([1.0, 2.0]))


def test_modules_imported_before_the_checks_are_refused():
    with pytest.raises(RuntimeError, match=r"Imported before .*attentest\.harness\.copies"):
        shape_checks.install.__wrapped__()
