"""Finds the form in which attention takes the rotary positions that its caller gives."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from attentest.targets.adapt import arguments
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.layouts import layouts
from attentest.targets.adapt.names import turns
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Reading, Unclear, Windowed
from attentest.targets.adapt.ungiven import with_masks
from attentest.targets.adapt.wrappers.turned import GIVEN, TURNED_SOURCE, Turned, forms
from attentest.targets.adapt.wrappers.turned_mistakes import around_turned_mistake
from attentest.targets.adapt.wrappers.wrapper import HEAD_WIDTH, Read, Wrapper
from attentest_spec import COMPONENTS as CONTRACT
from attentest_spec.choices import Value
from attentest_spec.torch.values import cast_real

COMPONENTS = ("multi_head_attention", "encoder_layer")
"""The components whose caller may give rotary positions."""

MOST = 3
"""The number of forms with different results that are read to the end."""

_WIDE = SIZES.but(d_model=16 * SIZES.heads)
"""Sizes of heads of which a quarter has two pairs of columns."""


class _Turned(Read, Protocol):
    @property
    def choices(self) -> Mapping[str, Value]: ...


B = TypeVar("B", bound=_Turned)


def turned_by_caller(code: Code, reading: Reading, read: Callable[[Code, Reading], B]) -> B | None:
    """Return the backend of code that is given tables of rotary positions, None for other code.

    A form counts where the numbers show that queries and keys are turned by it, or are those of a
    mistake that no design makes. Where no form is shown, what is asked with the first form that a
    call accepts is raised; None is returned where there is none, and `read` asks.
    """
    names = _turning(code.signature, reading)
    if code.component not in COMPONENTS or code.construction is None or not names:
        return None
    if not _is_required(code.signature, names) and _answers_without(code, reading, names):
        return None
    accepted: list[Wrapper] = []
    mistaken: list[B] = []
    questions: list[Unclear] = []
    rest = _without(code, names)
    for wrapper in _accepted(code, reading, names):
        accepted.append(wrapper)
        try:
            found = read(rest.wrapped(wrapper), reading)
        except Windowed:
            raise
        except Unclear as question:
            questions.append(question)
            continue
        if found.choices.get("attention_rotary", "none") != "none":
            if found.fits:
                return found
            mistaken.append(found)
    for wrapper in accepted:
        other: B | None = around_turned_mistake(rest.wrapped(wrapper), reading, read, wrapper)
        if other is not None:
            return other
    if len(mistaken) == 1:
        return mistaken[0]
    if questions:  # they are about more than the positions, which a form of them answers
        raise questions[0]
    return None


def _turning(signature: Signature, reading: Reading) -> list[str]:
    """Return the arguments that carry rotary positions by their names, and have no default of use.

    They must be given, or are None by default.
    """
    said = {*reading.given, *reading.arguments.values()}
    return [
        own
        for own, one in signature.parameters.items()
        if one.default in (Parameter.empty, None) and own not in said and turns(own)
    ]


def _is_required(signature: Signature, names: list[str]) -> bool:
    return any(signature.parameters[own].default is Parameter.empty for own in names)


def _answers_without(code: Code, reading: Reading, names: list[str]) -> bool:
    """Say whether a call answers that leaves out the arguments `names`."""
    module, adapter = _called(code, reading, names)
    return module is None or _answer(module, adapter) is not None


def _without(code: Code, names: list[str]) -> Code:
    rest = [one for own, one in code.signature.parameters.items() if own not in names]
    return replace(code, signature=code.signature.replace(parameters=rest))


def _called(code: Code, reading: Reading, names: list[str]) -> tuple[nn.Module | None, Adapter]:
    """Return what is built, None for no module, and how it is called without `names`.

    It is None as well where it cannot be built, which is asked about later.
    """
    rest = _without(code, names)
    carried = arguments.read(rest.name, rest.component, rest.signature, reading)
    adapter = Adapter(rest.component, rest.signature, carried, layouts(rest.component)[0])
    try:
        with undisturbed():
            module = code.build(_WIDE)
    except Exception:  # code that a user wrote may raise anything
        return None, adapter
    return (module if isinstance(module, nn.Module) else None), adapter


def _accepted(code: Code, reading: Reading, names: list[str]) -> Iterator[Wrapper]:
    """Yield the wrappers under which a call answers, each with another answer."""
    module, adapter = _called(code, reading, names)
    if module is None:
        return
    seen: list[Tensor] = []
    whole = False
    for options, words in forms(names):
        if whole and "part" in options:
            return
        sentence = f"assumed {GIVEN.format(' and '.join(names), words)}, and the base 10,000"
        wrapper = Wrapper(Turned, TURNED_SOURCE, HEAD_WIDTH, sentence, options, ("rotary_base",))
        output = _answer(wrapper(module, _WIDE), adapter)
        if output is None or any(torch.allclose(output, other) for other in seen):
            continue
        seen.append(output)
        # Tables with each angle once are as wide as those of half a head with each twice.
        whole = whole or ("part" not in options and options["columns"] != "once")
        yield wrapper
        if len(seen) == MOST:
            return


def _answer(module: nn.Module, adapter: Adapter) -> Tensor | None:
    for dtype in (torch.float64, torch.float32):
        probe = Probe(cast_real(module, dtype).eval(), dtype)
        given = _one_sequence(adapter.component, dtype)
        for tried in with_masks(adapter):
            found = probe.called(tried, given)
            if isinstance(found, Tensor):
                return found
    return None


def _one_sequence(component: str, dtype: torch.dtype) -> dict[str, Tensor | None]:
    """Return the inputs of `component` with one sequence of the wide sizes, without masks."""
    source = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, _WIDE.d_model, generator=source, dtype=torch.float64).to(dtype)
    return {one: None if "mask" in one else x for one in CONTRACT[component].inputs}
