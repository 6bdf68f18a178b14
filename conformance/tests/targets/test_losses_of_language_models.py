"""The loss that a decoder-only model returns for labels is of the same token, or of the next."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from uuid import uuid4

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.targets.adapt.reading import Unclear
from attentest.targets.language_models.calling import Call
from attentest.targets.language_models.questions.labels import doubts_of_loss

SOURCE = (SUPPORT / "wild_language_models" / "mini.py").read_text()
LOSS = "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))"


def _file(folder: Path, scores: str, labels: str) -> str:
    assert LOSS in SOURCE
    given = f"{scores}.flatten(0, 1), {labels}.flatten()"
    (folder / "mini.py").write_text(SOURCE.replace(LOSS, f"loss = F.cross_entropy({given})"))
    return f"{folder / 'mini.py'}:GPT"


@pytest.mark.proof
@share(2, rest=1)
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


@pytest.mark.proof
def test_the_option_of_the_question_judges_without_the_loss(tmp_path: Path) -> None:
    target = _file(tmp_path, "logits[:, :-2]", "targets[:, 2:]")
    assert attentest.adapted(target, given={"targets": None}).name


@pytest.mark.proof
@share(4, rest=1)
@pytest.mark.parametrize(
    ("scores", "labels"),
    [("logits", "targets"), ("logits[:, :-1]", "targets[:, 1:]"), ("2 * logits", "targets")],
)
def test_the_usual_losses_and_others_are_read(scores: str, labels: str, tmp_path: Path) -> None:
    assert attentest.adapted(_file(tmp_path, scores, labels)).name


SMALL = """
import torch
from torch import nn
from torch.nn import functional as F


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(29, 8), nn.Linear(8, 29)

    def forward(self, ids, labels=None):
        DOCUMENTATION
        logits = self.head(self.table(ids))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(LOGITS.flatten(0, 1), LABELS.flatten(), ignore_index=0)
        return logits, loss
"""


def _doubts(folder: Path, *, ahead: int, words: str, call: str, cut: str = "labels") -> list[str]:
    """Return what is assumed of a model of embeddings, with further code in its file."""
    source = SMALL.replace("DOCUMENTATION", repr(words))
    source = source.replace("LOGITS", "logits[:, :-1]" if ahead or "-1" in cut else "logits")
    source = source.replace("LABELS", "labels[:, 1:]" if ahead else cut)
    path = folder / f"small_{uuid4().hex}.py"
    path.write_text(f"{source}\n\n{call}\n")
    spec = spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    home = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(home)
    try:
        return doubts_of_loss(
            "Small", home.Small, home.Small().double(), Call("ids", part=0), "labels"
        )
    finally:
        del sys.modules[path.stem]


SAME = "labels: the same ids as the tokens."
NEXT = "labels: (B, T), already shifted by one."
GIVEN = "def train(model, ids):\n    return model(ids, labels=ids)"
CUT = "def train(model, ids):\n    return model(ids[:, :-1], labels=ids[:, 1:])"


@pytest.mark.parametrize(
    ("ahead", "words", "call", "said"),
    [
        (0, SAME, "", "same ids as the tokens"),
        (
            0,
            "The labels are shifted inside the model, i.e. labels = input_ids",
            "",
            "shifted inside",
        ),
        (0, "", f"ids = [1]\n{GIVEN}", "gives it the ids themselves: each token predicts itself"),
        (1, NEXT, "", "already shifted"),
        (1, "", CUT, "the ids that come next: each token predicts the one two after"),
    ],
)
def test_labels_that_words_or_calls_contradict_are_asked_about(
    ahead: int, words: str, call: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match=said):
        _doubts(tmp_path, ahead=ahead, words=words, call=call)


@pytest.mark.parametrize(
    ("ahead", "words", "call", "assumed"),
    [
        (1, SAME, GIVEN, False),
        (0, NEXT, CUT, False),
        (1, "labels: of the same shape as the ids", "", False),
        (1, "labels: already shifted by one, or plain ones that are shifted inside", "", False),
        (0, "labels are not shifted inside the model.", "", True),
        (0, "", "other = print\n\ndef train(ids):\n    return other(ids, labels=ids)", True),
        (0, "", "ids = torch.randint(9, (2, 5))\nSmall()(ids, labels=ids)", True),
        (0, "", "", True),
    ],
)
def test_labels_that_nothing_contradicts_are_read(
    ahead: int, words: str, call: str, assumed: bool, tmp_path: Path
) -> None:
    found = _doubts(tmp_path, ahead=ahead, words=words, call=call)
    assert assumed == any("moved by one before they are given" in one for one in found)


@pytest.mark.proof
def test_labels_of_the_token_itself_are_an_assumption_of_a_model(tmp_path: Path) -> None:
    own = Path(_file(tmp_path, "logits", "targets").rpartition(":")[0])
    own.write_text(re.sub(r"\btargets\b", "labels", own.read_text()))
    made = attentest.adapted(f"{own}:GPT")
    assert any("assumed that labels are moved by one" in one for one in made.assumed)


def test_own_labels_without_the_last_token_are_asked_about(tmp_path: Path) -> None:
    """A loss that means to move its labels cuts the last one off, and moves none."""
    with pytest.raises(Unclear, match=r"the token itself, and leaves out the last .*labels=None"):
        _doubts(tmp_path, ahead=0, words="", call="", cut="labels[:, :-1]")
    assert not _doubts(tmp_path, ahead=0, words=NEXT, call="", cut="labels[:, :-1]")


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        ("logits.softmax(-1)", "targets", "that of their softmax, taken for logits"),
        ("logits", "targets.roll(-1, dims=1)", "of which the first is moved to the end"),
        pytest.param("2 * logits", "targets", "another one", marks=pytest.mark.proof),
    ],
)
def test_another_loss_is_an_assumption_that_names_it(
    scores: str, labels: str, words: str, tmp_path: Path
) -> None:
    backend = attentest.adapted(_file(tmp_path, scores, labels))
    (found,) = [one for one in backend.assumed if "not the mean cross entropy of its" in one]
    assert words in found


@pytest.mark.proof
def test_losses_that_are_the_mean_cross_entropy_are_no_such_assumption(tmp_path: Path) -> None:
    for ahead in ("", "[:, 1:]"):
        target = _file(tmp_path, f"logits{ahead and '[:, :-1]'}", f"targets{ahead}")
        assert not any("not the mean cross" in one for one in attentest.adapted(target).assumed)
