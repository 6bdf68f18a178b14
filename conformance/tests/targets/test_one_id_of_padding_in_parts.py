"""Models whose encoder and decoder take an id of padding by one name: it may be one for both."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

COMPOSED = (SUPPORT / "wild_models" / "composed.py").read_text(encoding="utf-8")
IN_PARTS = edited(
    COMPOSED,
    ("max_length=100):", "max_length=100, padding_id=1):"),
    ("self.scale = hid_dim**0.5", "self.scale, self.padding_id = hid_dim**0.5, padding_id"),
    (
        "def forward(self, src, src_mask):\n        pos",
        "def forward(self, src):\n        src_mask = seen(src, self.padding_id)\n        pos",
    ),
    (
        "def forward(self, trg, enc_src, trg_mask, src_mask):\n        pos",
        "def forward(self, trg, src, enc_src):\n"
        "        src_mask, trg_mask = seen(src, self.padding_id), before(trg, self.padding_id)\n"
        "        pos",
    ),
    ("(self, encoder, decoder, src_pad_idx, trg_pad_idx):", "(self, encoder, decoder):"),
    ("        self.src_pad_idx, self.trg_pad_idx = src_pad_idx, trg_pad_idx\n", ""),
    (
        "        src_mask, trg_mask = self.make_src_mask(src), self.make_trg_mask(trg)\n"
        "        return self.decoder(trg, self.encoder(src, src_mask), trg_mask, src_mask)",
        "        return self.decoder(trg, src, self.encoder(src))",
    ),
    (
        "class Seq2SeqTransformer",
        "def seen(ids, pad):\n"
        "    return (ids != pad)[:, None, None]\n\n\n"
        "def before(ids, pad):\n"
        "    steps = torch.arange(ids.shape[1], device=ids.device)\n"
        "    return seen(ids, pad) & (steps <= steps[:, None])\n\n\n"
        "class Seq2SeqTransformer",
    ),
)
CLAUSES = ("model.formula", "model.padding-in-a-batch", "model.pad-ids")
SAID = "padding_id is one id of padding for source and target"


@pytest.mark.proof
def test_one_name_in_parts_is_one_id_where_the_decoder_hides_the_source_by_its_own(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", IN_PARTS)
    assert any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, *CLAUSES)
    exec(backend.written(), {})


@pytest.mark.proof
def test_one_name_in_parts_is_two_ids_where_each_hides_its_own(tmp_path: Path) -> None:
    handed = edited(
        IN_PARTS,
        ("seen(src, self.padding_id), before", "shown, before"),
        ("def forward(self, trg, src, enc_src)", "def forward(self, trg, shown, enc_src)"),
        ("self.decoder(trg, src,", "self.decoder(trg, seen(src, self.encoder.padding_id),"),
    )
    backend = adapted(tmp_path, "Seq2SeqTransformer", handed)
    assert not any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("src_mask, trg_mask = seen(src, ", "src_mask, trg_mask = seen(src, 1 + "),
        ("return (ids != pad)[:, None, None]", "return (ids == pad)[:, None, None]"),
        ("(steps <= steps[:, None])", "(steps <= steps[:, None] + 1)"),
    ],
)
def test_one_id_excuses_no_mistake_in_masks(right: str, wrong: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", edited(IN_PARTS, (right, wrong)))
    assert broken(backend, *CLAUSES)


@pytest.mark.proof
def test_names_of_sides_are_two_ids(tmp_path: Path) -> None:
    head, decoder = IN_PARTS.split("class Decoder(", 1)
    sided = f"{head}class Decoder({edited(decoder, ('padding_id=1', 'trg_pad=1'))}".replace(
        "hid_dim**0.5, padding_id", "hid_dim**0.5, src_pad", 1
    ).replace("max_length=100, padding_id=1", "max_length=100, src_pad=1")
    sided = sided.replace("hid_dim**0.5, padding_id", "hid_dim**0.5, trg_pad")
    backend = adapted(tmp_path, "Seq2SeqTransformer", sided)
    assert broken(backend, *CLAUSES)
