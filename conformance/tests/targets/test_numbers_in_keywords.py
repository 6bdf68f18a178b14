"""Decoder-only models that look their sizes up in keywords, each with a number for none given."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT

LOOKED_UP = edited(
    PLAIN_GPT,
    (
        "    def __init__(self, vocab_size, width, heads, layers, context):\n"
        "        super().__init__()\n"
        "        self.table",
        "    def __init__(self, **kwargs):\n"
        "        super().__init__()\n"
        '        vocab_size, width = kwargs.get("vocab_size", 100), kwargs.get("num_embed", 32)\n'
        '        heads, layers = kwargs.get("num_heads", 4), kwargs.pop("num_layers", 4)\n'
        '        context = kwargs.get("block_size", 8)\n'
        "        self.num_embed = width\n"
        "        self.table",
    ),
    ("nn.Embedding(vocab_size, width)", "nn.Embedding(vocab_size, self.num_embed)"),
)
FORMULA = "language_model.formula"


def test_width_without_a_known_name_is_found_by_its_use(tmp_path):
    assert broken(adapted(tmp_path, "GPT", LOOKED_UP), FORMULA) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(" / q.shape[-1] ** 0.5", " / width**0.5"), ("x + self.attend", "self.attend")],
)
def test_mistake_in_such_a_model_is_no_pass(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "GPT", LOOKED_UP, right, wrong, FORMULA)
