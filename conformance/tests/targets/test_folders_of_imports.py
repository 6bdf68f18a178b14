"""The folder from which a file in a package imports what lies in another folder of it."""

from pathlib import Path

import pytest

from attentest.targets.file_modules import load


def test_imports_from_a_folder_within_the_package_of_a_file_are_found(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "model"
    parts = tmp_path / "outer" / "components"
    for folder in (inner, parts):
        folder.mkdir(parents=True)
    for folder in (inner.parent, inner, parts):
        (folder / "__init__.py").touch()
    (parts / "sizes.py").write_text("WIDTH = 8\n")
    (inner / "whole.py").write_text("from components.sizes import WIDTH\n")
    assert load(inner / "whole.py").WIDTH == 8


def test_a_file_with_the_name_of_its_folder_imports_what_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project" / "model"
    folder.mkdir(parents=True)
    (folder / "sizes.py").write_text("WIDTH = 8\n")
    (folder / "model.py").write_text("from model.sizes import WIDTH\n")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    assert load(folder / "model.py").WIDTH == 8


def test_neighbours_of_a_file_with_the_name_of_its_folder_import_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project" / "model"
    folder.mkdir(parents=True)
    (folder / "sizes.py").write_text("WIDTH = 8\n")
    (folder / "layers.py").write_text("from model.sizes import WIDTH\n\nINNER = 4 * WIDTH\n")
    (folder / "model.py").write_text("from model.layers import INNER\n")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    assert load(folder / "model.py").INNER == 32


def test_imports_of_files_that_are_imported_by_dots_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "project" / "sources" / "model"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "width.py").write_text("WIDTH = 8\n")
    (folder / "parts" / "block.py").write_text("from sources.model.parts.width import WIDTH\n")
    (folder / "whole.py").write_text("from .parts.block import WIDTH\n")
    assert load(folder / "whole.py").WIDTH == 8


def test_file_of_that_name_holds_nothing_that_is_imported_from_within(tmp_path: Path) -> None:
    folder = tmp_path / "project" / "model"
    (folder / "parts").mkdir(parents=True)
    (folder / "model.py").write_text("WIDTH = 4\n")
    (folder / "parts" / "width.py").write_text("WIDTH = 8\n")
    (folder / "parts" / "block.py").write_text("from model.parts.width import WIDTH\n")
    (folder / "parts" / "whole.py").write_text("from .block import WIDTH\n")
    assert load(folder / "parts" / "whole.py").WIDTH == 8


def test_folders_around_the_working_folder_are_imported_and_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    for name in ("model", "layers"):
        (project / name).mkdir(parents=True)
    (project / "layers" / "sizes.py").write_text("WIDTH = 8\n")
    (project / "stray.py").write_text("WIDTH = 9\n")
    (project / "model" / "whole.py").write_text("from layers.sizes import WIDTH\n")
    (project / "model" / "other.py").write_text("from stray import WIDTH\n")
    monkeypatch.chdir(project / "model")
    assert load(project / "model" / "whole.py").WIDTH == 8
    with pytest.raises(ModuleNotFoundError, match="stray"):
        load(project / "model" / "other.py")


def test_nothing_around_a_working_folder_that_is_a_project_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "sizes.py").write_text("WIDTH = 8\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    (project / "whole.py").write_text("from layers.sizes import WIDTH\n")
    monkeypatch.chdir(project)
    with pytest.raises(ModuleNotFoundError, match="layers"):
        load(project / "whole.py")
