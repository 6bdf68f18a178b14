"""Files of packages that lie beside others, as `pip install` puts them."""

from pathlib import Path

from user_files import write_files

from attentest.targets.file_modules import load
from attentest.targets.neighbours import classes_near

OWN = """
    class Attention:
        def __init__(self, config):
            self.width = config.width
"""
SETTINGS = "class {}Config:\n    width = 8\n"


def names_near(folder: Path) -> list[str]:
    thing = vars(load(folder / "own" / "attention.py"))["Attention"]
    groups = classes_near(thing, lambda name: name.endswith("Config"))
    return [name for group in groups for name, _ in group]


def files(folder: Path) -> None:
    settings = {"own__inner__settings": SETTINGS.format("Own")}
    settings |= {"other__settings": SETTINGS.format("Other")}
    packages = dict.fromkeys(("own__init", "own__inner__init", "other__init"), "")
    write_files(folder, own__attention=OWN, **settings, **packages)


def test_classes_of_other_installed_packages_are_not_near(tmp_path: Path) -> None:
    files(tmp_path)
    (tmp_path / "other-1.0.dist-info").mkdir()
    assert names_near(tmp_path) == ["OwnConfig"]


def test_classes_of_packages_of_one_project_are_near(tmp_path: Path) -> None:
    files(tmp_path)
    assert {*names_near(tmp_path)} == {"OwnConfig", "OtherConfig"}
