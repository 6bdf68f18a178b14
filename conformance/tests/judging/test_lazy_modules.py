"""A module that raises where it is asked for its file is no concern of what is judged."""

import sys
from types import ModuleType

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest_spec.torch import of_function


class Lazy(ModuleType):
    """Imports a package that is not there, for every attribute."""

    def __getattr__(self, name):
        raise ImportError("Lazy import failed")


def test_lazy_module_of_a_package_stops_no_verdict(monkeypatch):
    lazy = Lazy("lazy")
    vars(lazy).pop("__file__", None)
    monkeypatch.setitem(sys.modules, "attentest_lazy_module", lazy)
    backend = of_function(lambda x: x, "layer_norm")
    verdict = judge(Bench(backend, shrink=False, diagnose=False), "layer_norm.shapes")
    assert verdict.status == Status.VIOLATION  # of the function that is judged
    assert "Lazy" not in verdict.message
