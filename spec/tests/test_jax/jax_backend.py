"""A backend of JAX: an attention whose kernels have an axis for the heads, and functions."""

from typing import Any

import numpy as np
import pytest

from attentest_spec.choices import Choices
from attentest_spec.mapping import Place
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy

from attentest_spec.jax import JaxBackend, JaxPart, Recipe  # noqa: E402  # where JAX is

SIZES = Sizes(d_model=6, heads=2, dropout=0.5)
NAMES = ("query", "key", "value")


def _init(built: tuple[Sizes, Any], key: Any) -> Any:
    sizes, kind = built
    shape = (sizes.d_model, sizes.heads, sizes.d_model // sizes.heads)
    return {
        "inward": [jax.random.normal(one, shape, kind) for one in jax.random.split(key, 3)],
        "outward": {"kernel": jnp.ones((*shape[1:], sizes.d_model), kind)},
    }


def _attend(built: tuple[Sizes, Any], own: Any, key: Any, q: Any, k: Any, v: Any, keep: Any) -> Any:
    q, k, v = (
        jnp.einsum("bld,dhe->bhle", x, w) for x, w in zip((q, k, v), own["inward"], strict=True)
    )
    scores = jnp.einsum("bhqe,bhke->bhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores if keep is None else jnp.where(keep, scores, -jnp.inf))
    if key is not None:
        weights *= jax.random.bernoulli(key, 1 - built[0].dropout, weights.shape)
    return jnp.einsum("bhqk,bhke,hed->bqd", weights, v, own["outward"]["kernel"])


def _checked(sizes: Sizes, kind: Any) -> tuple[Sizes, Any]:
    if sizes.d_model % sizes.heads:
        raise ValueError(f"{sizes.heads} heads do not divide {sizes.d_model}")
    return sizes, np.dtype(kind)


BACKEND = JaxBackend(
    name="glued",
    title="attention in JAX",
    recipes={
        "multi_head_attention": Recipe(
            _checked,
            _init,
            _attend,
            methods={"twice": lambda *given: 2 * _attend(*given)},
            parameters={
                **{
                    f"{name}.weight": Place(f"inward.{place}", layout="d h e -> (h e) d")
                    for place, name in enumerate(NAMES)
                },
                "output.weight": Place("outward.kernel", layout="h e d -> d (h e)"),
            },
        ),
        "causal_mask": Recipe(
            build=lambda sizes, kind: lambda length: jnp.tril(jnp.ones((1, 1, length, length))) > 0
        ),
        "padding_mask": Recipe(
            build=lambda sizes, kind: lambda tokens, pad: (tokens != pad)[:, None, None, :]
        ),
        "attention": Recipe(build=lambda sizes, kind: lambda q, k, v, keep: (q, None)),
        "generator": Recipe(
            lambda sizes, kind: np.dtype(kind),
            lambda kind, key: {"w": jnp.zeros((3, 2), kind)},
            parameters={"weight": "kernel"},
        ),
    },
)


def loaded(rng: np.random.Generator, precision: str = "float64") -> tuple[JaxPart, Setting]:
    """Build attention with drawn parameters; give the oracle's setting too."""
    given = Setting(SIZES, Choices(), draw("multi_head_attention", SIZES, Choices(), rng))
    part = BACKEND.build("multi_head_attention", SIZES, precision=precision)
    part.load({name: one.astype(dtype(precision)) for name, one in given.parameters.items()})
    return part, given


def drawn(rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Array]:
    """Draw query (3, 5, 6), key and value (3, 7, 6) and a ragged mask."""
    keep = rng.random((3, 1, 1, 7)) < 0.6
    keep[..., 2] = True
    keys, values = rng.normal(size=(2, 3, 7, 6))
    return rng.normal(size=(3, 5, 6)), keys, values, keep


def oracle(given: Setting, *inputs: Array) -> Floats:
    """Compute what is expected."""
    output: Floats = ORACLES["multi_head_attention"](given, *inputs)
    return output
