"""Whole models that are given lengths in the place of masks."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

SOURCE = (SUPPORT / "wild_models" / "by_lengths.py").read_text()
CLAUSES = ("formula", "padding-in-a-batch", "pad-ids", "gradient-finite")
CUT = [
    ("hidden_after(ilens, xs_pad.size(1))", "hidden_after(ilens, int(ilens.max()))"),
    ("hidden_after(ys_in_lens, len(steps))", "hidden_after(ys_in_lens, int(ys_in_lens.max()))"),
]
"""Edits by which the longest length has to be that of the tokens."""


def read(folder: Path, *edits: tuple[str, str]) -> Backend:
    text = SOURCE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "by_lengths.py").write_text(text)
    return attentest.adapted(str(folder / "by_lengths.py:Seq2SeqTransformer"))


def broken(backend: Backend) -> list[str]:
    bench = Bench.for_status(backend, effort=0.2)
    verdicts = [judge(bench, f"model.{name}") for name in CLAUSES]
    assert verdicts[0].status.judged
    return [one.message for one in verdicts if one.status in (Status.VIOLATION, Status.ERROR)]


@share(3)
@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ((), "ilens: the number of tokens; (B,) (as probing calls show)"),
        (CUT, "columns that hold padding alone are cut off"),
        ([("ilens, ys_in_pad, ys_in_lens)", "ilens=None, ys_in_pad=None, ys_in_lens=None)")], ""),
    ],
)
def test_models_that_are_given_lengths_are_read_and_conform(
    edits: list[tuple[str, str]], said: str, tmp_path: Path
) -> None:
    backend = read(tmp_path, *edits)
    understood = "\n".join(backend.understood)
    assert "source=xs_pad, target=ys_in_pad" in understood
    assert said in understood
    assert sorted(backend.limits.right_padded) == ["source", "target"]
    assert not broken(backend)


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    "edits",
    [
        [(") >= lengths", ") > lengths")],
        [*CUT, (") >= lengths", ") > lengths")],
        [("hidden_after(ilens", "hidden_after(ys_in_lens")],
    ],
)
def test_mistakes_in_models_that_are_given_lengths_are_detected(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert broken(read(tmp_path, *edits))


ONE_TABLE = [
    ("idim,\n        odim,", "vocab_size,"),
    (
        "self.embed_x, self.embed_y = nn.Embedding(idim, adim), nn.Embedding(odim, adim)",
        "self.embed_x = self.embed_y = nn.Embedding(vocab_size, adim)",
    ),
    ("nn.Linear(adim, odim)", "nn.Linear(adim, vocab_size)"),
    (
        "xs, ys = self.dropout(xs)",
        "xs, ys = self.after_norm_x(xs), self.after_norm_y(ys)\n        #",
    ),
    ("memory = self.after_norm_x(xs)", "memory = xs"),
    ("self.output_layer(self.after_norm_y(ys))", "self.output_layer(ys)"),
]
"""Edits by which both sides have one table, and norms before the layers and none after them."""


@pytest.mark.proof
def test_norms_before_the_layers_are_those_of_the_embeddings_whatever_they_are_called(
    tmp_path: Path,
) -> None:
    backend = read(tmp_path, *ONE_TABLE)
    assert backend.choices["embedding_norm"] == "present"
    assert not broken(backend)
    wrong = ("self.after_norm_x(xs), self.after_norm_y(ys)", "xs, self.after_norm_y(ys)")
    with pytest.raises(Unclear, match="after_norm_x"):
        read(tmp_path, *ONE_TABLE, wrong)


@pytest.mark.exhaustive
def test_a_model_that_hides_later_steps_alone_is_one_question(tmp_path: Path) -> None:
    text = SOURCE.replace("xs_pad", "src").replace("ys_in_pad", "tgt")
    for old, new in (
        ("src, ilens, tgt, ys_in_lens", "src, tgt"),
        ("hidden_after(ilens, src.size(1))", "torch.zeros(1, dtype=torch.bool)"),
        ("hidden_after(ys_in_lens, len(steps)) | (steps", "(steps"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "by_lengths.py").write_text(text)
    target = str(tmp_path / "by_lengths.py:Seq2SeqTransformer")
    with pytest.raises(Unclear, match="hides later steps and no padding"):
        attentest.adapted(target)
    assert broken(attentest.adapted(target, anyway=True))
