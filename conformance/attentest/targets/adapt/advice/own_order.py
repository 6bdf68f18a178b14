"""Code that hides later positions by itself, and what its mask does then."""

import ast
import re

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import words_of
from attentest.targets.adapt.objects.settings import code_tree
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading, Uncovered
from attentest.targets.adapt.unspecified.polarity import is_without_effect

UNMASKED = (
    "assumed that it hides later positions on purpose, as its name says: it is judged as causal, "
    "without {}"
)
_ORDERED = re.compile(r"causal|decoder|gpt|lm$|lm_?head|autoregressive", re.IGNORECASE)


_DENIED = ("non", "not", "no", "un", "without")
"""Words before one for order which deny it: `NonCausalSelfAttention`."""


def causal_by_name(name: str) -> bool | None:
    """Say whether a name calls code causal: False where it denies it, None where it says neither.

    That is no matter of the letters alone: "NonCausal" and "noncausal" have those of the word.
    """
    words = words_of(name)
    for before, word in zip(["", *words], words, strict=False):
        if "causal" in word:
            return not (before in _DENIED or word.startswith(("noncausal", "acausal")))
    return None


def orders_by_itself(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> bool:
    """Say whether code without a mask hides later positions by itself: its name decides first.

    Raises Uncovered for code whose name denies it and whose numbers show it.
    """
    decoders = dict.fromkeys(("decoder_layer", "decoder"), "target_mask")
    hides = {**dict.fromkeys(probing.SEQUENCES, "mask"), **decoders}
    if hides.get(adapter.component) in (None, *adapter.arguments.roles):
        return False
    if named := causal_by_name(code.name):
        return True
    found = probing.is_causal(probe, adapter)
    said = "attention_causality" in reading.choices or reading.anyway
    if found and named is False and not said:
        raise Uncovered(
            f"The name of {code.name} says that it is not causal, and no later position changes "
            f"its output. --choice attention_causality=built-in (in Python: choices="
            f"{{'attention_causality': 'built-in'}}) judges it as causal, and --choice "
            f"attention_causality=by-mask as its name says."
        )
    return found and named is not False


_SWITCHED = (
    "assumed that {} is read only where {} says so, on purpose: it is judged as causal, without it"
)


def mask_beside_order(code: Code, probe: Probe, adapter: Adapter) -> tuple[str, str] | None:
    """Return the mask argument of causal code that it is judged without, and what is assumed.

    It is that of layers in a class that is causal by its name, and shows it, or one that causal
    code reads only behind a switch that is off.
    """
    own = adapter.arguments.roles.get("mask", "")
    if not own:
        return None
    named = causal_by_name(code.name) is not False and _ORDERED.search(code.name)
    if code.inner is not None and named:
        return (own, UNMASKED.format(own)) if hides_later(probe, adapter) else None
    called = code_tree(getattr(code.thing, "forward", code.thing))
    switch = switch_of(called, own) if code.inner is None else ""
    if switch and own not in adapter.needs_mask and is_without_effect(probe, adapter, "mask"):
        causal = adapter.causal or probing.is_causal(probe, adapter, joined=True)
        return (own, _SWITCHED.format(own, switch)) if causal else None
    return None


def switch_of(tree: ast.AST, own: str) -> str:
    """Return the attribute that all code of a `tree` which reads the argument `own` is behind.

    It is one that has to be on for that: the other branch of a kernel that is on is no choice.
    """
    reads = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == own]
    switches = [
        (switch, {id(part) for each in _if_on(one) for part in ast.walk(each)})
        for one in ast.walk(tree)
        if isinstance(one, ast.If)
        for switch in re.findall(r"\bself\.\w+", ast.unparse(one.test))[:1]
    ]
    behind = [next((name for name, held in switches if id(one) in held), "") for one in reads]
    return behind[0] if behind and all(behind) else ""


def _if_on(one: ast.If) -> list[ast.stmt]:
    """Return the statements that run where what is tested is on."""
    is_denied = isinstance(one.test, ast.UnaryOp) and isinstance(one.test.op, ast.Not)
    return one.orelse if is_denied else one.body


def hides_later(probe: Probe, adapter: Adapter) -> str:
    """Recognise attention that hides later positions although its mask is left out."""
    judged = ("attention", "decoder_layer", *probing.SEQUENCES)
    if adapter.causal or adapter.component not in judged:
        return ""
    if not probing.is_causal(probe, adapter, joined=True):
        return ""
    mask = adapter.arguments.roles.get("mask", "")
    advice = f"; --give {mask}=None judges it without its mask" if mask else ""
    if adapter.component == "decoder_layer":
        advice = ", and takes a mask besides: its parts can be judged one by one"
    return f"it hides later positions by itself{advice}"


def mask_as_a_flag(probe: Probe, adapter: Adapter) -> str:
    """Return the mask argument that makes code causal by being there, "" where there is none."""
    own = adapter.arguments.roles.get("mask", "")
    if not own or adapter.causal or adapter.component not in ("attention", *probing.SEQUENCES):
        return ""
    masked = probing.is_causal(probe, adapter, joined=True, masked=True)
    return own if masked and not probing.is_causal(probe, adapter, joined=True) else ""


def mask_for_order(probe: Probe, adapter: Adapter) -> str:
    """Return the mask argument that takes the place of built-in causality, "" for none."""
    own = adapter.arguments.roles.get("mask", "")
    if not own or adapter.component not in ("attention", *probing.SEQUENCES):
        return ""
    alone = probing.is_causal(probe, adapter, joined=True)
    return own if alone and probing.sees_all(probe, adapter) else ""
