"""The list of what is assumed of code that is no backend, as it is shown on the first screen."""

import re
from collections.abc import Sequence

from attentest.results.run import Description

_MEASURED = re.compile(
    r"assumed (\w+)=(\S+), as measured: if you meant (\S+) \(the paper's\), this is a mistake, and "
    r"--strict reports it"
)
_TOGETHER = (
    "assumed, as measured, and a mistake if you meant the paper's (in brackets), which --strict "
    "reports: "
)

_LEFT_OUT = "not compared: "
_DOUBTFUL = (
    _LEFT_OUT,
    "not the mean cross entropy of its logits",
    "are made anew in each call",
    "makes of its ids is inverted",
    "they do not follow on those in the cache",
    "which nothing says: with it",
    "takes ids (L, B), the sequence first",
    "assumed that no bias in ",
    "assumed as nothing says it",
    "judged without that mask",
    "is held and not called",
    "held and not used",
    "no norm follows the last layer",
    "which changes with padding",
    "makes of the output of its layers",
    "it computes ",
    "=doubled-exponent",
    "embeddings and positions of ",
    "hides no padding",
    "its default, hides later positions only where",
    "gets a mask of later tokens",
    "assumed the choices of ",
    "as measured, though ",
    "norm_variance=unbiased",
    "nothing is added to its scores",
    "before its layers get it",
    "assumed that the pad id of ",
    "is a mask of padding: ",
    "embedding_scale=none",
)
"""Words of the assumptions that are listed first, the likeliest mistakes before the others."""


def assumptions(descriptions: Sequence[Description], names: Sequence[str]) -> list[str]:
    """Return what is assumed, the likeliest mistakes first, and measured choices in one sentence.

    Of several pieces of code, `names` are said with what is assumed of each.
    """
    about = _by_sentence(descriptions, names)
    choices = [one for one in about if _MEASURED.fullmatch(one)]
    merged = choices if len(choices) > 1 else []
    rest = [_with_names(one, own) for one, own in about.items() if one not in merged]
    together = (
        [_of_choices({one: about[one] for one in sorted(merged, key=_rank)})] if merged else []
    )
    return sorted([*together, *rest], key=_rank)


def left_out(description: Description) -> str:
    """Return which part of code that is judged was not compared with the reference, "" for none."""
    own = [one.partition(" (")[0] for one in description.assumed if one.startswith(_LEFT_OUT)]
    return " and ".join([*own[:1], *(one.removeprefix(_LEFT_OUT) for one in own[1:])])


def is_of_several(assumption: str) -> bool:
    """Say whether an assumption holds several measured choices."""
    return assumption.startswith(_TOGETHER)


def _rank(assumption: str) -> int:
    """Return the place of an assumption in the list: what is often a mistake comes first."""
    found = (number for number, words in enumerate(_DOUBTFUL) if words in assumption)
    return next(found, len(_DOUBTFUL) + (" is judged as " in assumption))


def _by_sentence(descriptions: Sequence[Description], names: Sequence[str]) -> dict[str, list[str]]:
    """Return each assumption once, with the names of those that it is about."""
    about: dict[str, list[str]] = {}
    for number, one in enumerate(descriptions):
        for sentence in one.assumed if one.inferred else ():
            about.setdefault(sentence, []).extend(names[number : number + 1])
    return about


def _with_names(sentence: str, own: Sequence[str]) -> str:
    is_named = not own or sentence.startswith(own[0])
    return sentence if is_named else f"{', '.join(own)}: {sentence}"


def _of_choices(about: dict[str, list[str]]) -> str:
    """Return measured choices in one sentence; of an option that not all code has, where it is."""
    found = [(*_parts(one), own) for one, own in about.items()]
    choices = [choice for choice, *_ in found]
    said = []
    for choice, option, paper, own in found:
        where = f" in {', '.join(own)}" if own and choices.count(choice) > 1 else ""
        said.append(f"{choice}={option}{where} ({paper})")
    return f"{_TOGETHER}{', '.join(said)}"


def _parts(sentence: str) -> tuple[str, str, str]:
    """Return the choice, its measured option, and that of the paper."""
    found = _MEASURED.fullmatch(sentence)
    assert found is not None
    choice, option, paper = found.groups()
    return choice, option, paper


EMBEDS = "it embeds its tokens itself"
"""The sentence about an encoder that embeds its tokens."""
