"""The registry, over a distribution written into a temporary folder."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attentest_spec import registry
from attentest_spec.names import UnknownName

SOUND = """
class Sound:
    name, title, choices, components = "sound", "a sound one", {}, ()
    limits = None
    def build(self, component, sizes, *, precision="float64", device="cpu"): ...

backend = Sound()
def make(): return Sound()
def spoiled(): raise OSError("no weights here")
nothing = 7
"""


@pytest.fixture
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Announce six backends, one of them sound, as an installed distribution would."""
    (tmp_path / "sound_one.py").write_text(SOUND)
    (tmp_path / "broken_one.py").write_text("import a_module_that_is_not_there")
    (tmp_path / "leaving_one.py").write_text("raise SystemExit('bye\\nnow')")
    info = tmp_path / "announcing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: announcing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{registry.GROUP}]\n"
        "zz-sound = sound_one:backend\n"
        "zz-made = sound_one:make\n"
        "zz-spoiled = sound_one:spoiled\n"
        "zz-seven = sound_one:nothing\n"
        "zz-absent = sound_one:not_there\n"
        "zz-broken = broken_one:backend\n"
        "zz-leaving = leaving_one:backend\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("sound_one", "broken_one", "leaving_one"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("announced")
def test_names_are_sorted_and_hold_what_cannot_be_loaded_too() -> None:
    found = [name for name in registry.names() if name.startswith("zz-")]
    assert found == [
        "zz-absent", "zz-broken", "zz-leaving", "zz-made", "zz-seven", "zz-sound", "zz-spoiled",
    ]  # fmt: skip


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("name", ["zz-sound", "zz-made"])
def test_an_object_and_a_callable_that_makes_one_are_loaded(name: str) -> None:
    assert registry.load(name).title == "a sound one"


@pytest.mark.usefixtures("announced")
def test_the_module_of_a_backend_is_known_without_its_import() -> None:
    assert registry.home("zz-sound") == "sound_one"
    assert "sound_one" not in sys.modules
    with pytest.raises(UnknownName):
        registry.home("zz-silent")


@pytest.mark.usefixtures("announced")
def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no backend named 'zz-sond'; did you mean zz-sound"):
        registry.load("zz-sond")


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("zz-broken", "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        ("zz-leaving", "SystemExit: bye now"),
        ("zz-absent", "AttributeError: .*not_there"),
        ("zz-spoiled", "OSError: no weights here"),
    ],
)
def test_load_failure_gives_the_reason_in_one_paragraph(name: str, reason: str) -> None:
    with pytest.raises(registry.LoadFailure, match=reason) as caught:
        registry.load(name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("announced")
def test_object_that_is_not_a_backend_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(registry.LoadFailure, match=r"int that lacks name, title.*build"):
        registry.load("zz-seven")


def test_a_backend_that_is_installed_later_is_announced(lent: "Announce", tmp_path: Path) -> None:
    assert "zz-lent" not in registry.names()
    lent("zz-absent-library", "import json")
    assert "zz-lent" in registry.names()
    (tmp_path / "lent_adapter-1.0.dist-info").rename(tmp_path / "gone")
    assert "zz-lent" not in registry.names()


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        name, value, module = "slow", "slow:backend", "slow"

        def load(self) -> object:
            raise KeyboardInterrupt

    monkeypatch.setattr(registry, "_announced", lambda: {"slow": Interrupting()})
    with pytest.raises(KeyboardInterrupt):
        registry.load("slow")


# A backend whose library is an extra of its own distribution ------------------------------------


Announce = Callable[[str, str], None]


@pytest.fixture
def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Announce:
    """Announce zz-lent, of a distribution with given requirements, whose module is given code."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def announce(requirements: str, code: str) -> None:
        (tmp_path / "lent_one.py").write_text(f"{code}\n{SOUND}")
        monkeypatch.delitem(sys.modules, "lent_one", raising=False)
        info = tmp_path / "lent_adapter-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: lent-adapter\nVersion: 1.0\nProvides-Extra: library\n"
            + "".join(f"Requires-Dist: {one}\n" for one in requirements.split(" | "))
        )
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\nzz-lent = lent_one:backend\n")

    return announce


ABSENT = "Zz.Absent-Library >=2; extra == 'library'"
COMMAND = 'pip install "lent-adapter[library]"'


@pytest.mark.parametrize("code", ["import zz_absent_library", "import zz_absent_library.layers"])
def test_a_backend_without_its_library_is_not_installed(lent: Announce, code: str) -> None:
    lent(f"numpy | {ABSENT}", code)
    assert registry.install_command("zz-lent") == COMMAND
    assert "zz-lent" in registry.names()
    assert "zz-lent" not in registry.installed()
    with pytest.raises(registry.NotInstalled, match=re.escape(COMMAND)) as caught:
        registry.load("zz-lent")
    assert "needs Zz.Absent-Library, which is not installed" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("requirements", "code"),
    [
        (ABSENT, "import zz_absent_libary"),
        ("zz-absent-library", "import zz_absent_library"),
        (f"zz-absent-library | {ABSENT}", "import zz_absent_library"),
        ("zz-absent-library; extra == 'docs'", "import zz_absent_library"),
        ("numpy; extra == 'library'", "import numpy.nosuch"),
        ("zz-absent-library; extra == 'library' and os_name == ''", "import zz_absent_library"),
        (ABSENT, "raise RuntimeError('zz_absent_library')"),
    ],
    ids=["typo", "needed", "needed-too", "other-extra", "no-such-part", "elsewhere", "other-error"],
)  # fmt: skip
def test_other_import_errors_are_load_failures(
    lent: Announce, requirements: str, code: str
) -> None:
    lent(requirements, code)
    with pytest.raises(registry.LoadFailure, match="could not be loaded") as caught:
        registry.load("zz-lent")
    assert not isinstance(caught.value, registry.NotInstalled)


@pytest.mark.parametrize("requirement", ["numpy", "zz-absent-library", "numpy; extra == 'library'"])
def test_backend_with_its_library_is_installed(lent: Announce, requirement: str) -> None:
    lent(requirement, "")
    assert registry.install_command("zz-lent") == ""
    assert "zz-lent" in registry.installed()


def test_a_library_that_is_there_without_metadata_is_installed(
    lent: Announce, tmp_path: Path
) -> None:
    (tmp_path / "zz_found_library.py").write_text("")
    lent("zz-found-library; extra == 'library'", "import zz_found_library")
    assert "zz-lent" in registry.installed()
    assert registry.load("zz-lent").title == "a sound one"


@pytest.mark.usefixtures("announced")
def test_a_backend_without_extras_counts_as_installed_whatever_is_wrong_with_it() -> None:
    assert {"zz-broken", "zz-sound", "zz-seven"} <= set(registry.installed())


def test_an_unknown_name_has_no_command() -> None:
    with pytest.raises(UnknownName):
        registry.install_command("zz-nobody")
