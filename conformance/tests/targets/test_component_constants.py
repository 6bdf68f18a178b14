"""Components whose sizes are constants of their file: they are judged in copies with others."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.constants.copies import Copies, copied
from attentest.targets.members import adapter_text
from attentest.targets.resolve import module_of

SOUND = (SUPPORT / "wild" / "constant_parts.py").read_text()
ATTENTION, HEADS = "ScaledDotProductAttention", "MultiHeadAttention"
IN_A_FUNCTION = """\
HEAD_DIM = 64
SCALE = HEAD_DIM ** -0.5


def scaled_dot_product_attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) * SCALE).softmax(-1)
    return weights @ v, weights
"""
OF_THE_CONSTRUCTOR = """\
import torch
from torch import nn

d_k = 64


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        q, k, v = (
            way(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for way, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        weights = (q @ k.mT / d_k**0.5).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))
"""


def written(folder: Path, text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "parts.py").write_text(text)
    return str(folder / "parts.py")


def fails(target: str, clause: str) -> bool:
    bench = Bench.for_status(attentest.adapted(target), effort=0.3)
    return judge(bench, clause).status is not Status.PASS


def is_detected(target: str, clause: str) -> bool:
    try:
        return fails(target, clause)
    except Unclear:
        return True


@share(2)
@pytest.mark.parametrize(
    ("name", "clause", "said"),
    [
        (ATTENTION, "attention.formula", "(d_k=d_model/heads)"),
        (HEADS, "multi_head_attention.formula", "n_heads=heads, d_v=d_model/heads)"),
        ("PositionwiseFeedForward", "feed_forward.formula", "(d_model=d_model, d_ff=d_ff)"),
        ("EncoderLayer", "encoder.layer-formula", "d_ff=d_ff, dropout=dropout)"),
    ],
)
def test_parts_are_judged_with_other_constants(
    tmp_path: Path, name: str, clause: str, said: str
) -> None:
    target = f"{written(tmp_path, SOUND)}:{name}"
    assert not fails(target, clause)
    read = attentest.adapted(target).understood
    (sentence,) = (one for one in read if one.startswith("assumed that constants"))
    assert said in sentence
    assert "batch_size" not in sentence


def test_widths_that_the_constants_cannot_have_are_not_to_be_refused(tmp_path: Path) -> None:
    computed = ("d_k = d_v = 64", "d_k = d_v = d_model // n_heads")
    target = written(tmp_path, SOUND, computed)
    bench = Bench.for_status(attentest.adapted(f"{target}:{HEADS}"), effort=0.3)
    slug = "multi_head_attention.indivisible-width-refused"
    assert judge(bench, slug).status is Status.ABSENT


def test_constant_may_be_computed_from_another_one(tmp_path: Path) -> None:
    target = f"{written(tmp_path, IN_A_FUNCTION)}:scaled_dot_product_attention"
    assert not fails(target, "attention.formula")


def test_constants_may_be_those_of_a_neighbour(tmp_path: Path) -> None:
    head, mark, tail = SOUND.partition("d_model = 512")
    sizes, end, classes = (mark + tail).partition("\n\n\nclass ")
    (tmp_path / "config.py").write_text(sizes)
    target = written(tmp_path, head + "from config import *" + end + classes)
    assert not fails(f"{target}:PositionwiseFeedForward", "feed_forward.formula")


@share(4, rest=1)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (ATTENTION, "math.sqrt(d_k)", "math.sqrt(d_model)"),
        (ATTENTION, "math.sqrt(d_k)", "d_k"),
        (HEADS, "math.sqrt(d_k)", "math.sqrt(d_model)"),
        (HEADS, "self.W_K(k)", "self.W_Q(k)"),
        (HEADS, "scores = scores.masked_fill(attn_mask, -1e9)", "pass"),
    ],
)
def test_mistakes_with_constants_are_detected_or_asked_about(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    target = f"{written(tmp_path, SOUND, (old, new))}:{name}"
    component = "attention" if name == ATTENTION else "multi_head_attention"
    assert is_detected(target, f"{component}.formula")


def test_constant_that_is_no_size_leaves_the_code_as_it_is(tmp_path: Path) -> None:
    axis = ("HEAD_DIM ** -0.5", "1.0\ndim = 3"), ("softmax(-1)", "softmax(dim)")
    scaled = ("* SCALE", "/ q.shape[-1] ** 0.5")
    target = f"{written(tmp_path, IN_A_FUNCTION, *axis, scaled)}:scaled_dot_product_attention"
    assert not fails(target, "attention.formula")
    written(tmp_path, IN_A_FUNCTION, *axis)
    with pytest.raises(Unclear, match="dim=d_model"):
        attentest.adapted(target)


def test_numbers_that_no_choice_gives_are_one_question(tmp_path: Path) -> None:
    target = written(tmp_path, IN_A_FUNCTION, ("** -0.5", "** -1"))
    with pytest.raises(Unclear, match=r"HEAD_DIM=d_model/heads\). No choice gives its numbers"):
        attentest.adapted(f"{target}:scaled_dot_product_attention")


def test_constants_that_contradict_each_other_are_one_question(tmp_path: Path) -> None:
    target = written(tmp_path, SOUND, ("d_model = 512", "d_model = 256"))
    with pytest.raises(Unclear, match="d_k=64, and d_model=256 over n_heads=8 is another width"):
        attentest.adapted(f"{target}:{ATTENTION}")


def test_constant_beside_sizes_of_the_constructor_is_a_mistake(tmp_path: Path) -> None:
    target = f"{written(tmp_path, OF_THE_CONSTRUCTOR)}:{HEADS}"
    assert is_detected(target, "multi_head_attention.formula")


def test_constant_beside_one_size_of_the_constructor_is_one_question(tmp_path: Path) -> None:
    edits = ("self, d_model, n_heads)", "self, d_model)"), ("d_k = 64", "d_k = 64\nn_heads = 8")
    target = written(tmp_path, OF_THE_CONSTRUCTOR, *edits)
    with pytest.raises(Unclear, match="is built with d_model, and reads d_k of its code"):
        attentest.adapted(f"{target}:{HEADS}")


def test_file_that_cannot_be_run_again_is_one_question(tmp_path: Path) -> None:
    once = "import sys\n\nassert not hasattr(sys, 'once')\nsys.once = 1\n"
    target = written(tmp_path, once + IN_A_FUNCTION)
    with pytest.raises(Unclear, match="cannot be run again with others"):
        attentest.adapted(f"{target}:scaled_dot_product_attention")


def test_code_of_a_running_process_is_one_question() -> None:
    held: dict[str, Any] = {"__name__": "__main__"}
    exec(IN_A_FUNCTION.replace("* SCALE", "* HEAD_DIM ** -0.5"), held)
    with pytest.raises(Unclear, match=r"HEAD_DIM=d_model/heads\), and is defined in what runs"):
        attentest.adapted(held["scaled_dot_product_attention"])


def test_constant_that_is_given_stays(tmp_path: Path) -> None:
    target = f"{written(tmp_path, IN_A_FUNCTION)}:scaled_dot_product_attention"
    read = attentest.adapted(target, given={"HEAD_DIM": 64})
    assert "(HEAD_DIM=64)" in "\n".join(read.understood)
    bench = Bench.for_status(read, effort=0.3)
    assert judge(bench, "attention.formula").status is Status.VIOLATION


def test_written_adapter_makes_the_copies_itself(tmp_path: Path) -> None:
    target = f"{written(tmp_path, SOUND)}:{HEADS}"
    text = adapter_text(target, {})
    assert "d_k=head_width(sizes)" in text
    assert "from attentest." not in text
    (tmp_path / "adapter.py").write_text(text)
    assert not fails(str(tmp_path / "adapter.py"), "multi_head_attention.formula")


def test_copy_that_is_in_use_can_be_pickled_after_many_others(tmp_path: Path) -> None:
    thing = module_of(written(tmp_path, SOUND)).PositionwiseFeedForward
    for width in range(40):
        made = copied(thing, d_model=2, d_ff=3)()
        copied(thing, d_model=2 + width, d_ff=4)
    assert type(pickle.loads(pickle.dumps(made))) is type(made)
    assert len(Copies.last) <= 16
