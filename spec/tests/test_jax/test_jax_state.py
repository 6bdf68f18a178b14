"""The JAX adapter: states, copies, moves, and the settings of JAX, which stay unchanged."""

from typing import Any

import numpy as np
import pytest
from jax_backend import BACKEND, SIZES, drawn, loaded

from attentest_spec.contract import Unsupported
from attentest_spec.jax import JaxBackend, Recipe
from attentest_spec.jax.computing import compiler_options
from attentest_spec.names import UnknownName
from attentest_spec.sizes import Sizes

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "reloaded"])
def test_copies_compute_the_same_and_are_loaded_apart(rng: np.random.Generator, how: str) -> None:
    part, given = loaded(rng)
    inputs = drawn(rng)
    other = part.reloaded() if how == "reloaded" else part.copied(how)
    before = part(*inputs)
    np.testing.assert_array_equal(other(*inputs), before)
    other.load({name: 2 * one for name, one in given.parameters.items()})
    assert (other(*inputs) != before).any()
    np.testing.assert_array_equal(part(*inputs), before)
    with pytest.raises(UnknownName, match="deepcopy"):
        part.copied("depcopy")


def test_the_state_goes_by_the_own_names(rng: np.random.Generator) -> None:
    part, _ = loaded(rng)
    state = part.state()
    assert set(state) == {"inward.0", "inward.1", "inward.2", "outward.kernel"}
    assert part.inventory()["state"] == {name: one.shape for name, one in state.items()}
    fresh = BACKEND.build("multi_head_attention", SIZES)
    fresh.restore(state)
    inputs = drawn(rng)
    np.testing.assert_array_equal(fresh(*inputs), part(*inputs))
    state["inward.0"][:] = 0
    assert part.state()["inward.0"].any()
    with pytest.raises(ValueError, match=r"missing \['inward.1'\]"):
        fresh.restore({name: one for name, one in state.items() if name != "inward.1"})
    with pytest.raises(ValueError, match=r"inward\.2: its shape"):
        fresh.restore({**state, "inward.2": np.zeros(3)})


def test_load_keeps_unmapped_parameters() -> None:
    recipe = Recipe(
        lambda sizes, kind: np.dtype(kind),
        lambda kind, key: {"gain": jnp.ones(6, kind), "scale": jnp.full(1, 3.0, kind)},
        lambda kind, own, key, x: own["scale"] * own["gain"] * x,
        parameters={"gain": "gain"},
    )
    scaling = JaxBackend(name="s", title="s", recipes={"layer_norm": recipe})
    part = scaling.build("layer_norm", SIZES)
    part.names = ("gain",)
    part.load({"gain": np.full(6, 2.0)})
    np.testing.assert_array_equal(part(np.ones((1, 6))), np.full((1, 6), 6.0))


def test_moving_rounds_what_is_held(rng: np.random.Generator) -> None:
    part, given = loaded(rng)
    moved = part.moved(precision="float32")
    for name, values in given.parameters.items():
        np.testing.assert_array_equal(moved.export()[name], values.astype(np.float32))
    assert {one["dtype"] for one in moved.inventory()["parameters"].values()} == {"float32"}
    assert part.export()["query.weight"].dtype == np.float64
    for refused in (lambda: part.moved(device="meta"), lambda: part.placed((), "meta")):
        with pytest.raises(Unsupported, match="no device without memory"):
            refused()


def test_64_bits_are_left_as_they_were(rng: np.random.Generator) -> None:
    before = jax.config.jax_enable_x64
    part, _ = loaded(rng)
    part.vjp(drawn(rng), np.ones((3, 5, 6)))
    assert jax.config.jax_enable_x64 == before
    assert part.global_state()["changed"] == ()


def test_global_switch_to_64_bits_is_reported_and_undone() -> None:
    def meddle(sizes: Sizes, kind: Any) -> Any:
        jax.config.update("jax_enable_x64", not before)
        return jnp.ones

    before = jax.config.jax_enable_x64
    meddling = JaxBackend(name="m", title="m", recipes={"causal_mask": Recipe(meddle)})
    for precision in ("float32", "float64"):
        part = meddling.build("causal_mask", SIZES, precision=precision)
        assert part.global_state()["changed"] == ("jax_enable_x64",)
        assert jax.config.jax_enable_x64 == before


def test_settings_changed_by_one_build_are_not_reported_by_another() -> None:
    def meddle(sizes: Sizes, kind: Any) -> Any:
        jax.config.update("jax_numpy_dtype_promotion", "strict")
        return jnp.ones

    first, second = (
        JaxBackend(name="m", title="m", recipes={"causal_mask": Recipe(build)}).build(
            "causal_mask", SIZES
        )
        for build in (meddle, lambda sizes, kind: jnp.ones)
    )
    first(2), second(2)
    assert first.global_state()["changed"] == ("jax_numpy_dtype_promotion",)
    assert second.global_state()["changed"] == ()


def test_jax_settings_changed_by_code_are_reported_and_restored() -> None:
    def meddle(length: int) -> Any:
        jax.config.update("jax_numpy_dtype_promotion", "strict")
        return jnp.ones(length)

    meddling = JaxBackend(
        name="m", title="m", recipes={"causal_mask": Recipe(lambda sizes, kind: meddle)}
    )
    for _ in range(2):  # traced once, and reported by both parts
        part = meddling.build("causal_mask", SIZES)
        part(2)
        assert part.global_state()["changed"] == ("jax_numpy_dtype_promotion",)
    assert jax.config.jax_numpy_dtype_promotion == "standard"


def test_options_of_the_compiler_that_are_not_known_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "attentest_spec.jax.computing._FEWER_PASSES",
        {"xla_backend_optimization_level": 0, "xla_no_such_option": True},
    )
    assert compiler_options.__wrapped__() == {"xla_backend_optimization_level": 0}
