"""Decoder-only models of one block: nothing says how many there are."""

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT

CODE = edited(
    PLAIN_GPT,
    ("class GPT(", "class MiniGPT("),
    ("heads, layers, context)", "heads, context)"),
    (
        "self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])",
        "self.block = Block(width, heads)",
    ),
    ("self.blocks(x)", "self.block(x)"),
)
FORMULA = "language_model.formula"


def test_model_of_one_block_is_judged(tmp_path):
    backend = adapted(tmp_path, "MiniGPT", CODE)
    assert backend.limits.layers == 1
    assert "a model of one block" in "\n".join(backend.assumed)
    assert broken(backend, FORMULA) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ q.shape[-1] ** 0.5", "/ width**0.5"),
        ("x + self.attend(self.one(x))", "self.attend(self.one(x))"),
        ("triu(1)", "triu(2)"),
        ("self.two(x)", "x"),
    ],
)
def test_mistake_in_a_model_of_one_block_is_reported(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "MiniGPT", CODE, right, wrong, FORMULA)


def test_model_of_two_blocks_that_nothing_counts_is_the_question_of_before(tmp_path):
    two = edited(
        CODE,
        (
            "self.block = Block(width, heads)",
            "self.block, self.more = (Block(width, heads) for _ in range(2))",
        ),
        ("self.block(x)", "self.more(self.block(x))"),
    )
    (tmp_path / "own.py").write_text(two)
    assert "nothing in it is layers" in asked(f"{tmp_path / 'own.py'}:MiniGPT")


def test_block_that_all_layers_share_is_no_model_of_one_block(tmp_path):
    shared = edited(
        CODE,
        ("heads, context)", "heads, layers, context)"),
        (
            "self.block = Block(width, heads)",
            "self.block = nn.Sequential(*[Block(width, heads)] * layers)",
        ),
    )
    (tmp_path / "own.py").write_text(shared)
    assert "share all parameters" in asked(f"{tmp_path / 'own.py'}:MiniGPT")
