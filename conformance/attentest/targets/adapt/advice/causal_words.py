"""Documentation that calls code causal, where its numbers show that it is not."""

import inspect
import re
import sys
from types import ModuleType

from torch import nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import SEQUENCES
from attentest.targets.adapt.reading import Reading, Uncovered

_CAUSAL = re.compile(
    r"\b(?:causal(?:ly)?|autoregressive)\b[\w\s,-]{0,40}?"
    r"\b(?:(?:self-?)?attention|block|layer|decoder|transformer|stack|mha|msa)\b"
    r"|\bmasked\s(?:multi-?head(?:ed)?\s)?(?:self-?)?(?:attention|mha|msa)\b"
    r"|\bGPT\b[\w-]*\s(?:\w+\s)?(?:block|layer|decoder|(?:self-?)?attention)\b",
    re.IGNORECASE,
)
_HIDES = re.compile(
    r"\b(?:hides|masks|cannot see|never sees|does not see|may not (?:see|attend to))\b"
    r"[\w\s]{0,20}\b(?:later|future|subsequent)\b",
    re.IGNORECASE,
)
"""Words which say that code is causal."""
_OTHERWISE = re.compile(
    r"\b(?:if|when|whether|where|optional(?:ly)?|either|can|could|may|supports?|not|no|non|none|"
    r"without|un|nor|instead|unlike|contrary|caller|pass|passed|given|expects?|mask|masks)\b|n't\b",
    re.IGNORECASE,
)
"""Words in a sentence which leave open whether the code does it, or deny it."""


def demand_documented(code: Code, adapter: Adapter, reading: Reading) -> None:
    """Raise Uncovered for code without a mask that its documentation calls causal, and is not.

    Where a switch or a mask decides, the documentation may be about that.
    """
    if adapter.causal or adapter.component not in ("attention", *SEQUENCES):
        return
    if "attention_causality" in reading.choices or reading.anyway or _decides(code, adapter):
        return
    if words := causal_words(_documentation(code)):
        raise Uncovered(
            f'The documentation of {code.name} says "{words}", and its output at a position '
            f"changes with later positions. --choice attention_causality=built-in (in Python: "
            f"choices={{'attention_causality': 'built-in'}}) judges it as causal, and --choice "
            f"attention_causality=by-mask as it is."
        )


def causal_words(documentation: str) -> str:
    """Return the words that call code causal without a condition, "" for none."""
    for sentence in re.split(r"[.;:!?]\s|\n\s*\n", documentation):
        hides = _HIDES.search(sentence)
        found = hides or _CAUSAL.search(sentence)
        rest = sentence.replace(hides[0], "") if hides else sentence
        if found and not _OTHERWISE.search(rest):
            return " ".join(found[0].split())
    return ""


def _documentation(code: Code) -> str:
    """Return the documentation of code, with that of its file where this is about it alone."""
    own = inspect.getdoc(code.thing) or ""
    home = sys.modules.get(getattr(code.thing, "__module__", ""))
    if home is None or _classes(home) != [code.thing]:
        return own
    return f"{own}\n\n{inspect.getdoc(home) or ''}"


def _classes(home: ModuleType) -> list[type]:
    """Return the classes of modules that a file defines."""
    made = [one for one in vars(home).values() if isinstance(one, type)]
    return [one for one in made if issubclass(one, nn.Module) and one.__module__ == home.__name__]


def _decides(code: Code, adapter: Adapter) -> bool:
    """Say whether an argument of a call, or of the constructor, is about what is hidden."""
    asked = [*adapter.signature.parameters, *_constructor(code)]
    return any(re.search(r"mask|causal|order|bidirectional|is_decoder", one) for one in asked)


def _constructor(code: Code) -> list[str]:
    try:
        return list(inspect.signature(code.thing).parameters)
    except (TypeError, ValueError):
        return []
