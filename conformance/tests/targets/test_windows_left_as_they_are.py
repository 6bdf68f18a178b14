"""A window that is longer than all that is judged is said to be left as it is."""

from types import SimpleNamespace

from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.questions.windows import windows_left


class _Model:
    def __init__(self, width: int, sliding_window: int = 4096) -> None:
        self.reach = width + sliding_window


class _Short(_Model):
    def __init__(self, width: int, window: int = 16) -> None:
        super().__init__(width, window)


class _Settings:
    def __init__(self, **kwargs: int) -> None:
        self.sliding_window = kwargs.pop("sliding_window", 4096)


SPACE = {
    "Settings": _Settings,
    "Model": _Model,
    "Short": _Short,
    "SimpleNamespace": SimpleNamespace,
}


def test_a_long_default_is_said() -> None:
    (said,) = windows_left(Building("Model(width=sizes.d_model)", SPACE))
    assert said.startswith("sliding_window is left at 4096")


def test_a_long_default_of_a_loose_keyword_is_said() -> None:
    (said,) = windows_left(Building("Settings(width=8)", SPACE))
    assert said.startswith("sliding_window is left at 4096")


def test_one_that_is_given_or_short_is_not() -> None:
    assert not windows_left(Building("Model(width=8, sliding_window=4)", SPACE))
    assert not windows_left(Building("Model(8, SimpleNamespace(sliding_window=4))", SPACE))
    assert not windows_left(Building("Short(width=sizes.d_model)", SPACE))
