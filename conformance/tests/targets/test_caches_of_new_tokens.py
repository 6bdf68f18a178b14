"""Decoder-only models that return the keys of their new tokens alone, as `presents`."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear

SOURCE = (SUPPORT / "wild_cached_models" / "outputs_past.py").read_text()
JOINED = "        if past is not None:\n            k, v"
NEW = SOURCE.replace("        kept = (k, v)\n", "").replace(
    JOINED, f"        kept = (k, v)\n{JOINED}"
)
NAMED = NEW.replace("    past_key_values: tuple", "    presents: tuple")
NAMED = NAMED.replace(", past_key_values=", ", presents=")


@pytest.mark.proof
def test_keys_of_new_tokens_are_joined_to_those_before(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TinyForCausalLM", NAMED)
    said = "\n".join(backend.understood)
    assert "returned as 'presents', which is that of the new tokens alone" in said
    assert any("its caller joins the keys and values" in one for one in backend.assumed)


@pytest.mark.proof
def test_steps_with_joined_keys_are_judged(tmp_path: Path) -> None:
    bench = Bench.for_status(adapted(tmp_path, "TinyForCausalLM", NAMED))
    found = [judge(bench, f"language_model.cached-{one}") for one in ("formula", "chunks", "reset")]
    assert all(one.status.judged and not one.status.fails_run for one in found)


@pytest.mark.proof
def test_keys_of_new_tokens_with_the_name_of_all_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="continued from a cache"):
        adapted(tmp_path, "TinyForCausalLM", NEW)


@pytest.mark.proof
def test_keys_that_are_joined_in_the_wrong_order_are_a_question(tmp_path: Path) -> None:
    wrong = NAMED.replace("torch.cat([past[1], v], dim=2)", "torch.cat([v, past[1]], dim=2)")
    assert wrong != NAMED
    with pytest.raises(Unclear, match="continued from a cache"):
        adapted(tmp_path, "TinyForCausalLM", wrong)
