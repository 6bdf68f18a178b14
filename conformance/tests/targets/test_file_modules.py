"""Files as targets: each folder has its own modules, which are not visible elsewhere."""

import copy
import dataclasses
import importlib.metadata
import inspect
import pickle
import random
import sys
import typing
from pathlib import Path

import pytest
from projects import ran
from user_files import write_files

import attentest
from attentest.studies.comparison import compare
from attentest.targets import file_modules, resolve
from attentest.targets.adapt.adaptation import Adapted
from attentest.targets.imports import folders
from attentest_spec.registry import LoadFailure

pytest_plugins = ["pytester"]

FUNCTION = """
from dataclasses import dataclass
from model import scale

def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-1, -2) * scale(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights
"""
BACKEND = f"{FUNCTION}\nfrom attentest_spec.torch import of_function\n" + (
    'backend = of_function(attention, "attention")\n'
)


def module(path: Path) -> typing.Any:
    """Return the module that the file `path` is loaded as."""
    return file_modules.load(path)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return two files of one name with neighbours of one name; the second one is wrong."""
    right = write_files(tmp_path / "a", backend=BACKEND, model="def scale(d): return d**-0.5")
    wrong = write_files(tmp_path / "b", backend=BACKEND, model="def scale(d): return 1.0")
    return right / "backend.py", wrong / "backend.py"


def test_two_targets_in_one_process_each_get_their_own_neighbour(pair: tuple[Path, Path]) -> None:
    reports = [attentest.check(str(one), clauses=["attention.formula"]) for one in pair]
    assert [one.conforms for one in reports] == [True, False]
    reports = [attentest.check(f"{one}:attention", clauses=["attention.formula"]) for one in pair]
    assert [one.conforms for one in reports] == [True, False]


def test_compare_in_one_process_sees_the_difference(pair: tuple[Path, Path]) -> None:
    right, wrong = map(str, pair)
    assert "attention: result" in (output := str(compare(right, wrong))), output


def test_pytest_judges_two_files_of_one_name(
    pair: tuple[Path, Path], pytester: pytest.Pytester
) -> None:
    lines = "\n    ".join(map(str, pair))
    pytester.makeini(
        f"[pytest]\nattentest_components = attention\nattentest_backend =\n    {lines}\n"
    )
    result = ran(pytester, "-q", "-k", "attention.formula")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)


def test_lazy_imports_find_the_own_neighbour(tmp_path: Path) -> None:
    text = """
        def late(): import model; return model.NAME
        def named(): return __import__("model").NAME
        def dynamic():
            import importlib
            return importlib.import_module("model").NAME
        def deep():
            from importlib import import_module
            return import_module("layers.inner").NAME
        def alias():
            import layers.inner as inner
            return inner.NAME
        def plain():
            import layers.inner
            return layers.inner.NAME
    """
    found = []
    for name in ("a", "b"):
        folder = write_files(
            tmp_path / name,
            backend=text,
            model=f"NAME = {name!r}",
            layers__init="",
            layers__inner=f"from model import NAME\nassert NAME == {name!r}",
        )
        found.append(module(folder / "backend.py"))
    for number, name in enumerate("ab"):
        one = found[number]
        calls = (one.late, one.named, one.dynamic, one.deep, one.alias, one.plain)
        assert [call() for call in calls] == [name] * 6
    assert "model" not in sys.modules
    assert "layers" not in sys.modules


def test_a_missing_neighbour_is_not_taken_from_another_target(tmp_path: Path) -> None:
    a = write_files(tmp_path / "a", backend="import model_of_a\nbackend = 1", model_of_a="")
    b = write_files(tmp_path / "b", backend="import model_of_a\nbackend = 1")
    module(a / "backend.py")
    with pytest.raises(LoadFailure, match="No module named 'model_of_a'"):
        resolve.load(str(b / "backend.py"))


@pytest.mark.parametrize("added", ["sys.path.insert(0, {!r})", "sys.path.append({!r})"])
def test_folders_that_files_add_to_the_path_are_their_own(tmp_path: Path, added: str) -> None:
    path, found = list(sys.path), []
    for name in ("a", "b"):
        place = write_files(
            tmp_path / name, model="from layers import NAME", layers=f"NAME = {name!r}"
        )
        text = f"""
            import sys
            {added.format(str(place))}
            import model
            from model import NAME
            sys.path.remove({str(place)!r})
            def late(): import layers; return layers.NAME
        """
        found.append(module(write_files(tmp_path / f"of_{name}", backend=text) / "backend.py"))
    assert [(one.NAME, one.model.NAME, one.late()) for one in found] == [("a",) * 3, ("b",) * 3]
    assert sys.path == path
    assert not {"model", "layers"} & sys.modules.keys()


def test_a_path_that_a_helper_adds_counts_for_its_folder(tmp_path: Path) -> None:
    place = write_files(tmp_path / "far", model="NAME = 'far'")
    text = f"import sys\nsys.path.append({str(place)!r})"
    folder = write_files(tmp_path / "near", backend="import paths\nimport model", paths=text)
    assert module(folder / "backend.py").model.NAME == "far"
    (place / "model.py").write_text("NAME = 'changed'")
    assert module(folder / "backend.py").model.NAME == "changed"
    assert "model" not in sys.modules


def test_imports_may_be_written_from_the_folder_of_the_project(tmp_path: Path) -> None:
    # as `python train.py` in the folder of the project runs the file
    folder = write_files(
        tmp_path / "project",
        utils__names="NAME = 'ours'",
        modules__part="from utils.names import NAME",
        modules__inner__encoder="from modules.part import NAME\nimport near",
        layers__deep__one="NAME = 'deep'",
        modules__inner__other="from layers.deep.one import NAME",
        modules__inner__near="from utils import names",
    )
    loaded = module(folder / "modules/inner/encoder.py")
    assert (loaded.NAME, loaded.near.names.NAME) == ("ours", "ours")
    assert module(folder / "modules/inner/other.py").NAME == "deep"
    assert file_modules.importable(folder / "modules/inner/encoder.py") == (
        folder.resolve(),
        "modules.inner.encoder",
    )


def test_imports_by_the_name_of_a_folder_around_the_working_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = {"ours__parts__part": "NAME = 1", "ours__stray": "NAME = 2"}
    importing = {"model": "from ours.parts.part import NAME", "other": "import stray"}
    named = {f"ours__models__{name}": code for name, code in importing.items()}
    folder = write_files(tmp_path / "project", **part, **named) / "ours/models"
    monkeypatch.chdir(folder)
    assert module(folder / "model.py").NAME == 1
    with pytest.raises(LoadFailure, match="No module named 'stray'"):
        resolve.load(str(folder / "other.py"))


def test_nothing_above_the_folder_of_the_project_is_imported(tmp_path: Path) -> None:
    folder = write_files(tmp_path, outside="NAME = 1", project__inner__file="import outside")
    (folder / "project/pyproject.toml").touch()
    with pytest.raises(LoadFailure, match="No module named 'outside'"):
        resolve.load(str(folder / "project/inner/file.py"))


def test_a_missing_part_of_a_neighbour_is_reported_by_its_own_name(tmp_path: Path) -> None:
    write_files(tmp_path, backend="import layers.lost", layers__init="")
    with pytest.raises(LoadFailure, match=r"No module named 'layers\.lost'"):
        resolve.load(str(tmp_path / "backend.py"))


@pytest.mark.parametrize("name", ["random", "json", "types", "torch", "numpy", "attentest"])
def test_a_file_named_as_an_installed_module_replaces_nothing(tmp_path: Path, name: str) -> None:
    before = sys.modules.get(name)
    write_files(tmp_path, **{name: f"import {name}\nREAL = {name}.__file__\nbackend = 1"})
    found = module(tmp_path / f"{name}.py")
    assert str(tmp_path) not in found.REAL
    assert sys.modules[name] is (before or sys.modules[name])
    assert str(tmp_path) not in str(sys.modules[name].__file__)


def test_a_neighbour_named_as_a_standard_module_is_seen_by_its_folder_alone(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        backend="import random\nimport model\nNAMES = random.NAME, model.random.NAME",
        model="import random",
        random="NAME = 'mine'",
        colorsys="NAME = 'mine'",
    )
    path = list(sys.path)
    assert module(tmp_path / "backend.py").NAMES == ("mine", "mine")
    assert sys.modules["random"] is random
    assert sys.path == path
    assert not hasattr(importlib.reload(importlib.import_module("colorsys")), "NAME")


def test_a_folder_without_init_does_not_hide_an_installed_package(tmp_path: Path) -> None:
    write_files(tmp_path, backend="import packaging, data.one\nFILE = packaging.__file__")
    write_files(tmp_path, packaging__notes="", data__one="")
    assert str(tmp_path) not in module(tmp_path / "backend.py").FILE


@pytest.mark.parametrize("own", [".layers", "package.layers"])
def test_packages_of_one_name_are_imported_as_packages(tmp_path: Path, own: str) -> None:
    for name in ("a", "b"):
        folder = write_files(
            tmp_path / name,
            package__init="from .layers import NAME as FIRST",
            package__model=f"from {own} import NAME\nfrom package import FIRST",
            package__layers=f"NAME = {name!r}",
        )
        found = module(folder / "package" / "model.py")
        assert {found.NAME, found.FIRST} == {name}
    assert "package" not in sys.modules


def test_a_script_in_a_package_finds_the_files_beside_it(tmp_path: Path) -> None:
    text = "from layers import NAME"
    write_files(
        tmp_path, package__init=text, package__model=text, package__layers="NAME = 'beside'"
    )
    for name in ("model", "__init__"):
        assert module(tmp_path / "package" / f"{name}.py").NAME == "beside"


def test_a_file_in_a_package_imports_standard_modules_as_packages_do(tmp_path: Path) -> None:
    write_files(tmp_path, package__init="", package__model="import random", package__random="")
    assert module(tmp_path / "package" / "model.py").random is random


CLASSES = """
    from __future__ import annotations
    import dataclasses, typing
    from torch import nn
    from sizes import Sizes

    @dataclasses.dataclass(frozen=True)
    class Config:
        sizes: Sizes
        names: typing.ClassVar[list[str]] = []
        width: int = 4

    class Net(nn.Module):
        def __init__(self, config: Config):
            super().__init__()
            self.config = config
            self.linear = nn.Linear(config.width, config.width)
"""
SIZES = "class Sizes:\n    def __eq__(self, other): return type(self) is type(other)\n"


def test_classes_of_a_file_can_be_copied_pickled_and_read(tmp_path: Path) -> None:
    found = module(write_files(tmp_path, net=CLASSES, sizes=SIZES) / "net.py")
    config = found.Config(found.Sizes())
    net = found.Net(config)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(other) is found.Net
        assert other.config == config
    assert typing.get_type_hints(found.Config)["sizes"] is found.Sizes
    assert [one.name for one in dataclasses.fields(config)] == ["sizes", "width"]
    assert inspect.getsource(found.Net).startswith("class Net")
    assert dataclasses.replace(config, width=5).width == 5


def test_the_same_file_is_the_same_module_until_one_of_its_files_changes(tmp_path: Path) -> None:
    write_files(tmp_path, backend="from model import X", model="X = 1")
    path = tmp_path / "backend.py"
    first = module(path)
    assert module(path) is first
    assert module(tmp_path / "." / "backend.py") is first
    assert not (tmp_path / "__pycache__").exists()
    write_files(tmp_path, model="X = 22")
    second = module(path)
    assert (first.X, second.X) == (1, 22)
    assert module(path) is second


def test_a_file_that_failed_is_tried_again(tmp_path: Path) -> None:
    path = write_files(tmp_path, backend="raise SystemExit('no')") / "backend.py"
    for _ in range(2):
        with pytest.raises(LoadFailure, match="no"):
            resolve.load(str(path))


def test_a_package_that_cannot_be_imported_is_an_assumption(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        package__init="from .model import scale\nimport no_such_library\n",
        package__model="def scale(d): return d**-0.5",
        package__layers__init="",
        package__layers__parts=FUNCTION.replace("from model", "from package"),
    )
    place = tmp_path / "package" / "layers" / "parts.py"
    read = resolve.load(f"{place}:attention")
    assert isinstance(read, Adapted)
    assert any("the package package imports, which fails here: " in one for one in read.assumed)
    assert any("No module named 'no_such_library'" in one for one in read.understood)
    assert attentest.check(f"{place}:attention", clauses=["attention.formula"]).conforms


@pytest.mark.parametrize(
    "asking",
    [
        "import importlib.metadata\n__version__ = importlib.metadata.version('package')",
        "from importlib.metadata import version\n__version__ = version(__name__.split('.')[-1])",
        "from importlib import metadata\n__version__ = metadata.version('Package')",
    ],
)
def test_a_package_that_asks_for_its_own_version_is_imported(asking: str, tmp_path: Path) -> None:
    write_files(
        tmp_path, package__init=f"{asking}\nscale = 2", package__model="from . import scale"
    )
    assert file_modules.load(tmp_path / "package" / "model.py").scale == 2


def test_the_version_of_what_is_not_installed_is_unknown(tmp_path: Path) -> None:
    asking = "from importlib.metadata import version\nversion('no-such-library')\n"
    place = write_files(tmp_path, model=asking) / "model.py"
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        file_modules.load(place)


@pytest.mark.parametrize("own", ["import no_such_library", "from package import later"])
def test_a_file_that_needs_what_fails_in_its_package_is_not_loaded(
    tmp_path: Path, own: str
) -> None:
    init = "import no_such_library\nlater = 1\n"
    write_files(
        tmp_path, package__init=init, package__parts=f"{own}\n{FUNCTION}", model="scale = 1"
    )
    for _ in range(2):
        with pytest.raises(LoadFailure, match="No module named 'no_such_library'"):
            resolve.load(f"{tmp_path / 'package' / 'parts.py'}:attention")


@pytest.mark.parametrize("name", ["my-model", "model.v2", "class"])
def test_a_file_may_have_a_name_that_is_no_identifier(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("from model import X\n", encoding="utf-8")
    write_files(tmp_path, model="X = 1")
    assert module(tmp_path / f"{name}.py").X == 1


def test_two_files_of_one_folder_share_their_neighbour(tmp_path: Path) -> None:
    write_files(tmp_path, one="import model", two="import model", model="")
    assert module(tmp_path / "one.py").model is module(tmp_path / "two.py").model


@pytest.mark.proof
def test_a_file_that_is_installed_is_imported_as_everybody_does() -> None:
    assert module(Path(typing.cast(str, dataclasses.__file__))) is dataclasses


def test_files_of_a_project_leave_out_environments_and_all_that_is_not_python(
    tmp_path: Path,
) -> None:
    for name in ("main.py", "parts/one.py", "parts/deep/two.py", "data/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    for name in (".git/hook.py", "env/lib/site.py", "env/pyvenv.cfg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    found = [one.relative_to(tmp_path).as_posix() for one in folders.python_files(tmp_path)]
    assert found == ["main.py", "parts/one.py", "parts/deep/two.py"]


def test_files_of_a_large_project_are_looked_for_in_some_folders_alone(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"data{number:03}").mkdir()
        (tmp_path / f"data{number:03}" / "rows.py").write_text("", encoding="utf-8")
    assert len(folders.python_files(tmp_path)) == 60
    assert folders.python_files(tmp_path / "missing") == []
