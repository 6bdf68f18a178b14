"""Schedules whose warm-up is a share of all steps: between 0 and 1, and not a number of them."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

PROGRESS = """
class WarmupLinearSchedule:
    def __init__(self, warmup=0.002, t_total=-1):
        if not 0.0 <= warmup < 1.0:
            raise ValueError(warmup)
        self.warmup, self.t_total = warmup, t_total

    def get_lr(self, step):
        progress = step / self.t_total
        if progress < self.warmup:
            return progress / self.warmup
        return max((progress - 1.0) / (self.warmup - 1.0), 0.0)
"""
RATIO = """
def get_lr(step, total_steps, warmup_ratio, max_lr):
    warm = int(total_steps * warmup_ratio)
    if step < warm:
        return max_lr * step / warm
    return max_lr * max(0.0, (total_steps - step) / (total_steps - warm))
"""
STEPPED = """
from torch.optim.lr_scheduler import LambdaLR


def warmed_up(optimizer, num_training_steps, warmup_proportion=0.1):
    def rate(step):
        share = step / num_training_steps
        if share < warmup_proportion:
            return share / warmup_proportion
        return max(0.0, (1.0 - share) / (1.0 - warmup_proportion))

    return LambdaLR(optimizer, rate)
"""
CODES = {
    "WarmupLinearSchedule": (PROGRESS, "progress / self.warmup", "progress"),
    "get_lr": (RATIO, "(total_steps - warm)", "total_steps"),
    "warmed_up": (STEPPED, "share / warmup_proportion", "step * warmup_proportion"),
}
CLAUSES = ("schedule.shape", "schedule.first-step")


@pytest.mark.parametrize("name", CODES)
def test_warm_up_as_a_share_is_judged_and_a_mistake_in_it_is_not_passed(tmp_path, name):
    code, right, wrong = CODES[name]
    backend = adapted(tmp_path, name, code)
    assert backend.choices["schedule"] == "linear"
    assert not broken(backend, *CLAUSES)
    (tmp_path / "mistaken").mkdir()
    assert asked_or_broken(tmp_path / "mistaken", name, code, right, wrong, *CLAUSES)


def test_share_is_written_as_code(tmp_path):
    written = adapted(tmp_path, "get_lr", RATIO).written()
    assert "warmup_ratio=share_of(sizes.warmup, sizes.total_steps)" in written
    compile(written, "written", "exec")
