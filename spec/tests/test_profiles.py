"""The profiles: named sets of choices, and backends that mean one."""

import pytest

from attentest_spec.choices import CHOICES, Choices
from attentest_spec.names import UnknownName
from attentest_spec.profiles import DEFAULT, PROFILES, profile_of
from attentest_spec.recipes import RecipeBackend


@pytest.mark.parametrize("name", PROFILES)
def test_profile_names_choices_that_are_not_the_default(name: str) -> None:
    profile = PROFILES[name]
    chosen = Choices.of(profile.choices)
    assert profile.title
    assert profile.source
    same = [one for one, value in profile.choices.items() if value == CHOICES[one].paper]
    assert same == [], "what the paper has is left out"
    assert chosen == Choices().but(**profile.choices)


def test_profiles_differ() -> None:
    sets = [Choices.of(one.choices) for one in PROFILES.values()]
    assert len({repr(one) for one in sets}) == len(sets)
    assert next(iter(PROFILES)) == DEFAULT


def test_backend_has_the_choices_of_its_profile_and_its_own() -> None:
    backend: RecipeBackend[None] = RecipeBackend(
        name="one", title="", recipes={}, profile="llama", choices={"tying": "all-three"}
    )
    assert backend.choices["norm_kind"] == "rms"
    assert backend.choices["tying"] == "all-three"


def test_deviations_are_counted_from_the_profile() -> None:
    llama = profile_of("llama")
    assert llama.option("block_norms") == "pre"
    assert llama.option("head_width") == "d/h"
    assert profile_of(DEFAULT).option("generator_bias") is None


def test_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no profile named 'lama'; did you mean llama"):
        profile_of("lama")
