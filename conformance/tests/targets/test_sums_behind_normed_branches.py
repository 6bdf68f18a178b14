"""Decoder-only models that norm what a sublayer gives, and add another value than its input."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited
from plain_gpt import PLAIN_GPT

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

SANDWICH = edited(
    PLAIN_GPT,
    (
        "nn.LayerNorm(width), nn.LayerNorm(width)\n",
        "nn.LayerNorm(width), nn.LayerNorm(width)\n"
        "        self.three, self.four = nn.LayerNorm(width), nn.LayerNorm(width)\n",
    ),
    (
        "        x = x + self.attend(self.one(x))\n",
        "        branch = self.attend(self.one(x))\n"
        "        branch = self.three(branch)\n"
        "        x = branch + x\n",
    ),
    (
        "return x + self.down(F.relu(self.up(self.two(x))))",
        "return x + self.four(self.down(F.relu(self.up(self.two(x)))))",
    ),
)


@pytest.mark.proof
def test_sum_with_the_normalised_input_is_the_line_of_the_mistake(tmp_path: Path) -> None:
    wrong = "x = branch + self.one(x)"
    backend = adapted(tmp_path, "GPT", edited(SANDWICH, ("x = branch + x", wrong)))
    verdict = judge(Bench(backend, effort=0.2), "language_model.formula")
    assert verdict.status is Status.VIOLATION
    assert verdict.location is not None
    assert verdict.location.code == wrong


def test_sum_with_the_input_conforms(tmp_path: Path) -> None:
    verdict = judge(
        Bench.for_status(adapted(tmp_path, "GPT", SANDWICH), effort=0.2), "language_model.formula"
    )
    assert verdict.status is Status.PASS
