"""The place of an object, as code that imports it."""

import dataclasses
import sys
import types
from pathlib import Path

import pytest
import torch
from standalone import run_without_suite
from user_files import write_files

import attentest
from attentest.harness.subject import Subject
from attentest.targets import resolve
from attentest.targets.adapt.probing import SIZES
from attentest.targets.origin import origin

UNSCALED = """
from {place} import softmax

def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return softmax(scores) @ value
"""
SOFTMAX = "def softmax(scores): return scores.softmax(-1)\n"


def reproduction(target: object, component: str = "attention") -> str:
    """Return the code of the counterexample to the formula."""
    report = attentest.check(target, component, clauses=["attention.formula"])
    counterexample = report["attention.formula"].counterexample
    assert counterexample is not None
    return counterexample.code


@pytest.mark.proof
def test_a_file_of_any_name_is_imported_by_its_reproduction(tmp_path: Path) -> None:
    write_files(tmp_path, parts__init="", parts__one=SOFTMAX)
    codes = []
    for name in ("attend", "random", "torch", "numpy", "my-model", "a.b", "class"):
        file = tmp_path / f"{name}.py"
        file.write_text(UNSCALED.format(place="parts.one"), encoding="utf-8")
        codes.append(reproduction(f"{file}:attention"))
    for ran, text in run_without_suite(codes):
        assert ran, text
        assert "tensor(" in text


def test_a_part_of_a_package_is_imported_from_the_folder_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, package__init="", package__softmaxes=SOFTMAX)
    write_files(tmp_path, package__attend=UNSCALED.format(place=".softmaxes"))
    code = reproduction(str(tmp_path / "package" / "attend.py") + ":attention")
    assert "from package.attend import attention" in code
    write_files(tmp_path, some_place__attend=UNSCALED.format(place="some_place.softmaxes"))
    write_files(tmp_path, some_place__softmaxes=SOFTMAX)
    monkeypatch.syspath_prepend(str(tmp_path))
    for ran, text in run_without_suite([code, reproduction("some_place.attend:attention")]):
        assert ran, text


class Attention(torch.nn.Module):
    def forward(self, query, key, value, mask=None):
        return value


class Outer:
    held = Attention()


def test_classes_and_functions_are_found_by_their_module() -> None:
    assert origin(torch.nn.Linear).imports == ("from torch.nn.modules.linear import Linear",)
    found = origin(Attention)
    assert found.expression == "Attention"
    assert found.imports[-1] == "from test_origin import Attention"


def test_an_instance_is_found_by_its_name_in_a_module(tmp_path: Path) -> None:
    text = f"from torch import nn\n{UNSCALED.format(place='softmaxes')}\n" + (
        "class Attend(nn.Module):\n"
        "    def forward(self, query, key, value, mask=None):\n"
        "        return attention(query, key, value, mask)\n"
        "class Holder:\n    inner = Attend()\n"
        "attend = Attend()\n"
    )
    write_files(tmp_path, attends=text, softmaxes=SOFTMAX)
    codes = [reproduction(f"{tmp_path}/attends.py:{one}") for one in ("attend", "Holder.inner")]
    assert "module = copy.deepcopy(Holder.inner).to(torch.float64).eval()" in codes[1]
    assert all(ran for ran, _ in run_without_suite(codes))


@pytest.mark.proof
def test_live_objects_are_named_in_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    class Attend(torch.nn.Module):
        def forward(self, query, key, value, mask=None):
            return value[..., :1, :].expand(*query.shape[:-1], -1)

    code = reproduction(Attend)
    assert "# Attend: your class; run this where it is defined\n" in code
    assert "module = Attend().to(torch.float64).eval()" in code
    named: dict[str, object] = {"Attend": Attend}
    exec(code, named)
    assert "# yours: your function" in reproduction(lambda query, key, value, mask=None: query)
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    thing = Attend()
    sys.modules["__main__"].thing = thing  # type: ignore[attr-defined]
    assert origin(thing).expression == "thing"


def test_a_live_backend_is_not_taken_for_a_registered_one() -> None:
    from attentest_spec.torch import of_function

    backend = of_function(lambda query, key, value, mask=None: value * 2, "attention")
    code = reproduction(backend)
    assert "registry" not in code
    assert "your object" in code


def test_a_file_backend_is_imported_with_its_neighbours(tmp_path: Path) -> None:
    text = UNSCALED.format(place="softmaxes") + (
        "from attentest_spec.torch import of_function\n"
        'backend = mine = of_function(attention, "attention")\n'
    )
    write_files(tmp_path, unscaled=text, softmaxes=SOFTMAX)
    codes = [reproduction(f"{tmp_path}/unscaled.py{end}") for end in ("", ":mine")]
    for ran, output in run_without_suite(codes, spec=True):
        assert ran, output


def test_every_loader_defines_the_backend() -> None:
    name = resolve.registry.names()[0]
    assert f"backend = registry.load({name!r})" in resolve.loader(name)


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 4
    bias: bool = False


class MLP(torch.nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(config.width, 4 * config.width, bias=config.bias)
        self.outer = torch.nn.Linear(4 * config.width, config.width, bias=config.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(self.inner(x).relu())


def test_a_data_class_that_is_given_stays_what_it_is() -> None:
    given = {"config": Config(width=12)}  # of one size alone, at which no parameter is found
    backend = attentest.adapted(MLP, "feed_forward", given=given, anyway=True)
    assert "config=Config(width=12, bias=False)" in "\n".join(backend.understood)  # type: ignore[attr-defined]
    subject = Subject(backend)
    subject.part("feed_forward", SIZES)
    code = subject.record.counterexample().code
    assert "from test_origin import Config\n" in code
    assert "module = MLP(config=Config(width=12, bias=False)).to(torch.float64).eval()" in code
