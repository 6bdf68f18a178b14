"""Correct schedules of the learning rate in the styles of published code."""

import math

import numpy as np
import torch


def noam(step, d_model=512, factor=1.0, warmup=4000):
    if step == 0:
        step = 1
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


class CustomSchedule:
    """TF tutorial."""

    def __init__(self, d_model, warmup_steps=4000):
        self.d_model, self.warmup_steps = d_model, warmup_steps

    def __call__(self, step):
        step = float(step)
        arg1 = step**-0.5
        arg2 = step * (self.warmup_steps**-1.5)
        return self.d_model**-0.5 * min(arg1, arg2)


def lr_lambda(current_step, num_warmup_steps, num_training_steps):
    if current_step < num_warmup_steps:
        return current_step / max(1, num_warmup_steps)
    return max(
        0.0, (num_training_steps - current_step) / max(1, num_training_steps - num_warmup_steps)
    )


def cosine_lr(step, warmup_steps, total_steps, base_lr=1.0):
    if step < warmup_steps:
        return base_lr * step / warmup_steps
    p = (step - warmup_steps) / (total_steps - warmup_steps)
    return base_lr * 0.5 * (1 + math.cos(math.pi * p))


def inverse_sqrt(step, warmup, lr=1.0):
    return lr * min(step / warmup, math.sqrt(warmup / step))


def np_schedule(step, d_model, warmup_steps):
    return np.power(d_model, -0.5) * np.minimum(
        np.power(float(step), -0.5), step * np.power(float(warmup_steps), -1.5)
    )


def torch_schedule(step, d_model, warmup_steps):
    step = torch.tensor(float(step), dtype=torch.float64)
    return d_model**-0.5 * torch.minimum(step.rsqrt(), step * warmup_steps**-1.5)
