"""Whole models whose tokens come with lengths in one argument, memories that layers norm, masks."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked, broken, edited

from attentest.targets.adapt import Unclear

LENGTHS = (SUPPORT / "wild_models" / "by_lengths.py").read_text(encoding="utf-8")
PAIRS = edited(
    LENGTHS,
    ("def forward(self, xs_pad, ilens, ys_in_pad, ys_in_lens)", "def forward(self, x, y)"),
    (
        "        hidden_x = hidden_after(ilens, xs_pad.size(1))\n",
        "        hidden_x = hidden_after(x[1], x[0].size(1))\n"
        "        xs_pad, (ys_in_pad, ys_in_lens) = x[0], (y[0], y[1])\n",
    ),
)
CLAUSES = ("model.formula", "model.padding-in-a-batch")


@pytest.mark.proof
def test_tokens_with_their_lengths_are_given_as_a_pair(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", PAIRS)
    assert any("source and its lengths=x" in one for one in backend.understood)  # type: ignore[attr-defined]
    assert set(backend.limits.right_padded) == {"source", "target"}
    assert not broken(backend, *CLAUSES)
    assert "(source, source_keep.sum(1))" in backend.written()  # type: ignore[attr-defined]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (">= lengths[:, None]", "> lengths[:, None]"),
        ("hidden_after(x[1], x[0].size(1))", "hidden_after(x[1] + 9, x[0].size(1))"),
        ("steps > steps[:, None]", "steps > steps[:, None] + 1"),
    ],
)
def test_mistakes_with_lengths_in_pairs_are_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", edited(PAIRS, (right, wrong)))
    assert broken(backend, *CLAUSES)


OF_MEMORY = edited(
    LENGTHS,
    (
        "        ready = self.norm2(ys)\n        ys = ys + self.dropout(self.src_attn",
        "        ready, memory = self.norm2(ys), self.norm2(memory)\n"
        "        ys = ys + self.dropout(self.src_attn",
    ),
    ("memory = self.after_norm_x(xs)", "memory = xs"),
)


ONCE_MORE = "assumed that the layers of the decoder are meant to norm the memory once more"


@pytest.mark.proof
def test_memory_that_layers_norm_in_the_place_of_its_encoder_is_left_as_it_is(
    tmp_path: Path,
) -> None:
    alone = edited(
        OF_MEMORY,
        ("self.after_norm_x, self.after_norm_y = nn.LayerNorm(adim), nn", "self.after_norm_y = nn"),
    )
    backend = adapted(tmp_path, "Seq2SeqTransformer", alone)
    (said,) = [one for one in backend.assumed if one.startswith(ONCE_MORE)]
    assert "decoders.0.norm2 at own.py:" in said
    assert "(ready, memory = self.norm2(ys), self.norm2(memory))" in said
    assert any("after_norm_y, is left out, and NOT compared" in one for one in backend.assumed)
    assert not broken(backend, "model.formula")
    exec(backend.written(), {})


@pytest.mark.proof
def test_memory_that_layers_norm_is_a_question_where_the_rest_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(edited(OF_MEMORY, ("ready = self.norm1(ys)", "ready = ys")))
    question = asked(f"{tmp_path / 'own.py'}:Seq2SeqTransformer")
    assert "norms its memory in the layers of its decoder" in question
    assert "decoders.0.norm2 at own.py:" in question


TWICE = edited(OF_MEMORY, ("memory = xs", "memory = self.after_norm_x(xs)"))


@pytest.mark.proof
def test_memory_that_layers_norm_once_more_is_left_as_it_is(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", TWICE)
    assert any(one.startswith(ONCE_MORE) for one in backend.assumed)
    assert not broken(backend, "model.formula", "model.padding-in-a-batch")
    exec(backend.written(), {})


@pytest.mark.proof
def test_memory_that_layers_norm_once_more_excuses_no_mistake(tmp_path: Path) -> None:
    mistaken = edited(TWICE, ("ready = self.norm1(ys)", "ready = ys"))
    with pytest.raises(Unclear):
        adapted(tmp_path, "Seq2SeqTransformer", mistaken)


WAVES = """\
def waves(count, table):
    rows = torch.arange(count, dtype=table.dtype, device=table.device)[:, None]
    columns = torch.arange(table.shape[1] // 2, dtype=table.dtype, device=table.device)
    angles = rows / 10000 ** (POWER / table.shape[1])
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Heads("""
"""A table of positions whose exponents are those of POWER, in front of the classes."""


@pytest.mark.proof
@pytest.mark.parametrize(("power", "is_right"), [("2 * columns", True), ("columns", False)])
def test_memory_that_layers_norm_is_judged_beside_one_known_mistake(
    power: str, is_right: bool, tmp_path: Path
) -> None:
    table = edited(
        OF_MEMORY,
        ("self.places_x, self.places_y = nn.Embedding(max_len, adim), nn", "self.longest = nn"),
        ("class Heads(", WAVES.replace("POWER", power)),
        ("self.places_x.weight[: xs_pad.size(1)]", "waves(xs_pad.size(1), self.embed_x.weight)"),
        ("self.places_y.weight[: len(steps)]", "waves(len(steps), self.embed_y.weight)"),
        ("self.longest = nn.Embedding(max_len, adim)", "self.longest = max_len"),
        ("self.after_norm_x, self.after_norm_y = nn.LayerNorm(adim), nn", "self.after_norm_y = nn"),
    )
    backend = adapted(tmp_path, "Seq2SeqTransformer", table)
    assert any(one.startswith(ONCE_MORE) for one in backend.assumed)  # type: ignore[attr-defined]
    assert bool(broken(backend, "model.formula")) is not is_right


@pytest.mark.proof
def test_memory_that_layers_norm_is_judged_anyway(tmp_path: Path) -> None:
    kept = TWICE
    backend = adapted(tmp_path, "Seq2SeqTransformer", kept, anyway=True)
    assert broken(backend, "model.formula")


PLAIN = (SUPPORT / "wild_models" / "plain_ids.py").read_text(encoding="utf-8")
ORDER = edited(
    PLAIN,
    ("def forward(self, ids, memory=None, memory_ids=None)", "def forward(self, ids, *more)"),
    (
        "        where = torch",
        "        memory, memory_ids, future = more if more else (None, None, None)\n"
        "        where = torch",
    ),
    ("                size = ids.shape[1]\n", ""),
    (
        "                future = torch.ones(size, size, dtype=torch.bool, device=ids.device)"
        ".triu(1)\n",
        "",
    ),
    ("tgt_key_padding_mask=hidden", "tgt_key_padding_mask=hidden.roll(1, 1)"),
    ("(self, src_ids, tgt_ids)", "(self, src_ids, tgt_ids, future_mask=None)"),
    ("memory, src_ids)", "memory, src_ids, future_mask)"),
)


@pytest.mark.proof
def test_optional_mask_that_hides_later_steps_is_given_beside_wrong_padding(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "Translator", ORDER)
    assert "future_mask" in "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert broken(backend, "model.formula", "model.pad-ids")


@pytest.mark.proof
def test_optional_mask_that_hides_later_steps_is_given_to_a_right_model(tmp_path: Path) -> None:
    right = edited(ORDER, ("hidden.roll(1, 1)", "hidden"))
    assert not broken(adapted(tmp_path, "Translator", right), *CLAUSES)


THREE = "self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(adim) for _ in range(3))"
IN_PLACE = edited(
    LENGTHS,
    ("self.feed_forward(self.norm3(ys))", "self.feed_forward(self.norm2(ys))"),
    (THREE, "self.norm1, self.norm2 = nn.LayerNorm(adim), nn.LayerNorm(adim)"),
    ("ready = self.norm1(ys)", "ready = self.norm2(ys)"),
)


def test_norm_in_the_place_of_others_is_a_question_that_names_both(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(IN_PLACE)
    question = asked(f"{tmp_path / 'own.py'}:Seq2SeqTransformer")
    assert "calls decoders.0.norm2 3 times in one layer" in question
