"""Code that moves itself or its tables by `cuda()`, where torch is built without CUDA."""

from pathlib import Path

import pytest
import torch
from mistaken_code import adapted, broken, edited
from test_layouts_and_batches_of_models import BACK, FORMULA, MODEL

pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor"),
    pytest.mark.skipif(torch.version.cuda is not None, reason="cuda() moves"),
]

MOVING = edited(
    MODEL,
    BACK,
    ("dtype=torch.bool, device=src.device).triu(1)", "dtype=torch.bool).triu(1).cuda()"),
    (
        "self.head = nn.Linear(d_model, tgt_vocab)",
        "self.head = nn.Linear(d_model, tgt_vocab).cuda()",
    ),
)
SAID = "assumed that .cuda() in Translator leaves what it moves where all else is"


def test_moves_to_a_missing_gpu_leave_all_on_the_cpu(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Translator", MOVING)
    assert any(one.startswith(SAID) for one in backend.assumed)  # type: ignore[attr-defined]
    assert not backend.limits.any_device
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_mistakes_of_code_that_moves_are_detected(tmp_path: Path) -> None:
    wrong = edited(MOVING, (".triu(1).cuda()", ".triu(2).cuda()"))
    assert broken(adapted(tmp_path, "Translator", wrong), FORMULA)


def test_move_under_a_condition_is_no_assumption(tmp_path: Path) -> None:
    line = "        return self.head(states).transpose(0, 1)"
    guarded = edited(MODEL, (BACK[0], "if src.is_cuda:\n            src = src.cuda()\n" + line))
    backend = adapted(tmp_path, "Translator", guarded)
    assert not any(".cuda()" in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert backend.limits.any_device
