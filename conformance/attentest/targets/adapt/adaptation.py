"""From a function or a class to a backend: everything that is inferred is said."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch

from attentest.analysis.identify import identify
from attentest.harness.reproduction import Action
from attentest.targets.adapt import arguments, makers, masks, probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code, code_of
from attentest.targets.adapt.layouts import layouts, sequence_first, told
from attentest.targets.adapt.limits import built, limits_measured, limits_of, said_of
from attentest.targets.adapt.parameters import find_table
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.script import Script
from attentest.targets.models import adaptation as whole
from attentest_spec import CHOICES, COMPONENTS, Backend, Choices, Table, Unsupported
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend

_SEQUENCES = ("multi_head_attention", "encoder_layer", "encoder")
"""Components in which one input alone can show which axis is the sequence."""


@dataclass(frozen=True, kw_only=True)
class Adapted(TorchBackend):
    """A backend made of code that was not written for the contract.

    `understood` are the sentences that say how the `code` was read.
    """

    understood: tuple[str, ...] = ()
    code: Code

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions` on the user's own code, with nothing between."""
        return Script(self.code, self.recipes[self.code.component].call).text(actions)


def adapt(
    thing: Any, reading: Reading | None = None, name: str = "", home: ModuleType | None = None
) -> Backend:
    """Return `thing`, a function, class or instance, as a backend; a backend stays what it is.

    `home` is the module in which it is called `name`, None for a live object.
    Raises Unclear, with what to add, where the code does not say how it is built or called.
    """
    if isinstance(thing, Backend) and not inspect.isclass(thing):
        return thing
    asked = reading or Reading()
    if whole.is_model(thing, asked, name):
        return whole.adapt_model(thing, asked, name or thing.__name__, home)
    code = code_of(thing, asked, name)
    if code.thing is thing:  # an instance may stand for its class, which is found by itself
        code = replace(code, home=home)
    _all_used(code, asked)
    read = _making if code.component in makers.COMPONENTS else _adapted
    with probing.undisturbed():
        return read(code, asked)


def _making(code: Code, reading: Reading) -> Adapted:
    """Return a function that makes masks as a backend."""
    carried = arguments.read(code.name, code.component, code.signature, reading)
    adapter = Adapter(code.component, code.signature, carried, layouts(code.component)[0])
    probe = Probe(built(code, torch.float64))
    maker, said = makers.maker(probe, adapter, code.words, code.name, reading.mask)
    return Adapted(
        name=code.name,
        title=f"{code.name}, read as {code.component}",
        recipes={code.component: Recipe(code.build, maker)},
        code=code,
        understood=(f"{code.name} is judged as {code.component}", *code.said, carried.words, *said),
    )


def _adapted(code: Code, reading: Reading) -> Adapted:
    probe, adapter, said = _read(code, reading)
    table, choices, found = _parameters(code, adapter)
    backend = Adapted(
        name=code.name,
        title=f"{code.name}, read as {code.component}",
        recipes={code.component: Recipe(code.build, adapter, _methods(code), table)},
        choices={**choices, **reading.choices},
        limits=limits_of(code, probe, adapter, table),
        code=code,
        understood=(f"{code.name} is judged as {code.component}", *code.said, *said, *found),
    )
    declared = {**_measured(backend), **backend.choices}
    limits = limits_measured(backend, Choices.of(declared))
    return replace(
        backend,
        choices=declared,
        limits=limits,
        understood=(
            *backend.understood,
            *_chosen(declared, reading),
            *said_of(limits),
        ),
    )


def _methods(code: Code) -> Mapping[str, Callable[..., Any]]:
    """Return what answers for the methods of the contract: that they cannot be read off."""

    def unread(*_: Any) -> Any:
        raise Unsupported("only its call was read, and no method of it")

    return dict.fromkeys(COMPONENTS[code.component].methods, unread)


def _chosen(declared: Mapping[str, Value], reading: Reading) -> Iterator[str]:
    """Yield what is taken as declared where it is not the paper's, and how it was found."""
    for name, value in declared.items():
        paper = CHOICES[name].paper
        shown = f"{value:g}" if isinstance(value, float) else value
        if name in reading.choices:
            yield f"{name}: {shown}, as you say"
        elif value != paper:
            yield f"{name}: {shown}, measured; the paper: {paper or 'silent'}"


def _read(code: Code, reading: Reading) -> tuple[Probe, Adapter, list[str]]:
    """Return the adapter that calls the code, what it was found with, and what to say of it."""
    carried = arguments.read(code.name, code.component, code.signature, reading)
    adapter = Adapter(code.component, code.signature, carried, layouts(code.component)[0])
    only = reading.layout or _layout_by_words(code)
    probe, adapter, keys = _placed(code, adapter, only)
    if not only:
        adapter = _turned(probe, adapter)
    adapter, said = _masked(probe, adapter, code, reading, keys)
    if _causal(code, probe, adapter):
        adapter = replace(adapter, causal=True)
        said.append("it hides later positions by itself")
    lies = f"tensors: {adapter.layout.words}; it returns {adapter.returns.words}"
    return probe, adapter, [carried.words, lies, *said]


def _layout_by_words(code: Code) -> str:
    if code.construction is not None and "batch_first" in code.construction.fillings:
        return "batch-first"
    return told(code.words)


def _placed(code: Code, adapter: Adapter, only: str) -> tuple[Probe, Adapter, int]:
    """Return a probe and the adapter in a layout that fits, with the number of keys that did.

    Unlike lengths are tried first; code that takes equal ones alone is for the clauses to tell.
    Raises Unclear with what every call raised where none fits.
    """
    why: list[str] = []
    for dtype in (torch.float64, torch.float32):
        probe = Probe(built(code, dtype), dtype)
        for keys in (7, 5):
            given = probe.given(adapter, keys=keys)
            for tried in _with_masks(adapter):
                found, refusals = probing.with_layout(probe, tried, only, given)
                if not refusals:
                    return probe, found, keys
                why = why or refusals
    raise Unclear(
        f"{code.name} could not be called as {code.component}. What was tried: {'; '.join(why)}. "
        f"If it is another component, name it with --as; if an argument was taken for another "
        f"({adapter.arguments.words}), say which is which with --argument ROLE=NAME."
    )


def _with_masks(adapter: Adapter) -> list[Adapter]:
    """Return `adapter`, and where masks must be given also those that give one."""
    needed = probing.unmasked(adapter)
    if not needed:
        return [adapter]
    roles = [role for role in arguments.MASKS if role in adapter.arguments.roles]
    return [adapter] + [
        replace(adapter, needs_mask=needed, styles=dict.fromkeys([*roles, "padding"], style))
        for style in masks.STYLES
        if style.meaning == "keep"
    ]


def _turned(probe: Probe, adapter: Adapter) -> Adapter:
    """Return `adapter` with the sequence first, where one input alone shows exactly that."""
    shows = (adapter.component in _SEQUENCES and probing.swaps_batch(probe, adapter)) or (
        adapter.component == "positional_encoding" and probing.adds_by_row(probe, adapter)
    )
    if not shows:
        return adapter
    (other,) = [one for one in layouts(adapter.component) if sequence_first(one)]
    return replace(adapter, layout=other)


def _masked(
    probe: Probe, adapter: Adapter, code: Code, reading: Reading, keys: int
) -> tuple[Adapter, list[str]]:
    """Return `adapter` with a style for every mask, and how each was found."""
    said = []
    slots = {role: own for role, own in adapter.arguments.roles.items() if role in arguments.MASKS}
    if adapter.arguments.padding:
        slots["padding"] = adapter.arguments.padding
    for slot, own in slots.items():
        meanings, source = masks.meanings_by_words(own, code.words)
        if reading.mask:
            meanings, source = (reading.mask,), "you"
        shown, accepted = probing.style_shown(probe, adapter, slot, meanings, keys)
        style = shown or accepted or masks.plain_style(meanings)
        adapter = replace(adapter, styles={**adapter.styles, slot: style})
        said.append(f"{own}: {style.words} ({_how(shown is not None, source)})")
    if not slots and "mask" in COMPONENTS[adapter.component].inputs:
        said.append("it takes no mask")
    return adapter, said


def _how(shown: bool, source: str) -> str:
    """Return how a convention was found: said by the user or by words, or shown by a call."""
    if not source:
        contrary = "a probing call shows no convention: this one is the contract's"
        return "as a probing call shows" if shown else contrary
    by = "as you say" if source == "you" else f"by its {source}"
    return by if shown else f"{by}; a probing call does not show it"


def _causal(code: Code, probe: Probe, adapter: Adapter) -> bool:
    """Say whether code without a mask hides later positions by itself: its name decides first."""
    if adapter.component not in _SEQUENCES or "mask" in adapter.arguments.roles:
        return False
    return "causal" in code.name.lower() or probing.is_causal(probe, adapter)


def _parameters(code: Code, adapter: Adapter) -> tuple[Table, Mapping[str, Value], tuple[str, ...]]:
    """Return the parameter map, the choices that its shapes decide, and what to say of it."""
    if not code.is_module:
        return {}, {}, ()
    found = find_table(code.build, code.component, adapter)
    lines = ("parameters:", *(f"  {line}" for line in found.lines)) if found.table else ()
    return found.table, found.choices, (*lines, *found.remarks)


def _measured(backend: Adapted) -> Mapping[str, Value]:
    """Return the options that the numbers show, for code that declares nothing."""
    found = identify(backend)
    return {
        name: one.measured
        for name, one in found.items()
        if one.measured is not None and not _exact_enough(name, one.measured)
    }


def _exact_enough(name: str, value: Value) -> bool:
    """Say whether a finite fill leaves no weight at any score that is judged: one is exact, then.

    Scores go up to a million where exact masks are declared, and as far as the fill where it is.
    """
    return name == "mask_fill" and isinstance(value, float) and value <= -1e8


def _all_used(code: Code, reading: Reading) -> None:
    """Refuse what is settled for an argument that is not there."""
    own = set(code.signature.parameters)
    if code.construction is not None:
        own |= code.construction.arguments
    for name in [*reading.given, *reading.arguments.values()]:
        if name not in own:
            raise Unclear(
                f"{code.name} has no argument {name!r}; it has {', '.join(sorted(own)) or 'none'}."
            )
