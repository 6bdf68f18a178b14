"""A module that raises where it is asked for its file is no concern of what is judged."""

import sys
from types import ModuleType

from hypothesis import strategies as st

from attentest.judging import examples
from attentest.judging.bench import Bench
from attentest.judging.registry import Check
from attentest_spec.torch import of_function


class Lazy(ModuleType):
    """Imports a package that is not there, for every attribute."""

    def __getattr__(self, name):
        raise ImportError("Lazy import failed")


def load_lazy_module(monkeypatch):
    lazy = Lazy("lazy")
    vars(lazy).pop("__file__", None)
    monkeypatch.setitem(sys.modules, "attentest_lazy_module", lazy)


def try_twenty_examples():
    bench = Bench(of_function(lambda x: x, "layer_norm"), shrink=False)
    check = Check("layer_norm.shapes", lambda subject, draw: None, 20, "", "")
    drawn = []

    def example(draw):
        drawn.append(draw(st.lists(st.integers())))

    examples._test(bench, check, 20, example)
    assert len(drawn) == 20


def test_lazy_module_of_a_package_stops_no_example(monkeypatch):
    """Hypothesis looks for constants in the files of modules, now and then where it draws."""
    load_lazy_module(monkeypatch)
    try_twenty_examples()
    assert "__file__" not in vars(sys.modules["attentest_lazy_module"])
