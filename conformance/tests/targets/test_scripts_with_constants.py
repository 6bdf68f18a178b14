"""Scripts that define a model by constants and call it: a call that other sizes do not fit."""

import re
from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
CONSTANTS = """
block_size, vocab_size, n_layer, n_head, n_embd = 32, 50, 2, 4, 64
dropout, bias = 0.0, True
assert n_embd % n_head == 0


class LayerNorm"""
SOURCE = re.sub(r"self\.config\.(\w+)", r"\1", NANO)
SOURCE = re.sub(r"\bconfig\.(\w+)", r"\1", SOURCE).replace("        self.config = config\n", "")
SOURCE = re.sub(r"@dataclass\nclass GPTConfig:.*?\n\n\n", "", SOURCE, flags=re.DOTALL)
SOURCE = SOURCE.replace("(self, config)", "(self)").replace("(config)", "()")
SOURCE = SOURCE.replace("\nclass LayerNorm", CONSTANTS, 1)
SCRIPT = f"{SOURCE}\n\nmodel = GPT()\nlogits, _ = model(torch.zeros(1, 5, dtype=torch.long))\n"


@pytest.mark.proof
def test_a_call_of_a_script_says_nothing_of_other_sizes(tmp_path: Path) -> None:
    bench = Bench.for_status(adapted(tmp_path, "GPT", SCRIPT))
    for clause in ("formula", "shapes", "too-long-input"):
        found = judge(bench, f"language_model.{clause}")
        assert not found.status.fails_run, found


@pytest.mark.proof
def test_a_mistake_of_the_model_in_a_script_is_one(tmp_path: Path) -> None:
    wrong = SCRIPT.replace("x = x + self.attn(", "x = self.attn(")
    bench = Bench.for_status(adapted(tmp_path, "GPT", wrong))
    assert judge(bench, "language_model.formula").status.fails_run
