"""The files whose imports are read before a file is run: those of a package may be thousands."""

import inspect
from pathlib import Path

import pytest
from torch.nn.modules import transformer

from attentest.targets import file_modules


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Return the files whose imports are read from here on."""
    found: set[Path] = set()
    imports = file_modules._imports

    def noted(file: Path) -> list[tuple[str, int]]:
        found.add(file)
        return imports(file)

    monkeypatch.setattr(file_modules, "_imports", noted)
    return found


def test_no_other_file_of_an_installed_package_is_read(looked_at: set[Path]) -> None:
    file = Path(inspect.getfile(transformer)).resolve()
    assert file_modules.importable(file)[1] == "torch.nn.modules.transformer"
    assert looked_at == {file}


def test_a_large_package_is_read_in_part_and_the_nearest_files_first(
    tmp_path: Path, looked_at: set[Path]
) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for number in range(300):
        (folder / f"part_{number}.py").write_text(f"from .part_{number + 1} import x\n")
    (folder / "model.py").write_text("from .part_0 import x\nfrom .with_others import y\n")
    (folder / "with_others.py").write_text("import other_folder\n")
    assert file_modules.importable(folder / "model.py") == (folder.parent, "large.model")
    assert 150 < len(looked_at) < 250
    (tmp_path / "other_folder").mkdir()
    (tmp_path / "other_folder" / "y.py").touch()
    assert file_modules.importable(folder / "model.py") == (tmp_path, "large.model")
