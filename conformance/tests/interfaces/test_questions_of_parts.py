"""The question on a part of a model that is not read, where it is about two meanings."""

import pytest

from attentest.interfaces.files import summary
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Run
from attentest.targets.members import Member

DENIED = "The documentation says one thing, and the numbers another. Say which one is meant: --x."


@pytest.mark.parametrize(
    ("of_whole", "of_part", "shown"),
    [
        ("The model is not judged.", DENIED, True),
        ("The model is not judged.", "Rotary turns x by no listed convention, and ..", True),
        ("The model is not judged.", "It needs an argument.", False),
        ("", DENIED, False),
    ],
)
def test_question_on_a_part(of_whole: str, of_part: str, *, shown: bool) -> None:
    members = [
        Member("Experts", "mixture_of_experts", inside="Model"),
        Member("Model", "language_model"),
    ]
    runs = [
        BackendRun("own.py:Experts", failure=of_part),
        BackendRun("own.py:Model", failure=of_whole),
    ]
    part, _ = summary("own.py", members, Run.of(Plan(()), runs)).outcomes
    assert part.asks is shown
