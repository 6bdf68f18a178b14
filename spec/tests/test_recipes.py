"""Backends that are built under other choices."""

from collections.abc import Mapping

import pytest

from attentest_spec import Choices, Unsupported
from attentest_spec.recipes import RecipeBackend


def named(choices: Choices) -> Mapping[str, str]:
    """Return the one recipe of a backend: the name of its placement of norms."""
    return {"encoder_layer": str(choices["norm_placement"])}


ONE = RecipeBackend(
    name="one",
    title="one",
    recipes=named(Choices()),
    choices={"norm_variance": "biased"},
    variants=named,
)


def test_a_backend_under_other_choices_keeps_those_that_it_declares() -> None:
    other = ONE.under({"norm_placement": "pre"})
    assert other.recipe("encoder_layer") == "pre"
    assert (other.choices["norm_placement"], other.choices["norm_variance"]) == ("pre", "biased")
    assert other.name == ONE.name
    assert ONE.recipe("encoder_layer") == "post"
    assert other.under({"norm_placement": "post"}).recipes == ONE.recipes


def test_a_backend_without_variants_takes_no_choices() -> None:
    fixed = RecipeBackend(name="two", title="two", recipes={"encoder_layer": "post"})
    with pytest.raises(Unsupported, match="two cannot be built under other choices"):
        fixed.under({"norm_placement": "pre"})
