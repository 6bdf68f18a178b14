"""Long lines of a written adapter are broken, and stay valid code."""

import ast

import pytest

from attentest.targets.layout import folded

LONG = "the_first_of_many_words_in_a_long_name"


@pytest.mark.parametrize(
    "line",
    [
        f"x = call({LONG}, {LONG}_2, {LONG}_3)",
        f"    x = torch.stack([{LONG}, {LONG}_2, {LONG}_3], dim=0)",
        f"x = call({LONG}={LONG}_2({LONG}, {LONG}_3))",
        f"x = tuple({LONG}[one] for one in {LONG}_2 if one.is_this_name_long_enough)",
        f"x = tuple(({LONG}[one] for one in {LONG}_2 if one.is_this_name_long_enough))",
        f"x = outer(sum({LONG}[one] for one in {LONG}_2 if one.is_this_name_long_enough), {LONG})",
    ],
)
def test_a_long_line_is_broken_and_means_the_same(line: str) -> None:
    made = folded(line)
    assert "\n" in made
    assert ast.dump(ast.parse(made.strip())) == ast.dump(ast.parse(line.strip()))
