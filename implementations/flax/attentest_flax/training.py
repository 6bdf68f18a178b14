"""The loss, the schedule, the optimiser and the clipping of optax, the optimisers of JAX."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.jax import Recipe


def sizes_alone(sizes: Sizes, dtype: Any) -> Sizes:
    """Return what an optimiser is built from."""
    return sizes


def loss(
    sizes: Sizes, parameters: Any, key: Any, output: jax.Array, target: jax.Array
) -> jax.Array:
    """Return the mean over the targets (B, T) that are no padding, for logits (B, T, V)."""
    words = jax.nn.one_hot(target, output.shape[-1], dtype=output.dtype)
    losses = optax.softmax_cross_entropy(output, optax.smooth_labels(words, sizes.smoothing))
    return losses.mean(where=target != sizes.target_pad)


def schedule(sizes: Sizes, dtype: Any) -> Any:
    """Build the cosine with a warm-up."""
    return optax.warmup_cosine_decay_schedule(
        0.0, sizes.factor, sizes.warmup, decay_steps=sizes.total_steps
    )


def rate(built: Any, parameters: Any, key: Any, step: int) -> Any:
    """Return the rate of the update number `step`; optax counts from 0, so that 0 is before all."""
    if step < 1:
        raise ValueError(f"The step is {step}; the first one is 1.")
    return jnp.asarray(built(step - 1))


def updates(
    sizes: Sizes,
    parameters: Any,
    key: Any,
    values: jax.Array,
    gradients: jax.Array,
    rates: jax.Array,
) -> Any:
    """Return the parameters (T, N) after each update, at the rate of its count."""
    adam = optax.adamw(
        lambda count: rates[count], b2=0.98, eps=1e-9, weight_decay=sizes.weight_decay
    )

    def update(held: Any, gradient: jax.Array) -> Any:
        values, state = held
        moves, state = adam.update(gradient, state, values)
        values = optax.apply_updates(values, moves)
        return (values, state), values

    return jax.lax.scan(update, (values, adam.init(values)), gradients)[1]


def clipped(
    sizes: Sizes,
    parameters: Any,
    key: Any,
    gradients: jax.Array,
    groups: jax.Array,
    limit: jax.Array,
) -> Any:
    """Return the gradients (N,), clipped as a tree of arrays.

    Shapes are fixed when code is compiled, and the sizes of the groups are not: each array of the
    tree has the gradients of one group, and zeros in the places of the others.
    """
    owners = jnp.repeat(jnp.arange(len(groups)), groups, total_repeat_length=len(gradients))
    tree = [jnp.where(owners == one, gradients, 0) for one in range(len(groups))]
    clip = optax.clip_by_global_norm(limit.astype(gradients.dtype))
    return sum(clip.update(tree, clip.init(tree))[0])


CHOICES: dict[str, Value] = {
    "loss_input": "logits",
    "smoothed_mass": "all-words",
    "loss_normaliser": "tokens",
    "loss_measure": "cross-entropy",
    "loss_without_targets": "nan",
    "schedule": "cosine",
    "first_step": "zero",
    "weight_decay": "decoupled",
    "clip_epsilon": "none",
}
"""The choices of training."""

RECIPES = {
    "loss": Recipe(sizes_alone, call=loss),
    # A step is a number that a program is compiled for: a rate alone takes no time.
    "learning_rate": Recipe(schedule, call=rate, compiled=False),
    "optimiser": Recipe(sizes_alone, call=updates),
    "gradient_clipping": Recipe(sizes_alone, call=clipped),
}
"""The recipes of training."""
