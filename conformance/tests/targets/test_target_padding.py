"""Whole models that leave the target's padding visible: at its end no real step sees it."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

WILD = SUPPORT / "wild_models"
HIDDEN = ("tgt_key_padding_mask=hidden,", "")
FAILING = {"violation", "error"}


def edited(file: str, folder: Path, *edits: tuple[str, str]) -> str:
    """Return the path of a copy of `file` with other text in places."""
    text = (WILD / file).read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / file).write_text(text)
    return str(folder / file)


def statuses(target: str, *slugs: str, **settled: object) -> set[str]:
    bench = Bench.for_status(attentest.adapted(target, **settled), effort=0.5)
    return {judge(bench, f"model.{one}").status.value for one in slugs}


@pytest.mark.proof
def test_visible_padding_of_the_target_is_an_assumption(tmp_path):
    target = f"{edited('plain_ids.py', tmp_path, HIDDEN)}:Translator"
    read = attentest.adapted(target)
    assert read.limits.right_padded == ("target",)
    assert read.assumed[0].startswith("assumed that padding of the target is at its end")
    slugs = ("formula", "pad-ids", "padding-in-a-batch", "causality", "gradient-finite")
    assert statuses(target, *slugs) == {"pass"}


@pytest.mark.exhaustive
def test_strict_judges_padding_of_the_target_anywhere(tmp_path):
    target = f"{edited('plain_ids.py', tmp_path, HIDDEN)}:Translator"
    assert attentest.adapted(target, strict=True).limits.right_padded == ()
    assert statuses(target, "pad-ids", strict=True) == {"violation"}


def test_model_that_hides_the_padding_is_judged_with_it_anywhere():
    assert attentest.adapted(f"{WILD / 'plain_ids.py'}:Translator").limits.right_padded == ()


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    "edit",
    [
        (".triu(1)", ".triu(2)"),
        ("memory_key_padding_mask=memory_ids == 0", "memory_key_padding_mask=memory_ids < 0"),
    ],
    ids=["next-step-seen", "source-padding-seen"],
)
def test_other_wrong_masks_are_detected_beside_visible_padding(edit, tmp_path):
    target = f"{edited('plain_ids.py', tmp_path, HIDDEN, edit)}:Translator"
    sides = ("target",) if "memory" in edit[0] else ()  # where order is not hidden, none is assumed
    assert attentest.adapted(target).limits.right_padded == sides
    assert statuses(target, "formula", "pad-ids", "causality") & FAILING


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("mask", ["ids == 1", "ids.roll(1, 1) == 0"])
def test_padding_that_is_hidden_wrongly_is_no_assumption(mask, tmp_path):
    edit = (HIDDEN[0], f"tgt_key_padding_mask={mask},")
    target = f"{edited('plain_ids.py', tmp_path, edit)}:Translator"
    assert statuses(target, "formula", "pad-ids") & FAILING


BARE = (
    (
        "self.tokens = nn.Embedding(vocab, d_model)",
        "self.words = nn.Parameter(torch.randn(vocab, d_model))",
    ),
    ("self.tokens(ids)", "self.words[ids]"),
)


def test_tables_that_are_plain_parameters_show_visible_padding(tmp_path):
    target = f"{edited('plain_ids.py', tmp_path, HIDDEN, *BARE)}:Translator"
    assert attentest.adapted(target).limits.right_padded == ("target",)
    hidden = f"{edited('plain_ids.py', tmp_path, *BARE)}:Translator"
    assert attentest.adapted(hidden).limits.right_padded == ()


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_line_of_a_visible_source_is_that_of_its_mask_beside_visible_padding(tmp_path):
    own = ("            tgt_key_padding_mask=tgt == self.tgt_pad_id,\n", "")
    memory = ("            memory_key_padding_mask=src == self.src_pad_id,\n", "")
    path = edited("torch_batch_first.py", tmp_path, own, memory)
    name = (WILD / "torch_batch_first.py").read_text().rpartition("class ")[2].partition("(")[0]
    location = judge(Bench(attentest.adapted(f"{path}:{name}")), "model.formula").location
    assert location is not None
    assert location.step == "decoder.layers.0.cross_attention.masked scores"
