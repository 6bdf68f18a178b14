"""The loss that a decoder-only model returns for labels is of the same token, or of the next."""

from pathlib import Path

import pytest
from folders import SUPPORT

import attentest
from attentest.targets.adapt.reading import Unclear

SOURCE = (SUPPORT / "wild_language_models" / "mini.py").read_text()
LOSS = "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))"


def _file(folder: Path, scores: str, labels: str) -> str:
    assert LOSS in SOURCE
    given = f"{scores}.flatten(0, 1), {labels}.flatten()"
    (folder / "mini.py").write_text(SOURCE.replace(LOSS, f"loss = F.cross_entropy({given})"))
    return f"{folder / 'mini.py'}:GPT"


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        ("logits[:, :-2]", "targets[:, 2:]", "2 after it"),
        ("logits[:, 1:]", "targets[:, :-1]", "1 before it"),
    ],
)
def test_a_loss_of_another_token_is_asked_about(
    scores: str, labels: str, words: str, tmp_path: Path
) -> None:
    target = _file(tmp_path, scores, labels)
    with pytest.raises(Unclear, match=words):
        attentest.adapted(target)


def test_the_option_of_the_question_judges_without_the_loss(tmp_path: Path) -> None:
    target = _file(tmp_path, "logits[:, :-2]", "targets[:, 2:]")
    assert attentest.adapted(target, given={"targets": None}).name


@pytest.mark.parametrize(
    ("scores", "labels"),
    [("logits", "targets"), ("logits[:, :-1]", "targets[:, 1:]"), ("2 * logits", "targets")],
)
def test_the_usual_losses_and_others_are_read(scores: str, labels: str, tmp_path: Path) -> None:
    assert attentest.adapted(_file(tmp_path, scores, labels)).name
