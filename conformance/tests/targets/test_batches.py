"""Batches that were not written for the contract: read, put behind it, and judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import SUPPORT

from attentest.harness.reproduction import Build, Call
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest.targets.resolve import load
from attentest_spec import Sizes
from attentest_spec.clauses import clauses

WILD = SUPPORT / "wild" / "batch.py"


def wild(name: str, **reading: Any) -> Any:
    return load(f"{WILD}:{name}", {"component": "batch", **reading})


def broken(backend: Any, effort: float = 0.3) -> set[str]:
    bench = Bench.for_status(backend, effort=effort)
    own = [slug for slug, one in clauses().items() if one.component == "batch"]
    return {slug for slug in own if judge(bench, slug).status not in ("pass", "absent")}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Batch", "pad=target_pad"),
        ("make_batch", "blocks"),
        ("ZeroBatch", "always 0"),
        ("HidingBatch", "src_key_padding_mask"),
    ],
)
def test_correct_batch_is_understood_and_conforms(name: str, said: str) -> None:
    backend = wild(name)
    assert said in "\n".join(backend.understood)
    assert broken(backend) == set()


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("UnshiftedBatch", "batch.shifted-once"),
        ("CountingBatch", "batch.count"),
        ("UnhidingBatch", "batch.target-mask"),
    ],
)
def test_mistaken_batch_is_a_violation(name: str, clause: str) -> None:
    assert clause in broken(wild(name))


def test_batch_is_recognised_by_its_name() -> None:
    assert list(load(f"{WILD}:Batch").components) == ["batch"]


def test_batch_without_a_known_result_is_a_question() -> None:
    with pytest.raises(Unclear, match="no result with a known name for the source mask"):
        wild("BareBatch")


def test_reproduction_gives_the_batch_without_the_suite(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inputs = (np.array([[5, 3]]), np.array([[1, 6, 2, 3]]))
    sizes = Sizes(source_pad=3, target_pad=3)
    code = wild("Batch").reproduction_script(
        [Build(0, "batch", sizes, "float64", "cpu"), Call(0, inputs)]
    )
    exec(compile(code, "batch", "exec"), {})
    assert "tensor([[1, 6, 2]])" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Batch", "make_batch"])
def test_written_adapter_conforms(name: str, tmp_path: Path) -> None:
    file = tmp_path / "adapter.py"
    file.write_text(wild(name).written(), encoding="utf-8")
    assert broken(load(str(file))) == set()
