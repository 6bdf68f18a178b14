"""Question about a whole model that no way of building it fits."""

from collections.abc import Sequence
from typing import Any

from attentest.targets.adapt.names import SIZES
from attentest.targets.kernels import demand_runnable
from attentest.targets.models.trials import BIASED
from attentest.targets.neighbours import named_builders


def unbuilt(thing: Any, name: str, unknown: Sequence[str], first: str, failure: str) -> str:
    """Return the question about `thing`, of which nothing says what the `unknown` arguments are.

    The `first` way to build it raised a `failure`.
    """
    demand_runnable(name, failure, thing)
    if BIASED in failure:
        return f"{name} is not judged as model: {failure}."
    words = f"{' and '.join(unknown)} {'is' if len(unknown) == 1 else 'are'}"
    open_words = f" Nothing says what {words}." if unknown else ""
    tried = f" Built as {first}: {failure}." if first else ""
    return (
        f"{name} could not be built as a whole model.{open_words}{tried} Say what an argument "
        f"is with --argument SIZE=NAME ({', '.join(SIZES)}), or fix one with "
        f"--give NAME=VALUE (in Python: arguments={{SIZE: NAME}}, given={{NAME: VALUE}}); "
        f"--as encoder judges its encoder alone. A function that builds the model is a target "
        f"too: FILE.py:NAME.{named_builders(thing)}"
    )
