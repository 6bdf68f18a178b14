"""Gains that are stored minus 1, projections that one head does not have, refused widths."""

from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets import file_modules
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.inference import Inferred, infer
from attentest.targets.language_models.limits import limits_of

NORMED = "functional.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)"


def read(folder: Path, *edits: tuple[str, str]) -> Inferred:
    """Return a published model as it is read, with some `edits`."""
    source = (SUPPORT / "wild_language_models" / "nano.py").read_text(encoding="utf-8")
    for right, wrong in edits:
        assert right in source
        source = source.replace(right, wrong)
    path = folder / "own.py"
    path.write_text(source, encoding="utf-8")
    return infer(file_modules.load(path).GPT, "GPT", Reading())


STORED = NORMED, NORMED.replace("self.weight, self", "1 + self.weight, self")
ZEROS = "self.weight = nn.Parameter(torch.ones", "self.weight = nn.Parameter(torch.zeros"


def test_gains_of_layer_norms_may_be_stored_minus_one(tmp_path: Path) -> None:
    found = read(tmp_path, STORED, ZEROS)
    gains = [one for name, one in found.table.items() if name.endswith(".gain")]
    assert gains
    assert all(one.plus == 1.0 for one in gains)


def test_stored_gains_that_do_not_begin_as_zero_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="adds 1 to the gain"):
        read(tmp_path, STORED)


def test_last_gain_that_begins_as_zero_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="multiplies what its last norm gives"):
        read(tmp_path, ZEROS)


def test_gains_of_layer_norms_that_are_doubled_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="computed nowhere in it are"):
        read(tmp_path, (NORMED, NORMED.replace("self.weight, self", "2 * self.weight, self")))


def test_one_head_without_its_projection_is_not_judged(tmp_path: Path) -> None:
    made = "self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)"
    found = read(tmp_path, (made, f"{made} if config.n_head > 1 else nn.Identity()"))
    limits = limits_of(found.building, found.call, found.inner, found.table)
    assert limits.fewest_heads == 2


def test_widths_that_a_model_refuses_say_nothing_of_the_inner_width(tmp_path: Path) -> None:
    made = "self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)"
    refusing = f"assert config.n_embd // config.n_head % 4 == 0\n        {made}"
    found = read(tmp_path, (made, refusing))
    limits = limits_of(found.building, found.call, found.inner, found.table)
    assert limits.inner == 4.0
