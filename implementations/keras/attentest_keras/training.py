"""The loss, the schedule, the optimiser and the clipping of Keras, called with torch's tensors.

A loss computes in a dtype of its own, and not in that of its inputs: it is that of the policy.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attentest_keras.library import keras
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe


class Loss:
    """The cross-entropy with a weight of 0 for padding, divided by the sum of the weights."""

    def __init__(self, sizes: Sizes) -> None:
        """Build it in the dtype of the policy."""
        self.pad = sizes.target_pad
        self.compare = keras.losses.CategoricalCrossentropy(
            from_logits=True,
            label_smoothing=sizes.smoothing,
            reduction="mean_with_sample_weight",
            dtype=keras.config.dtype_policy(),
        )

    def __call__(self, output: Tensor, target: Tensor) -> Any:
        """Return the loss of logits (B, T, V) and targets (B, T)."""
        with keras.device(output.device.type):
            words = keras.ops.one_hot(target, output.shape[-1])
            return self.compare(words, output, sample_weight=target != self.pad)


def schedule(sizes: Sizes) -> Any:
    """Build the cosine with a warm-up."""
    return keras.optimizers.schedules.CosineDecay(
        0.0,
        sizes.total_steps - sizes.warmup,
        warmup_target=sizes.factor,
        warmup_steps=sizes.warmup,
    )


def rate(built: Any, step: int) -> float:
    """Return the rate of the update number `step`; Keras counts from 0, so that 0 is before all."""
    if step < 1:
        raise ValueError(f"The step is {step}; the first one is 1.")
    with keras.device("cpu"):
        return float(built(step - 1))


def adamw(sizes: Sizes, arrays: Sequence[Any], kinds: Sequence[int]) -> Any:
    """Build AdamW over variables, of which weights alone decay."""
    optimizer = keras.optimizers.AdamW(beta_2=0.98, epsilon=1e-9, weight_decay=sizes.weight_decay)
    still = [one for one, kind in zip(arrays, kinds, strict=True) if kind]
    optimizer.exclude_from_weight_decay(var_list=still)
    optimizer.build(arrays)
    return optimizer


def updates(sizes: Sizes, values: Tensor, gradients: Tensor, rates: Tensor) -> Tensor:
    """Return the parameters (T, N) of one variable after each update."""
    whole, present = torch.tensor([len(values)]), torch.ones(len(rates), 1)
    return grouped(sizes, values, gradients, rates, whole, torch.tensor([0]), present, 0)


def grouped(
    sizes: Sizes,
    values: Tensor,
    gradients: Tensor,
    rates: Tensor,
    groups: Tensor,
    kinds: Tensor,
    present: Tensor,
    saved: int,
) -> Tensor:
    """Return the parameters (T, N) of several variables after each update."""
    with keras.device(values.device.type), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of gradients that are absent
        arrays = [keras.Variable(one.clone()) for one in torch.split(values, groups.tolist())]
        optimizer, found = adamw(sizes, arrays, kinds.tolist()), []
        for number, rate in enumerate(rates.tolist()):
            optimizer.learning_rate = rate
            parts = zip(
                torch.split(gradients[number], groups.tolist()), present[number], strict=True
            )
            optimizer.apply([part.clone() if there else None for part, there in parts], arrays)
            found.append(torch.cat([one.value.detach().clone() for one in arrays]))
            if number + 1 == saved:
                state: dict[str, Any] = {}
                optimizer.save_own_variables(state)
                optimizer = adamw(sizes, arrays, kinds.tolist())
                optimizer.load_own_variables(state)
        return torch.stack(found)


def clipped(sizes: Sizes, gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
    """Return the gradients (N,) by which a step at the rate 1 moves several variables from 0."""
    parts = torch.split(gradients, groups.tolist())
    with keras.device(gradients.device.type):
        held = [keras.Variable(torch.zeros_like(one)) for one in parts]
        descent = keras.optimizers.SGD(1.0, global_clipnorm=float(limit))
        descent.apply([one.clone() for one in parts], held)
        return torch.cat([-one.value.detach() for one in held])


CHOICES: dict[str, Value] = {
    "loss_input": "logits",
    "smoothed_mass": "all-words",
    "loss_normaliser": "tokens",
    "loss_measure": "cross-entropy",
    "loss_without_targets": "zero",
    "schedule": "cosine",
    "first_step": "zero",
    "adam_epsilon_place": "uncorrected",
    "weight_decay": "decoupled",
    "decay_groups": "weights",
    "update_count": "all",
    "clip_epsilon": "none",
}
"""The choices of training."""

RECIPES = {
    "loss": Recipe(Loss),
    "learning_rate": Recipe(schedule, rate),
    "optimiser": Recipe(lambda sizes: sizes, updates),
    "grouped_optimiser": Recipe(lambda sizes: sizes, grouped),
    "gradient_clipping": Recipe(lambda sizes: sizes, clipped),
}
"""The recipes of training."""
