"""A call by the items of one argument: of a dictionary, a tuple or an object.

The function needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
import types
from collections.abc import Sequence
from typing import Any

from torch import nn


def of_items(model: nn.Module, own: str, kind: str, items: Sequence[tuple[str, Any, bool]]) -> Any:
    """Return `model`, called with the items of its argument `own` in the place of that.

    `kind` is dict, tuple or object; it is names where items are arguments, which get other names.
    An item has a name, its key or number, and whether it has to be given.
    """
    plain = type(model)
    parameter, empty = inspect.Parameter, inspect.Parameter.empty
    named = [
        parameter(name, parameter.KEYWORD_ONLY, default=empty if needed else None)
        for name, _, needed in items
    ]

    def forward(self: nn.Module, **given: Any) -> Any:
        held: Any = {key: given[name] for name, key, _ in items if given.get(name) is not None}
        if kind == "names":
            return plain.forward(self, **held)
        if kind == "tuple":
            held = tuple(held.get(number) for number in range(items[-1][1] + 1))
        elif kind == "object":
            held = types.SimpleNamespace(**held)
        return plain.forward(self, **{own: held})

    first = parameter("self", parameter.POSITIONAL_OR_KEYWORD)
    vars(forward)["__signature__"] = inspect.Signature([first, *named])
    model.__class__ = type(plain.__name__, (plain,), {"forward": forward})
    return model


OF_ITEMS_SOURCE = "\n".join(
    [
        *("import inspect", "import types", "from collections.abc import Sequence"),
        *(
            "from typing import Any",
            "",
            "from torch import nn",
            "",
            "",
            inspect.getsource(of_items),
        ),
    ]
)
"""The function as code of its own."""
