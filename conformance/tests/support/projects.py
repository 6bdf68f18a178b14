"""A user's project with a causal mask in it, to judge under pytest."""

from attentest.judging.registry import checks
from attentest.results.plan import select

checks()

SOUND = "np.tril(np.ones((1, 1, length, length), dtype=bool))"
BLIND = "np.tril(np.ones((1, 1, length, length), dtype=bool), -1)"
RAISING = "length / 0"
CLAUSES = len(select(["causal_mask"]))

_BACKEND = """
import numpy as np
from attentest_spec import Limits


class Part:
    capabilities = ()

    def __call__(self, length, method=""):
        return {mask}


class Tiny:
    name = "tiny"
    title = "a causal mask"
    choices = {{}}
    limits = Limits(precisions=("float64",))
    components = ("{component}",)

    def build(self, component, sizes, **_):
        return Part()


backend = Tiny()
"""


def project(pytester, mask=SOUND, *lines, component="causal_mask"):
    """Write a project whose settings name a backend, and judge causal masks alone."""
    text = _BACKEND.format(mask=mask, component=component)
    pytester.makepyfile(my_model=text, test_own="def test_own():\n    pass\n")
    settings = ['attentest_backend = "my_model.py:backend"', 'attentest_components = "causal_mask"']
    pytester.makepyprojecttoml("\n".join(["[tool.pytest.ini_options]", *settings, *lines]))


def ran(pytester, *words):
    """Run pytest in the project, in this process."""
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)
