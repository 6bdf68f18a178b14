"""The words of a mistake: sizes of the example that is shown, and padding that is seen."""

import numpy as np
import pytest

from attentest.analysis.lines.explain import Explanation
from attentest.analysis.lines.formula import Formula, Mistake
from attentest.analysis.lines.formulas.masks import padding
from attentest_spec import Choices, Sizes


def formula_of(width: float, head: float) -> Formula:
    """Return a formula whose scores are divided by the root of one of two widths."""
    made = Formula(Sizes(), Choices(), {})
    scores = made.leaf("scores", np.ones(2), "K")
    words = "scores / sqrt({0}), where sqrt({0}) = {1}".format
    made.step(
        "",
        "scaled scores",
        np.negative,
        scores,
        text=words("d_k", head),
        axes="K",
        mistakes=[Mistake(words("d_model", width), np.negative)],
    )
    return made


@pytest.mark.parametrize(("width", "said"), [(2.45, ", where sqrt(d_model) = 2.45"), (1.73, "")])
def test_two_sizes_that_are_one_number_are_not_named(width: float, said: str) -> None:
    step = formula_of(4.9, 2.83).steps[-1]
    first = Explanation(step, step.text, step.mistakes[0].text, exact=True)
    found = first.on(formula_of(width, 1.73))
    assert found.computed == f"scores / sqrt(d_model){said}"
    assert found.expected.startswith("scores / sqrt(d_k)")
    assert ("where" in found.expected) == bool(said)


def test_padding_that_is_seen_is_said_before_a_comparison_with_another_id() -> None:
    made = Formula(Sizes(source_pad=3, target_pad=5), Choices(), {})
    tokens = made.leaf("source", np.array([[1, 2, 3]]), "BK")
    step = padding(made, tokens, 3)
    seen = np.ones_like(step.value)
    found = [one.text for one in step.mistakes if np.array_equal(one.compute(tokens.value), seen)]
    assert found[0] == "all keys, padding too"
    assert "the keys that are not 5" in found
