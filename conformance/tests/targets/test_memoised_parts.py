"""Decoder-only models whose layers get a module that a memoised function keeps for all models."""

import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest
from folders import SUPPORT
from mistaken_code import adapted

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.language_models.construction.memos import fresh, memoised

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
PLACES = """
class Places(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        angles = torch.arange(rows)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def forward(self, places):
        return self.table[places]


@lru_cache(1)
def places_of(rows, width):
    return Places(rows, width)


@dataclass
class GPTConfig"""
SOURCE = NANO.replace("\n@dataclass\nclass GPTConfig", PLACES, 1)
SOURCE = SOURCE.replace("nn.Embedding(config.block_size, ", "places_of(config.block_size, ")
SOURCE = SOURCE.replace("import inspect\n", "import inspect\nfrom functools import lru_cache\n", 1)

HELD = SOURCE.replace(
    "@lru_cache(1)\ndef places_of", "class Held:\n    _tables = {}\n\n\ndef places_of"
)
HELD = HELD.replace(
    "    return Places(rows, width)",
    """    key = (rows, width)
    if key not in Held._tables:
        Held._tables[key] = (Places(rows, width).table,)
    places = Places(rows, width)
    places.register_buffer("table", Held._tables[key][0])
    return places""",
)


@pytest.mark.proof
def test_a_memoised_part_is_made_anew_for_each_model(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SOURCE)
    assert "built as fresh(GPT)(config=GPTConfig(" in "\n".join(backend.understood)
    assert any("what places_of keeps from one model to the next" in one for one in backend.assumed)


@pytest.mark.proof
@pytest.mark.parametrize("wrong", ["", "x = self.attn("])
def test_a_table_that_a_class_keeps_is_made_anew_for_each_model(tmp_path: Path, wrong: str) -> None:
    assert "Held._tables[key] =" in HELD
    backend = adapted(tmp_path, "GPT", HELD.replace("x = x + self.attn(", wrong) if wrong else HELD)
    assert any("what Held._tables keeps from one" in one for one in backend.assumed)
    status = judge(Bench.for_status(backend, effort=0.3), "language_model.formula").status
    assert status.fails_run is bool(wrong)


@pytest.mark.proof
def test_a_model_with_a_memoised_part_conforms(tmp_path: Path) -> None:
    bench = Bench.for_status(adapted(tmp_path, "GPT", SOURCE))
    for clause in ("formula", "gradient", "tied-matrix", "half-precision"):
        assert not judge(bench, f"language_model.{clause}").status.fails_run


@pytest.mark.proof
def test_a_mistake_next_to_a_memoised_part_is_found(tmp_path: Path) -> None:
    wrong = SOURCE.replace("x = x + self.attn(", "x = self.attn(")
    bench = Bench.for_status(adapted(tmp_path, "GPT", wrong))
    assert judge(bench, "language_model.formula").status.fails_run


def test_packages_that_are_installed_below_the_folder_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment often lies in the folder of the code, and packages hold lazy objects."""

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} needs a device that is not there")

    (tmp_path / "code.py").write_text("class Model:\n    pass\n")
    installed = ModuleType("installed_below")
    installed.__file__ = str(tmp_path / "venv" / "lib" / "site-packages" / "installed_below.py")
    other = ModuleType("in_the_folder")
    other.__file__ = str(tmp_path / "in_the_folder.py")
    for module in (installed, other):
        vars(module).update(lazy=Lazy("lazy"), kept=lru_cache(lambda: 1))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    home = ModuleType("code_of_a_user")
    home.__file__ = str(tmp_path / "code.py")
    monkeypatch.setitem(sys.modules, home.__name__, home)
    thing = type("Model", (), {"__module__": home.__name__})
    assert memoised(thing) == ["kept"]
    kept = [vars(one)["kept"] for one in (installed, other)]
    assert [one() for one in kept] == [1, 1]
    assert fresh(thing) is thing
    assert [one.cache_info().currsize for one in kept] == [1, 0]
