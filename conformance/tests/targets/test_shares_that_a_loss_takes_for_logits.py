"""Whole models that return shares where the code around them computes a cross-entropy."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited
from proof import share
from test_layouts_and_batches_of_models import BACK, MODEL

from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

SHARES = edited(MODEL, (BACK[0], "return self.head(states).transpose(0, 1).softmax(-1)"))
IN_EVALUATION = edited(
    MODEL,
    (
        BACK[0],
        "logits = self.head(states).transpose(0, 1)\n"
        "        return logits if self.training else logits.softmax(-1)",
    ),
)
TRAINING = """

def train(model, src, tgt):
    output = model(src, tgt[:, :-1])
    return nn.CrossEntropyLoss()(output.flatten(0, 1), tgt[:, 1:].flatten())
"""
OF_SHARES = TRAINING.replace("nn.CrossEntropyLoss()(output", "nn.NLLLoss()(output.log()")


def test_shares_of_a_model_trained_with_a_cross_entropy_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"CrossEntropyLoss \(line 29\), which takes logits"):
        adapted(tmp_path, "Translator", SHARES + TRAINING)


def test_training_in_another_file_is_read(tmp_path: Path) -> None:
    imports = "from own import Translator\nfrom torch import nn\n"
    (tmp_path / "train.py").write_text(imports + TRAINING)
    with pytest.raises(Unclear, match="CrossEntropyLoss"):
        adapted(tmp_path, "Translator", SHARES)


@share(2, rest=1)
@pytest.mark.parametrize(
    "source", [SHARES, SHARES + OF_SHARES, IN_EVALUATION + TRAINING, MODEL + TRAINING]
)
def test_shares_without_a_loss_of_logits_are_judged(source: str, tmp_path: Path) -> None:
    assert adapted(tmp_path, "Translator", source).components == ("model",)


def test_choice_of_output_judges_shares_as_they_are(tmp_path: Path) -> None:
    choices = {"output": "probabilities"}
    backend = adapted(tmp_path, "Translator", SHARES + TRAINING, choices=choices)
    assert backend.choices.get("output", "probabilities") == "probabilities"
