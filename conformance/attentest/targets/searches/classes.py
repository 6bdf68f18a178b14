"""Classes that decode, as functions of all that their constructor and their method take."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attentest.targets.adapt.reading import Unclear

METHODS = (
    "search",
    "beam_search",
    "decode",
    "translate",
    "generate",
    "translate_sentence",
    "__call__",
    "forward",
)
"""Methods that decode, the likeliest first."""


@dataclass(frozen=True)
class Built:
    """A function that builds `made`, and calls its `method`, with arguments of both."""

    made: type
    method: str

    @property
    def __signature__(self) -> inspect.Signature:
        own = inspect.signature(self.made).parameters
        called = self._called()
        both = {**own, **{one: what for one, what in called.items() if one not in own}}
        plain = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for one in both.values()
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        return inspect.Signature(plain)

    @property
    def __globals__(self) -> Mapping[str, Any]:
        space: dict[str, Any] = self._function().__globals__
        return space

    @property
    def __code__(self) -> Any:
        return self._function().__code__

    def _function(self) -> Any:
        return inspect.unwrap(getattr(self.made, self.method))

    def _called(self) -> dict[str, inspect.Parameter]:
        _, *rest = inspect.signature(getattr(self.made, self.method)).parameters.items()
        return dict(rest)

    def __call__(self, **named: Any) -> Any:
        """Build an object, and call its method."""
        made = inspect.signature(self.made).parameters
        called = self._called()
        built = self.made(**{one: value for one, value in named.items() if one in made})
        given = {one: value for one, value in named.items() if one in called}
        return getattr(built, self.method)(**given)


def as_function(thing: Any, name: str, methods: Sequence[str] = METHODS) -> Any:
    """Return a function as it is, and a class as a :class:`Built`; Unclear where none decodes.

    It is called by the first of `methods` that the class defines.
    """
    if not inspect.isclass(thing):
        return thing
    method = next((one for one in methods if callable(vars(thing).get(one))), "")
    if not method:
        raise Unclear(
            f"{name} has no method that decodes; known ones are {', '.join(methods)}. Write a "
            f"backend with a recipe: attentest_spec.torch.Script is the model that it decodes."
        )
    return Built(thing, method)
