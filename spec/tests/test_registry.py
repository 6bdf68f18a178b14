"""The registry, over a distribution written into a temporary folder."""

import sys
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
def test_what_cannot_be_loaded_says_why_in_one_paragraph(name: str, reason: str) -> None:
    with pytest.raises(registry.LoadFailure, match=reason) as caught:
        registry.load(name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("announced")
def test_what_is_no_backend_is_told_what_it_lacks() -> None:
    with pytest.raises(registry.LoadFailure, match=r"int that lacks name, title.*build"):
        registry.load("zz-seven")


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        name, value, module = "slow", "slow:backend", "slow"

        def load(self) -> object:
            raise KeyboardInterrupt

    monkeypatch.setattr(registry, "entry_points", lambda group: [Interrupting()])
    with pytest.raises(KeyboardInterrupt):
        registry.load("slow")
