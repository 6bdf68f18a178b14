"""Losses, schedules, optimisers and searches as people write them: no correct one is blamed.

Every clause of the component is judged, those about wrong inputs and about the process included.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.plan import select
from attentest.targets.adapt import Reading, Unclear
from attentest.targets.adapt.adaptation import adapt

FOLDER = SUPPORT / "wild" / "training"
SEARCH = {"component": "greedy_decoding"}

CORRECT: list[tuple[str, str, dict[str, Any], str]] = [
    ("losses", "criterion", {}, "the pad id is always 0"),
    ("losses", "smooth_criterion", {}, "the pad id is always 1"),
    ("losses", "cal_loss", {}, "--give smoothing=True judges it with smoothing"),
    ("losses", "cal_loss", {"given": {"smoothing": True}}, "its label smoothing is always 0.1"),
    ("losses", "masked_loss", {}, "pad=target_pad"),
    ("losses", "LabelSmoother", {}, ""),
    ("losses", "compute_loss", {}, ""),
    ("losses", "sequence_loss", {}, ""),
    ("losses", "CELoss", {}, ""),
    ("losses", "XentLoss", {}, "it computes in float32, in part at least"),
    ("losses", "cross_entropy_loss", {}, "mask: keep"),
    ("losses", "loss_fn", {}, "writes padding as"),
    ("losses", "lm_loss", {}, "it computes in float32, in part at least"),
    ("losses", "MaskedXent", {}, "loss_input: logits"),
    ("losses", "nll_from_probs", {}, "loss_input: probabilities"),
    ("schedules", "noam", {}, "steps count from 1"),
    ("schedules", "CustomSchedule", {}, ""),
    ("schedules", "lr_lambda", {}, "schedule=linear"),
    ("schedules", "cosine_lr", {}, "schedule=cosine"),
    ("schedules", "inverse_sqrt", {}, "schedule=inverse-root"),
    ("schedules", "np_schedule", {}, ""),
    ("schedules", "torch_schedule", {}, ""),
    ("schedulers", "NoamOpt", {}, "step is called once for each update"),
    ("schedulers", "ScheduledOptim", {}, "step_and_update_lr is called once"),
    ("schedulers", "NoamLR", {}, ""),
    ("schedulers", "InverseSquareRootLR", {}, "schedule=inverse-root"),
    ("schedulers", "WarmupLinearSchedule", {}, "assumed first_step=zero"),
    ("schedulers", "get_cosine_schedule_with_warmup", {}, "schedule=cosine"),
    ("schedulers", "get_linear_scheduler", {}, "schedule=linear"),
    ("schedulers", "constant_with_warmup", {}, "schedule=constant"),
    ("schedulers", "build_scheduler", {}, ""),
    ("schedulers", "CosineWarmupScheduler", {}, ""),
    ("schedulers", "LinearWarmupOptimizer", {}, ""),
    ("schedulers", "TransformerLR", {}, "factor=the optimiser's rate"),
    ("optimisers", "MyAdam", {}, "where it is given, it is decoupled"),
    ("optimisers", "MyAdam", {"choices": {"weight_decay": "decoupled"}}, "decoupled"),
    ("optimisers", "NumpyAdam", {}, ""),
    ("optimisers", "MyAdamW", {}, "weight_decay=decoupled"),
    ("optimisers", "clip_grad_norm", {}, ""),
    ("optimisers", "clip_gradients", {}, ""),
    ("searches", "greedy_end", SEARCH, ""),
    ("searches", "greedy_pad", SEARCH, ""),
    ("searches", "greedy_one", SEARCH, "one sequence at a time"),
    ("searches", "translate", SEARCH, "its length counts new tokens alone"),
    ("searches", "generate", SEARCH, "its caller cuts a sequence after its end token"),
    ("searches", "batch_greedy", SEARCH, ""),
    ("searches", "GreedyDecoder", {}, "source=src"),
    ("searches", "Translator", SEARCH, "a result that is shorter ended there"),
    ("searches", "text_of", SEARCH, "a result that is shorter ended there"),
]

WRONG: list[tuple[str, str, dict[str, Any], str, str, str]] = [
    ("losses", "cal_loss", {}, "ignore_index=trg_pad_idx", "ignore_index=0", "pad"),
    ("losses", "compute_loss", {}, "keep.sum().clamp(min=1)", "keep.numel()", "normaliser"),
    ("losses", "sequence_loss", {}, "lp, t = lp[keep], t[keep]", "pass", "padding"),
    ("losses", "XentLoss", {}, "self.smoothing / (vocab_size - 2)", "self.smoothing", "formula"),
    (
        "losses",
        "MaskedXent",
        {},
        "torch.logsumexp(logits, -1)",
        "logits.exp().sum(-1).log()",
        "large",
    ),
    ("losses", "nll_from_probs", {}, "chosen[y.ne(pad_idx)]", "chosen", "normaliser"),
    ("schedules", "np_schedule", {}, "np.power(d_model, -0.5)", "np.power(d_model, 0.5)", "peak"),
    ("schedules", "torch_schedule", {}, "warmup_steps**-1.5", "warmup_steps**-0.5", "warm-up"),
    ("schedulers", "NoamOpt", {}, "rate = self.rate()", "rate = self.rate(1)", "formula"),
    ("schedulers", "ScheduledOptim", {}, "self.n_steps += 1", "self.n_steps = 1", "formula"),
    ("schedulers", "NoamOpt", {}, "        self.optimizer.step()\n", "", "formula"),
    ("schedulers", "NoamLR", {}, "self._step_count", "self._step_count + 1", "first-step"),
    ("schedulers", "TransformerLR", {}, "dim_model**-0.5", "dim_model**0.5", "width"),
    ("schedulers", "InverseSquareRootLR", {}, "/ step) ** 0.5", "/ step)", "question"),
    ("schedulers", "build_scheduler", {}, "(i + 1)", "max(i, 1)", "question"),
    ("schedulers", "build_scheduler", {}, "warmup**-1.5", "warmup**-1.0", "peak"),
    ("optimisers", "NumpyAdam", {}, "(1 - self.beta2**self.t)", "1.0", "question"),
    ("optimisers", "MyAdam", {}, 'p.mul_(1 - group["lr"] * ', "p.mul_(1 - ", "question"),
    (
        "optimisers",
        "MyAdam",
        {"choices": {"weight_decay": "decoupled"}},
        'p.mul_(1 - group["lr"] * ',
        "p.mul_(1 - ",
        "weight-decay",
    ),
    ("optimisers", "MyAdam", {}, 'st["t"] += 1', 'st["t"] = 1', "formula"),
    ("optimisers", "MyAdamW", {}, "torch.optim.AdamW", "torch.optim.Adam", "question"),
    ("optimisers", "clip_gradients", {}, "if norm > clip", "if norm < clip", "clipping-formula"),
    ("searches", "greedy_pad", SEARCH, "finished | (nxt == eos_idx)", "finished", "after-end"),
    ("searches", "translate", SEARCH, "row.index(eos_id)]", "row.index(eos_id) - 1]", "formula"),
    ("searches", "generate", SEARCH, ".any(dim=1).all()", ".any(dim=1).any()", "stay-finished"),
    ("searches", "greedy_end", SEARCH, "max_len - 1", "max_len - 2", "question"),
    ("searches", "Translator", SEARCH, "return words", "return words[:-1]", "formula"),
    ("searches", "text_of", SEARCH, "out[0, 1:]", "out[0, 1:-1]", "formula"),
    ("searches", "text_of", SEARCH, "if word.item() == eos", "if word.item() != eos", "question"),
]


def module_of(name: str, text: str | None = None) -> ModuleType:
    """Load a file of the folder, or `text` in its place."""
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"training_{name}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    exec(compile(text or path.read_text(), str(path), "exec"), vars(module))
    return module


def judged(module: ModuleType, name: str, reading: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the backend of `name`, and the verdicts on it from few examples."""
    backend = adapt(getattr(module, name), Reading(**reading), name, module)
    bench = Bench.for_status(backend, effort=0.0)
    return backend, {slug: judge(bench, slug) for slug in select(list(backend.components), ())}


@share(10)
@pytest.mark.parametrize(("file", "name", "reading", "said"), CORRECT)
def test_correct_training_code_is_not_blamed(
    file: str, name: str, reading: dict[str, Any], said: str
) -> None:
    backend, verdicts = judged(module_of(file), name, reading)
    assert {slug: one.message for slug, one in verdicts.items() if one.status.fails} == {}
    assert sum(one.status.value == "pass" for one in verdicts.values()) > 5
    assert said in "\n".join([*backend.understood, *map(str, backend.choices.items())])


@share(6)
@pytest.mark.parametrize(("file", "name", "reading", "old", "new", "clause"), WRONG)
def test_mistake_in_the_same_style_is_found_or_asked_about(
    file: str, name: str, reading: dict[str, Any], old: str, new: str, clause: str
) -> None:
    text = (FOLDER / f"{file}.py").read_text()
    assert old in text
    module = module_of(file, text.replace(old, new))
    if clause == "question":
        with pytest.raises(Unclear):
            judged(module, name, reading)
        return
    _, verdicts = judged(module, name, reading)
    failing = [slug for slug, one in verdicts.items() if one.status.fails]
    assert any(clause in slug for slug in failing), failing


LISTED = """
import torch


def gradient_clipping(parameters: list[torch.nn.Parameter], max_l2_norm: float) -> None:
    total = sum((one.grad**2).sum() for one in parameters if one.grad is not None) ** 0.5
    if total > max_l2_norm:
        for one in parameters:
            if one.grad is not None:
                one.grad = one.grad * (max_l2_norm / (total + 1e-6))
"""


@pytest.mark.parametrize(
    ("annotation", "conforms"),
    [
        ("list[torch.nn.Parameter]", True),
        ("'tuple[torch.nn.Parameter, ...]'", True),
        ("'typing.Sequence[torch.nn.Parameter]'", True),
        ("'typing.Iterable[torch.nn.Parameter]'", False),
    ],
)
def test_parameters_that_are_listed_may_be_read_twice(
    annotation: str, conforms: bool, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(LISTED.replace("list[torch.nn.Parameter]", annotation))
    report = attentest.check(
        f"{tmp_path / 'own.py'}:gradient_clipping", clauses=["optimiser.clipping-formula"]
    )
    assert report.conforms is conforms


SINGLE_NORM = """
import torch


def clip_gradients(parameters, max_l2_norm):
    held = [one for one in parameters if one.grad is not None]
    total = torch.tensor(0.0)
    for one in held:
        total += (one.grad.detach().float() ** 2).sum()
    factor = max_l2_norm / (total.sqrt() + 1e-6)
    if factor < 1.0:
        for one in held:
            one.grad.detach().mul_(factor)
"""


@pytest.mark.parametrize(("changed", "conforms"), [("** 2", True), ("** 2 * 1.01", False)])
def test_a_norm_of_gradients_in_single_precision_is_judged_in_that(
    changed: str, conforms: bool, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(SINGLE_NORM.replace("** 2", changed))
    target = f"{tmp_path / 'own.py'}:clip_gradients"
    backend = attentest.adapted(target)
    assert ("float64" in backend.limits.precisions) is not conforms
    report = attentest.check(target, clauses=["optimiser.clipping-formula"])
    assert report.conforms is conforms
    assert "float64" in attentest.adapted(target, strict=True).limits.precisions
