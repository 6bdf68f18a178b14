"""Components that no signature shows: what is written by hand for each of them."""

from attentest_spec import COMPONENTS

_GUIDE = "docs/how-to/add-an-implementation.md"
_STEPS = (
    "a recipe of three functions: `from attentest_spec.torch import cached_decoding`, and "
    "`cached_decoding(build, start=lambda model, source: .., step=lambda model, cache, tokens: "
    "(scores, cache), reorder=lambda model, cache, rows: .., parameters=PARAMETERS)`. For a cache "
    "class, or a model that takes past_key_values, the cache that these functions pass on is that "
    "object; `attentest check FILE:MODEL --write-adapter` writes build and PARAMETERS"
)
COMPONENTS_BY_RECIPE = ("cached_decoding", "grouped_optimiser", "padded_batch", "packed_batch")


def question(component: str, name: str) -> str:
    """Return what is asked where `name` should be judged as one of these components."""
    inputs = ", ".join(COMPONENTS[component].inputs)
    plain = (
        f"`from attentest_spec.torch import of_function` and `backend = of_function(lambda "
        f'{inputs}: .., "{component}")`'
    )
    asked = _STEPS if component == "cached_decoding" else plain
    return (
        f"{name} cannot be read as {component} by itself: nothing in its signature says how its "
        f"calls follow each other. Write in a file of your own {asked}; {_GUIDE} shows it."
    )
