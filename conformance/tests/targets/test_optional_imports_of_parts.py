"""Parts in files that try to import an optional package, and files that do more than that."""

import pytest
from user_files import write_files

from attentest.targets.file_modules import load
from attentest.targets.neighbours import modules_near

LAYER = """
    from torch import nn

    class EncoderLayer(nn.Module):
        def __init__(self, size, self_attn):
            super().__init__()
            self.self_attn = self_attn
"""
PART = """
    from torch import nn

    try:
        from package_that_is_nowhere import kernel
    except ImportError as failure:
        print(f"without kernels: {failure}")

    class SelfAttention(nn.Module):
        pass
"""


def found(folder, part):
    place = write_files(folder, pieces__layer=LAYER, pieces__attention=part)
    layer = load(place / "pieces" / "layer.py").EncoderLayer
    near = modules_near(layer, "SelfAttention".__eq__)
    return [name for group in near for name, _ in group]


@pytest.mark.parametrize("other", ["pass", "kernel = None", "import math as kernel"])
def test_a_file_that_tries_an_import_defines_things(tmp_path, other):
    part = PART.replace('print(f"without kernels: {failure}")', other)
    assert "SelfAttention" in found(tmp_path, part)


def test_a_file_that_says_what_is_missing_defines_things(tmp_path):
    assert "SelfAttention" in found(tmp_path, PART)


@pytest.mark.parametrize("other", ["raise SystemExit(failure)", "open('own.txt', 'w')"])
def test_a_file_that_does_something_in_its_place_is_not_run(tmp_path, other):
    part = PART.replace('print(f"without kernels: {failure}")', other)
    assert not found(tmp_path, part)


def test_a_file_that_needs_a_package_and_names_it_defines_things(tmp_path):
    part = PART.replace("package_that_is_nowhere", "math").replace("kernel", "sqrt", 1)
    part = part.replace('print(f"without kernels: {failure}")', "raise ImportError(str(failure))")
    assert "SelfAttention" in found(tmp_path, part)
