"""Heads of decoder-only models that their caller gives the body: it is built by its name."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted
from torch import nn

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.language_models.calling import probe_tokens
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.questions.bodies import words_on_body

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
BEFORE, _, AFTER = NANO.partition("        if targets is None:\n")
HEAD = """        return x


class GPTHead(nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.gpt = gpt
        rows, width = gpt.transformer.wte.weight.shape
        self.linear = nn.Linear(width, rows, bias=False)
        self.linear.weight = gpt.transformer.wte.weight

    def forward(self, ids):
        return self.linear(self.gpt(ids))
"""
BODY = BEFORE.replace(
    "        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)\n", ""
)
BODY = BODY.replace("        self.transformer.wte.weight = self.lm_head.weight\n", "")
SOURCE = BODY + HEAD


@pytest.mark.proof
def test_a_head_gets_the_class_that_its_argument_is_named_after(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPTHead", SOURCE)
    assert "GPTHead(gpt=GPT(config=GPTConfig(" in "\n".join(backend.understood)
    assert judge(Bench.for_status(backend), "language_model.formula").status.judged


@pytest.mark.proof
def test_a_mistake_of_the_body_is_one_of_the_head(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPTHead", SOURCE.replace("x = x + self.attn(", "x = self.attn("))
    assert judge(Bench.for_status(backend), "language_model.formula").status.fails_run


def test_a_call_that_gives_states_is_that_of_a_body() -> None:
    body, tokens = nn.Embedding(PROBE.target_vocabulary, PROBE.d_model), probe_tokens()
    said = words_on_body(body, {"input": tokens}, "GPT")
    assert "GPT is the body of one: a class of yours that puts a head on it" in said
    assert not words_on_body(nn.Embedding(PROBE.target_vocabulary, 7), {"input": tokens}, "GPT")
