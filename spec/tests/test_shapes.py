"""The shapes of arrays: in the signatures and docstrings of functions, and checked at calls."""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import shape_types
from jaxtyping import TypeCheckError
from torch import Tensor

import attentest_spec
from attentest_spec.attention import attention
from attentest_spec.embedding import embedding
from attentest_spec.encoder import stack
from attentest_spec.oracles import METHODS, ORACLES
from attentest_spec.setting import Floats, Setting

Function = Callable[..., Any]


def test_every_oracle_is_checked() -> None:
    modules = {function.__module__ for function in (*ORACLES.values(), *METHODS.values())}
    assert modules <= set(shape_types.MODULES)


# Calls --------------------------------------------------------------------------------------------


def heads(*shape: int) -> Floats:
    """Return ones of the shape (B, H, ..)."""
    return np.ones((2, 3, *shape))


@pytest.mark.parametrize(
    ("problem", "wrong"),
    [
        ("query", {"query": heads(5, 8)}),
        ("key", {"key": np.ones((2, 1, 7, 4))}),
        ("value", {"value": heads(6, 11)}),
        ("value", {"value": np.ones((7, 11))}),
        ("value", {"value": heads(7, 11).astype(np.float32)}),
        ("mask", {"mask": np.ones((2, 3, 7, 5), dtype=bool)}),
        ("mask", {"mask": np.ones((2, 1, 1, 7))}),
    ],
)
def test_argument_of_a_wrong_shape_or_type_is_refused(problem: str, wrong: dict[str, Any]) -> None:
    right = {"query": heads(5, 4), "key": heads(7, 4), "value": heads(7, 11)}
    attention(Setting(), **right, mask=np.ones((1, 3, 1, 7), dtype=bool))
    named = "key" if problem == "query" else problem  # the first one that does not fit the others
    with pytest.raises(TypeCheckError, match=f"parameter '{named}'"):
        attention(Setting(), **{**right, **wrong})


def test_result_of_a_wrong_shape_is_refused() -> None:
    with pytest.raises(TypeCheckError, match=r"return value of attentest_spec\.encoder\.stack"):
        stack(Setting(), np.ones((2, 5, 6)), lambda given, x: x[:, :4])


def test_tokens_of_another_type_are_refused() -> None:
    given = Setting(parameters={"weight": np.ones((11, 6))})
    embedding(given, np.ones((2, 3), dtype=np.int64))
    with pytest.raises(TypeCheckError, match="parameter 'tokens'"):
        embedding(given, np.ones((2, 3)))


def test_shapes_are_not_checked_outside_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_types, "checking", False)
    given = Setting(parameters={"weight": np.ones((11, 6))})
    assert embedding(given, np.ones(3, dtype=np.int32)).shape == (3, 6)


def test_imports_that_come_too_late_for_the_checks_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Imported before .*: attentest_spec\.masks, "):
        shape_types.install.__wrapped__()


# Signatures and docstrings ------------------------------------------------------------------------


def modules() -> list[str]:
    """Return the names of all modules of the spec."""
    found = pkgutil.walk_packages(attentest_spec.__path__, "attentest_spec.")
    absent = () if find_spec("jax") else ("attentest_spec.jax",)
    return [one.name for one in found if not one.name.startswith(absent)]


def functions(module: str) -> Iterator[Function]:
    """Yield the public functions that a module defines, its methods too."""
    for name, thing in vars(import_module(module)).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module:
            continue
        owner = vars(thing).values() if inspect.isclass(thing) else [thing]
        yield from (one for one in owner if inspect.isfunction(one) and one.__name__[0] != "_")


def types(annotation: Any) -> Iterator[Any]:
    """Yield the array types in an annotation, with their shapes where they have some."""
    if get_origin(annotation) is Annotated or annotation in (*shape_types.KINDS, Tensor):
        yield annotation
    elif get_origin(annotation) is not Callable:
        for inner in get_args(annotation):
            yield from types(inner)


def arrays(function: Function) -> list[Any]:
    """Return the array types in the signature of a function."""
    hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    return [one for hint in hints.values() for one in types(hint)]


def written(shape: str) -> str:
    """Return a shape as docstrings write it: "*rows #K" is "(.., K)"."""
    words = [re.sub(r"^\*\w+$", "..", word).strip("#{}") for word in shape.split()]
    return f"({', '.join(words)})"


def gaps(function: Function) -> Iterator[str]:
    """Yield what an oracle lacks: shapes in its signature, and those shapes in its docstring."""
    text = re.sub(r"\s+", " ", function.__doc__ or "")
    for array in arrays(function):
        if get_origin(array) is not Annotated:
            yield f"{function.__name__} has an array without a shape"
        elif written(array.__metadata__[0]) not in text.replace(" // ", "//").replace(" * ", "*"):
            yield f"{function.__name__} does not say {written(array.__metadata__[0])}"


@pytest.mark.parametrize("module", shape_types.MODULES)
def test_oracle_has_shapes_in_its_signature_and_docstring(module: str) -> None:
    checked = [one for one in functions(module) if arrays(one)]
    assert checked
    assert [gap for one in checked for gap in gaps(one)] == []


def test_gaps_are_found() -> None:
    def bare(x: Floats) -> Annotated[Floats, "*rows #K"]:
        """Return x (B, K)."""

    assert list(gaps(bare)) == ["bare has an array without a shape", "bare does not say (.., K)"]


def test_every_function_on_arrays_says_their_shapes() -> None:
    contract = {one.__name__ for one in functions("attentest_spec.contract")}
    silent = [
        f"{module}.{one.__qualname__}"
        for module in set(modules()) - set(shape_types.MODULES)
        for one in functions(module)
        if arrays(one)
        and not (one.__name__ in contract and module != "attentest_spec.contract")
        and "shape" not in (one.__doc__ or "")
    ]
    assert silent == []
