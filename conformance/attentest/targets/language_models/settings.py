"""Settings that a decoder-only model is made with: the fields that its constructor reads."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attentest.targets.adapt.objects.keyword_settings import KeptFields
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.models.configurations import Configurations
from attentest_spec import Sizes


def settings_read(
    top: Callable[..., Any],
    own: str,
    fill: Callable[[str, Mapping[str, str]], str | None],
    kept: KeptFields,
    sizes: Sizes,
) -> tuple[str, Sequence[str]]:
    """Return the expression of the settings `own` of `top`, and the fields that nothing says.

    `fill` says a field by its name, and `kept` what it is where that does not; `sizes` are
    those of probing.
    """

    def filled(name: str, known: Mapping[str, str]) -> str | None:
        said = fill(name, known)
        return repr(kept.fields[name]) if said is None and name in kept.fields else said

    made = Configurations(
        lambda settings: top(**{own: settings}), filled, lambda code: eval(code, {"sizes": sizes})
    )
    with undisturbed():
        return made.without_switches(kept.made)


def layers_off(
    found: Mapping[str, str | None], arguments: Mapping[str, inspect.Parameter]
) -> Sequence[str]:
    """Return the numbers of layers that are 0 by default, where another one is not."""
    layers = [own for own, code in found.items() if code == "sizes.layers"]
    off = [own for own in layers if arguments[own].default == 0]
    return off if len(off) < len(layers) else []
