"""The JAX adapter over an attention with an axis for the heads: calls and gradients."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jax_backend import BACKEND, SIZES, JaxBackend, Recipe, drawn, loaded, oracle

from attentest_spec.contract import Backend, Part, Stateful, Unsupported
from attentest_spec.names import UnknownName
from attentest_spec.precision import dtype, epsilon
from attentest_spec.setting import Array, Floats, Setting


def test_backend_and_part_meet_the_contract() -> None:
    part = BACKEND.build("multi_head_attention", SIZES)
    assert isinstance(BACKEND, Backend)
    assert isinstance(part, Part)
    assert isinstance(part, Stateful)
    with pytest.raises(UnknownName, match="did you mean multi_head_attention"):
        BACKEND.build("multihead_attention", SIZES)
    with pytest.raises(UnknownName, match="did you mean float64"):
        BACKEND.build("causal_mask", SIZES, precision="float46")


def test_impossible_sizes_are_refused_by_the_backend() -> None:
    with pytest.raises(ValueError, match="4 heads do not divide 6"):
        BACKEND.build("multi_head_attention", SIZES.but(heads=4))


def test_loaded_parameters_are_the_ones_computed_with(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    expected = oracle(given, *inputs)
    np.testing.assert_allclose(part(*inputs), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(part(*inputs, method="twice"), 2 * expected, rtol=0, atol=1e-13)
    assert part(*inputs[:3], None).shape == (3, 5, 6)
    with pytest.raises(UnknownName, match="twice"):
        part(*inputs, method="thrice")


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_precision_is_that_of_parameters_and_output(
    rng: np.random.Generator, precision: str
) -> None:
    part, given = loaded(rng, precision)
    *floats, keep = drawn(rng)
    output = part(*(one.astype(dtype(precision)) for one in floats), keep)
    assert output.dtype == dtype(precision)
    assert {one.dtype for one in part.export().values()} == {dtype(precision)}
    # The sums of this attention have up to seven terms, one after the other, of size 3 at most.
    room = 4 * 7 * 3 * epsilon(precision)
    expected = oracle(given, *floats, keep)
    np.testing.assert_allclose(output.astype(np.float64), expected, rtol=0, atol=room)


def test_export_gives_back_what_was_loaded_and_copies(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    exported = part.export()
    assert set(exported) == set(given.parameters)
    for name, values in given.parameters.items():
        np.testing.assert_array_equal(exported[name], values)
        exported[name][:] = 0
        assert np.abs(part.export()[name]).max() > 0


def test_parameters_differ_at_every_build() -> None:
    one, other = (BACKEND.build("multi_head_attention", SIZES).export() for _ in range(2))
    assert (one["query.weight"] != other["query.weight"]).all()
    np.testing.assert_array_equal(one["output.weight"], np.ones((6, 6)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query.weight": None}, r"missing \['query.weight'\], extra none"),
        ({"query.bias": np.zeros(6)}, r"missing none, extra \['query.bias'\]"),
        ({"key.weight": np.zeros((6, 5))}, r"key.weight: its shape is \(6, 5\), .* \(6, 6\)"),
    ],
)
def test_parameters_of_another_shape_are_refused(
    rng: np.random.Generator, change: dict[str, Any], message: str
) -> None:
    part, given = loaded(rng)
    changed = {**given.parameters, **change}
    with pytest.raises(ValueError, match=message):
        part.load({name: one for name, one in changed.items() if one is not None})
    np.testing.assert_array_equal(part.export()["key.weight"], given.parameters["key.weight"])


def test_a_map_that_leads_nowhere_says_so() -> None:
    part = BACKEND.build("generator", SIZES)
    part.names = ("weight",)
    with pytest.raises(ValueError, match="sends weight to kernel, which the tree does not have"):
        part.export()


def test_a_function_has_no_parameters_and_gives_what_it_returns() -> None:
    part = BACKEND.build("causal_mask", SIZES)
    np.testing.assert_array_equal(part(3)[0, 0], np.tril(np.ones((3, 3), bool)))
    part.load({})
    assert part.export() == {}
    with pytest.raises(Unsupported, match="no parameter map"):
        part.load({"weight": np.zeros(2)})
    tokens = np.array([[1, 2**40, 0]])
    assert BACKEND.build("padding_mask", SIZES)(tokens, 0).tolist() == [[[[True, True, False]]]]
    output, weights = BACKEND.build("attention", SIZES)(np.ones((1, 1, 2, 3)), *[None] * 3)
    assert weights is None
    assert isinstance(output, np.ndarray)
    assert output.flags.writeable


def test_gradients_are_those_of_differences(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    weights = rng.normal(size=(3, 5, 6))
    found = part.vjp(inputs, weights)
    np.testing.assert_allclose(found.output, part(*inputs), rtol=0, atol=1e-13)
    assert found.inputs[3] is None
    assert set(found.parameters) == set(given.parameters)
    ways = [rng.normal(size=one.shape) for one in inputs[:3]]
    for place, way in enumerate(ways):
        pulled = found.inputs[place]
        assert pulled is not None
        slope = _slope(
            lambda far, one=place: oracle(given, *_moved(inputs, one, ways, far)), weights
        )
        np.testing.assert_allclose((pulled * way).sum(), slope, rtol=1e-7)
    for name, values in given.parameters.items():
        way = rng.normal(size=values.shape)
        slope = _slope(
            lambda far, key=name, by=way: oracle(_turned(given, key, far * by), *inputs), weights
        )
        np.testing.assert_allclose((found.parameters[name] * way).sum(), slope, rtol=1e-7)


def _moved(inputs: tuple[Array, ...], place: int, ways: list[Floats], far: float) -> list[Array]:
    """Return `inputs` with the one at `place` moved `far` along its way."""
    return [one + far * ways[n] if n == place else one for n, one in enumerate(inputs)]


def _turned(given: Setting, name: str, by: Floats) -> Setting:
    """Return the setting with one parameter changed."""
    return replace(given, parameters={**given.parameters, name: given[name] + by})


def _slope(answer: Any, weights: Floats, step: float = 1e-5) -> float:
    """Return how fast the weighted sum of `answer` changes around 0, by central differences."""
    return float((weights * (answer(step) - answer(-step))).sum() / (2 * step))


def test_gradients_keep_their_precision_and_skip_masks(rng: np.random.Generator) -> None:
    part, _ = loaded(rng, "bfloat16")
    *floats, keep = drawn(rng)
    narrow = tuple(one.astype(ml_dtypes.bfloat16) for one in floats)
    found = part.vjp((*narrow, keep), np.ones((3, 5, 6), ml_dtypes.bfloat16))
    assert {one.dtype.name for one in found.inputs if one is not None} == {"bfloat16"}
    assert {one.dtype.name for one in found.parameters.values()} == {"bfloat16"}


def test_in_training_every_call_has_a_key_of_its_own(rng: np.random.Generator) -> None:
    part, _ = loaded(rng)
    inputs = drawn(rng)
    quiet = part(*inputs)
    part.train()
    assert part.inventory()["modes"] == {"": True}
    assert (part(*inputs) != part(*inputs)).any()
    part.eval()
    np.testing.assert_array_equal(part(*inputs), quiet)


def test_equal_calls_of_parts_are_traced_once(rng: np.random.Generator) -> None:
    traced: list[int] = []

    def call(built: Any, own: Any, key: Any, x: Any) -> Any:
        traced.append(x.shape[0])
        return built[0] * x

    def answers(built: Any) -> list[float]:
        backend = JaxBackend(
            name="t", title="t", recipes={"generator": Recipe(lambda sizes, kind: built, call=call)}
        )
        parts = [backend.build("generator", SIZES) for _ in range(2)]
        return [float(part(np.ones(2))[0]) for part in parts]

    assert answers((3.0,)) == [3.0, 3.0]
    assert traced == [2]
    assert answers((4.0,)) == [4.0, 4.0], "another build is another program"
    assert traced == [2, 2]
