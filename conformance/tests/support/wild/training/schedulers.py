"""Correct schedules that count their own steps, in the styles of published code."""

import math

from torch.optim.lr_scheduler import LambdaLR, LinearLR, LRScheduler, SequentialLR


class NoamOpt:
    """An optimiser that sets the rate itself."""

    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer = optimizer
        self._step = 0
        self.warmup = warmup
        self.factor = factor
        self.model_size = model_size
        self._rate = 0

    def step(self):
        self._step += 1
        rate = self.rate()
        for p in self.optimizer.param_groups:
            p["lr"] = rate
        self._rate = rate
        self.optimizer.step()

    def rate(self, step=None):
        if step is None:
            step = self._step
        shape = min(step ** (-0.5), step * self.warmup ** (-1.5))
        return self.factor * (self.model_size ** (-0.5) * shape)


class ScheduledOptim:
    """A wrapper with a method of its own name."""

    def __init__(self, optimizer, lr_mul, d_model, n_warmup_steps):
        self._optimizer = optimizer
        self.lr_mul = lr_mul
        self.d_model = d_model
        self.n_warmup_steps = n_warmup_steps
        self.n_steps = 0

    def step_and_update_lr(self):
        self._update_learning_rate()
        self._optimizer.step()

    def zero_grad(self):
        self._optimizer.zero_grad()

    def _get_lr_scale(self):
        steps, warmup = self.n_steps, self.n_warmup_steps
        return (self.d_model**-0.5) * min(steps ** (-0.5), steps * warmup ** (-1.5))

    def _update_learning_rate(self):
        self.n_steps += 1
        lr = self.lr_mul * self._get_lr_scale()
        for param_group in self._optimizer.param_groups:
            param_group["lr"] = lr


class NoamLR(LRScheduler):
    """The rate of the paper, whatever rate the optimiser begins with."""

    def __init__(self, optimizer, d_model, warmup_steps=4000, last_epoch=-1):
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        step = self._step_count
        lr = self.d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)
        return [lr for _ in self.base_lrs]


class InverseSquareRootLR(LRScheduler):
    def __init__(self, optimizer, warmup_steps, last_epoch=-1):
        self.warmup_steps = warmup_steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        step = self.last_epoch + 1
        scale = min(step / self.warmup_steps, (self.warmup_steps / step) ** 0.5)
        return [base * scale for base in self.base_lrs]


class WarmupLinearSchedule(LambdaLR):
    def __init__(self, optimizer, warmup_steps, t_total, last_epoch=-1):
        self.warmup_steps = warmup_steps
        self.t_total = t_total
        super().__init__(optimizer, self.lr_lambda, last_epoch=last_epoch)

    def lr_lambda(self, step):
        if step < self.warmup_steps:
            return float(step) / float(max(1, self.warmup_steps))
        left = float(self.t_total - step)
        return max(0.0, left / float(max(1.0, self.t_total - self.warmup_steps)))


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        done = current_step - num_warmup_steps
        progress = min(1.0, float(done) / float(max(1, num_training_steps - num_warmup_steps)))
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))

    return LambdaLR(optimizer, lr_lambda)


def get_linear_scheduler(optimizer, warmup_steps, total_steps):
    """A list of two schedulers of torch; counted from 1."""
    up = LinearLR(optimizer, start_factor=1 / warmup_steps, total_iters=warmup_steps - 1)
    rest = total_steps - warmup_steps
    down = LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=rest)
    return SequentialLR(optimizer, [up, down], milestones=[warmup_steps - 1])


def constant_with_warmup(optimizer, num_warmup_steps):
    return LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / num_warmup_steps))


def build_scheduler(optimizer, d_model, warmup):
    return LambdaLR(
        optimizer, lambda i: d_model**-0.5 * min((i + 1) ** -0.5, (i + 1) * warmup**-1.5)
    )


class CosineWarmupScheduler:
    """A scheduler of its own, with no base class."""

    def __init__(self, optimizer, warmup_iters, max_iters, max_lr):
        self.optimizer = optimizer
        self.warmup_iters, self.max_iters, self.max_lr = warmup_iters, max_iters, max_lr
        self.it = 1
        self._apply()

    def current_lr(self):
        if self.it < self.warmup_iters:
            return self.max_lr * self.it / self.warmup_iters
        if self.it >= self.max_iters:
            return 0.0
        ratio = (self.it - self.warmup_iters) / (self.max_iters - self.warmup_iters)
        return self.max_lr * 0.5 * (1.0 + math.cos(math.pi * ratio))

    def _apply(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.current_lr()

    def step(self):
        self.it += 1
        self._apply()


class LinearWarmupOptimizer:
    """Warms up, and is constant after it."""

    def __init__(self, optim, warmup, lr):
        self.optim, self.warmup, self.lr, self.n = optim, warmup, lr, 0

    def step(self, closure=None):
        self.n += 1
        for group in self.optim.param_groups:
            group["lr"] = self.lr * min(1.0, self.n / self.warmup)
        return self.optim.step(closure)


class TransformerLR(LRScheduler):
    """Multiplies the base rates, which are meant to be 1."""

    def __init__(self, optimizer, dim_model, warmup_steps):
        self.scale = dim_model**-0.5
        self.warmup_steps = warmup_steps
        super().__init__(optimizer)

    def get_lr(self):
        n = self.last_epoch + 1
        now = self.scale * min(n**-0.5, n * self.warmup_steps**-1.5)
        return [base_lr * now for base_lr in self.base_lrs]
