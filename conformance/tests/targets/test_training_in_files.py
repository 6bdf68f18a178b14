"""Parts of training and decoding in whole files, and helpers that only sound like them."""

import pytest
import torch

from attentest.targets.adapt.training.in_files import component_in_file


def get_lr(it, warmup_iters=100, lr_decay_iters=1000):
    return it / warmup_iters


def rate(step, model_size, factor, warmup):
    return factor * model_size**-0.5 * min(step**-0.5, step * warmup**-1.5)


def warmup_cosine(step, warmup, total):
    return step / warmup / total


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer = optimizer

    def step(self):
        self.optimizer.step()

    def rate(self, step=None):
        return step


class AdamW(torch.optim.Optimizer):
    def step(self):
        return None


def clip_grad_norm(parameters, max_norm):
    return parameters, max_norm


def greedy_decode_batch(model, src, max_len, start, end):
    return model, src, max_len, start, end


@pytest.mark.parametrize(
    ("thing", "component"),
    [
        (get_lr, "learning_rate"),
        (rate, "learning_rate"),
        (warmup_cosine, "learning_rate"),
        (NoamOpt, "learning_rate"),
        (AdamW, "optimiser"),
        (clip_grad_norm, "gradient_clipping"),
        (greedy_decode_batch, "greedy_decoding"),
    ],
)
def test_part_of_training_in_a_file_is_a_component(thing, component):
    assert component_in_file(thing.__name__, thing) == component


def train(model, steps=1000, warmup_steps=100, lr=1e-3):
    raise AssertionError("a helper ran")


def train_with_warmup(steps=1000, warmup=100):
    raise AssertionError("a helper ran")


def plot_lr_schedule(step=10, warmup=100):
    raise AssertionError("a helper ran")


def get_current_lr(optimizer):
    return optimizer.param_groups[0]["lr"]


def adjust_learning_rate(optimizer, epoch, lr):
    return optimizer, epoch, lr


def make_optimizer(model, lr):
    return torch.optim.AdamW(model.parameters(), lr=lr)


def sample_batch(data, size):
    return data[:size]


def run_greedy_decode(model):
    raise AssertionError("a helper ran")


class AdamConfig:
    betas = (0.9, 0.98)


class Trainer:
    def __init__(self, model, optimizer, warmup):
        self.model = model

    def step(self, batch):
        return batch


@pytest.mark.parametrize(
    "thing",
    [
        train,
        train_with_warmup,
        plot_lr_schedule,
        get_current_lr,
        adjust_learning_rate,
        make_optimizer,
        sample_batch,
        run_greedy_decode,
        AdamConfig,
        Trainer,
    ],
)
def test_helper_in_a_file_is_no_component(thing):
    assert component_in_file(thing.__name__, thing) == ""
