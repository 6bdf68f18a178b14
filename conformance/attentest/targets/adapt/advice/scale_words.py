"""Documentation of the scale of embeddings or scores, where the numbers show another one."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attentest.targets.adapt.reading import Contrary, Reading
from attentest.targets.adapt.unspecified.scores import ATTENDING
from attentest_spec import PAPER
from attentest_spec.choices import Value

_ROOT = r"(?:sqrt|√|(?:square\s)?root\sof)[\s({\\]*(?:the\s)?"
_WIDTH = (
    r"(?:d_?model|dim|d|hidden_(?:size|dim)|n_embd|emb(?:ed(?:ding)?)?_(?:dim|size)|width"
    r"|(?:(?:model|embedding|hidden)\s)?(?:width|dimension|size)s?)\b(?!\s*[/*_])\)?"
)
_BY = (
    r"(?:scaled|multiplied|times|scales|multiplies|\*)\s*(?:\w+\s){0,2}?(?:by\s|with\s)?(?:the\s)?"
)

_EMBEDDED = re.compile(
    rf"(?<!position )(?<!positional )\bembed(?:ding)?s?\b.*{_BY}{_ROOT}{_WIDTH}", re.IGNORECASE
)
"""Words which say that embeddings are multiplied by the root of the width."""

_PLAIN = re.compile(
    r"\bembeddings?\s(?:are|is)\s(?:not|never)\s(?:scaled|multiplied)\b"
    r"|\bunscaled\s(?:\w+\s)?embeddings?\b",
    re.IGNORECASE,
)
"""Words which say that embeddings are used as they are."""

_SCORES = re.compile(
    rf"\b(?:scores?|products?|attention)\b.*(?:scaled|divided|/)\s*(?:by\s)?(?:1\s*/\s*)?{_ROOT}"
    r"(?:d_?model\b|model\s(?:width|dimension|size)\b)(?!\s*[/*_])\)?",
    re.IGNORECASE,
)
"""Words which say that scores are divided by the root of the width of the model."""

_UNSCALED = re.compile(
    r"\bscores?\s(?:are|is)\s(?:not|never)\s(?:scaled|divided)\b|\bunscaled\s(?:\w+\s)?scores?\b",
    re.IGNORECASE,
)
"""Words which say that scores are the plain products."""

_OPEN = re.compile(
    r"\b(?:not|never|no|without|instead|if|unless|whether|when|may|can|could|should|optional\w*"
    r"|todo|either|or|only|original\w*|unlike|contrary|differ\w*|defaults?|initiali\w*|init|std"
    r"|variance|deviation|images?|outputs?|logits?|head|loss|gradients?|previously"
    r"|removed|dropped|deprecated)\b|n't\b|^\W*(?:the\s)?paper\b",
    re.IGNORECASE,
)
"""Words with which a sentence leaves it open, denies it, or is about something else."""


def demand_documented_scales(
    name: str,
    component: str,
    thing: Callable[..., Any],
    choices: Mapping[str, Value],
    reading: Reading,
) -> None:
    """Raise Contrary where the documentation of `thing`, called `name`, says another scale.

    `choices` are those that its numbers show; where they have none, it is the paper's.
    """
    sentences = list(_sentences(thing))
    if component in _WHOLE or component == "embedding":
        scaled = choices.get("embedding_scale", PAPER["embedding_scale"]) == "sqrt-d"
        said = _said(sentences, *((_PLAIN, _EMBEDDED) if scaled else (_EMBEDDED, _PLAIN)))
        if said and "embedding_scale" not in reading.choices:
            plain, root = "the rows of their table", "those of their table times the root of width"
            raise Contrary(
                f'The documentation of {name} says "{said}", and by its numbers the embeddings are '
                f"{root if scaled else plain}. Say which one is meant: --choice "
                f"embedding_scale=sqrt-d or --choice embedding_scale=none."
            )
    usual = PAPER["score_scale"]
    if component not in (*_WHOLE, *ATTENDING) or choices.get("score_scale", usual) != usual:
        return
    said = _said(sentences, _SCORES, _UNSCALED) or _said(sentences, _UNSCALED, _SCORES)
    if said and "score_scale" not in reading.choices:
        raise Contrary(
            f'The documentation of {name} says "{said}", and by its numbers the scores are divided '
            f"by the root of the width of a head. Where the numbers are meant, --choice "
            f"score_scale=inverse-sqrt-e judges them; otherwise this is a mistake."
        )


_WHOLE = ("model", "language_model")


def _said(sentences: list[str], stated: re.Pattern[str], contrary: re.Pattern[str]) -> str:
    """Return the words that state it, "" for none and where a sentence says the contrary."""
    if any(contrary.search(one) for one in sentences):
        return ""
    for one in sentences:
        found = stated.search(one)
        if found and not _OPEN.search(one.replace(found[0], "") if stated in _DENIALS else one):
            return found[0]
    return ""


_DENIALS = (_PLAIN, _UNSCALED)


def _sentences(thing: Callable[..., Any]) -> Iterator[str]:
    """Yield the sentences of the documentation of `thing`, of its call and of its file."""
    home = sys.modules.get(getattr(thing, "__module__", ""))
    for one in filter(None, (thing, getattr(thing, "forward", None), home)):
        for sentence in re.split(r"[.;:!?]\s|\n\s*\n|\n\s*[-*]\s", inspect.getdoc(one) or ""):
            yield " ".join(re.sub(r"[`$]", "", sentence).split()).rstrip(".")
