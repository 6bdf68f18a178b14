"""Parts of a layer as JAX functions of trees of parameters."""

import jax
import jax.numpy as jnp

from attentest_spec import Choices
from attentest_spec.jax import JaxBackend, Recipe
from attentest_spec.parameters import shapes


def linear(own, x):
    y = x @ own["weight"].T
    return y + own["bias"] if "bias" in own else y


def norm(own, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return own["gain"] * (x - mean) / jnp.sqrt(variance + 1e-5) + own["bias"]


def feed_forward(own, x):
    hidden = jax.nn.relu(linear(own["inner"], x))
    return linear(own["outer"], hidden)


def split(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def attend(own, heads, query, key, value, mask):
    q = split(linear(own["query"], query), heads)
    k = split(linear(own["key"], key), heads)
    v = split(linear(own["value"], value), heads)
    logits = jnp.einsum("bhqe,bhke->bhqk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        logits = jnp.where(mask, logits, jnp.finfo(logits.dtype).min)
    weights = jax.nn.softmax(logits, axis=-1)
    mixed = jnp.einsum("bhqk,bhke->bqhe", weights, v)
    merged = mixed.reshape(*query.shape[:2], -1)
    return linear(own["output"], merged)


def encoder_layer(own, heads, x, mask):
    attended = attend(own["self_attention"], heads, x, x, x, mask)
    x = norm(own["self_attention_norm"], x + attended)
    changed = feed_forward(own["feed_forward"], x)
    return norm(own["feed_forward_norm"], x + changed)


def encoder(own, heads, x, mask):
    for number in range(len(own["layers"])):
        x = encoder_layer(own["layers"][str(number)], heads, x, mask)
    return x


def logits(own, x):
    return linear(own, x)


def tree(component, sizes, dtype):
    """Return the zeros of a component's parameters, by their canonical names."""
    found = {}
    for name, shape in shapes(component, sizes, Choices()).items():
        *path, last = name.split(".")
        inner = found
        for one in path:
            inner = inner.setdefault(one, {})
        inner[last] = jnp.zeros(shape, dtype)
    return found


class Names(dict):
    """Maps each canonical parameter to the leaf of the same name."""

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        return name

    def get(self, name, default=None):
        return name


def backend(component, call):
    recipe = Recipe(
        build=lambda sizes, dtype: (component, sizes, dtype),
        init=lambda built, key: tree(*built),
        call=lambda built, own, key, *inputs: call(own, built[1].heads, *inputs),
        parameters=Names({"": ""}),
    )
    return JaxBackend(name=component, title=f"{component} in JAX", recipes={component: recipe})


def plain(function):
    return lambda own, heads, x: function(own, x)


layer_normalisation = backend("layer_norm", plain(norm))
network = backend("feed_forward", plain(feed_forward))
attention = backend("multi_head_attention", attend)
layer = backend("encoder_layer", encoder_layer)
layers = backend("encoder", encoder)
generator = backend("generator", plain(logits))
