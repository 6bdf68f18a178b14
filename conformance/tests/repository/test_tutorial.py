"""The code that pages paste into files, for the commands below it."""

import sys

import pytest
from folders import DOCS

sys.path.append(str(DOCS / "_ext"))

from marked import places  # type: ignore[import-not-found]  # modules of docs/_ext
from walk import merge  # type: ignore[import-not-found]


def test_tutorial_is_executed() -> None:
    kinds = [one.kind for one in places((DOCS / "tutorial.md").read_text(encoding="utf-8"))]
    assert kinds[0] == "walk"
    assert {"run", "file"} <= set(kinds)


OLD = '"""A page."""\n\nimport torch\n\n\ndef one():\n    return 1\n\n\nclass Two:\n    pass\n'


def test_definition_replaces_the_one_of_the_same_name() -> None:
    new = merge(OLD, "import math\n\ndef one():\n    return math.pi\n")
    assert new == OLD.replace("import torch", "import math\nimport torch").replace(
        "1\n", "math.pi\n"
    )
    assert merge(new, "import math") == new


@pytest.mark.parametrize("code", ["def three():\n    pass", "x = 1"])
def test_code_without_a_place_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match=r"three|x = 1"):
        merge(OLD, code)
