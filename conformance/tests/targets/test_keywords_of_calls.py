"""Keywords that a call takes loosely and reads by name, and caches of another precision."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear
from attentest.targets.language_models.surrounded.keywords import with_keywords
from attentest.targets.whole import AdaptedWhole

PAST = "0 if past_key_values is None else past_key_values[0][0].size(2)"
NANO = (SUPPORT / "wild_cached_models" / "nano_past.py").read_text()
LOOSE = NANO.replace("past_key_values=None):", "past_key_values=None, **args):")
NAMED = LOOSE.replace(f"start = {PAST}", 'start = args.get("start_pos", 0)')
UNNAMED = LOOSE.replace(f"start = {PAST}", "start = sum(args.values())")
KEPT = "present = (k, v)"
REFUSES = """present = (k, v)
        if layer_past is not None and k.dtype == torch.bfloat16:
            raise RuntimeError("expected float32 but found bfloat16")"""


def _call(x, *, kept=None, **rest):
    first = rest.get("start_pos", 0)
    return x, first, rest.pop("mask"), rest.get(x), kept.get("other")


def test_names_that_a_call_reads_of_its_keywords_are_arguments() -> None:
    found = with_keywords(_call).parameters
    assert list(found) == ["x", "kept", "start_pos", "mask", "rest"]
    assert found["start_pos"].default == 0
    assert found["mask"].default is None


def test_call_without_loose_keywords_is_as_it_is() -> None:
    assert list(with_keywords(lambda x, y=1: x).parameters) == ["x", "y"]


@pytest.mark.proof
def test_positions_that_are_a_loose_keyword_are_given(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", NAMED)
    assert isinstance(backend, AdaptedWhole)
    assert "start_pos" in " ".join(backend.understood)
    assert broken(backend, "language_model.cached-formula") == []
    wrong = NAMED.replace("self.wpe(pos)", "self.wpe(pos * (start == 0))")
    try:
        found = broken(adapted(tmp_path, "GPT", wrong), "language_model.cached-formula")
    except Unclear:
        return
    assert found


@pytest.mark.proof
def test_steps_that_may_need_a_loose_keyword_are_no_mistake(tmp_path: Path) -> None:
    """Every step begins at position 0, unless a keyword that nothing names says another one."""
    with pytest.raises(Unclear, match="its steps are called in another way"):
        adapted(tmp_path, "GPT", UNNAMED)


@pytest.mark.proof
def test_steps_that_raise_in_half_precision_are_not_judged_there(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", NANO.replace(KEPT, REFUSES))
    assert any("are not judged in bfloat16" in one for one in backend.assumed)
    assert broken(backend, "language_model.cached-formula") == []
