"""The head of a decoder-only model: whether it is the embedding, by the numbers and by words."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from torch import nn

from attentest.targets.adapt.reading import Contrary, Reading
from attentest_spec.choices import Value

_TIED = re.compile(
    r"\b(tied|tying|ties?)\b.*\b(head|embeddings?|weights?|matrix|matrices|softmax|output|lm_head)\b"
    r"|\b(head|embeddings?|weights?|matrix|matrices|softmax|output|lm_head)\b.*\b(tied|tying)\b",
    re.IGNORECASE,
)
"""A sentence that says that the head is the embedding."""

_OPEN = re.compile(
    r"\b(not|never|no|without|instead|if|unless|whether|when|where|may|can|could|optional\w*"
    r"|optionally|todo|un-?tied|either|or)\b|n't\b",
    re.IGNORECASE,
)
"""Words with which a sentence leaves it open, or denies it."""

_SHARED = re.compile(r"\b(?:tie[sd]?|tying|shar(?:e[sd]?|ing))\b", re.IGNORECASE)
"""Words of a comment that says that two weights are one."""

_FLAG = re.compile(r"(?:^|_)(?:tie|tied|tying)(?:_|$)")


def demand_tying(
    name: str, thing: Callable[..., Any], model: nn.Module, tying: Value, reading: Reading
) -> None:
    """Raise a question on a head that is tied, or is not, against what words and settings say.

    `model` is an object that `thing`, called `name`, makes, and `tying` what its numbers show.
    """
    if "tying" in reading.choices or reading.anyway:
        return
    is_tied = tying != "none"
    for source, said in _stated(thing, model):
        if said == is_tied:
            return
        own = "is the matrix of its embedding" if is_tied else "is a matrix of its own"
        meant = "is the matrix of its embedding" if said else "is a matrix of its own"
        raise Contrary(
            f"By {source} the head of {name} {meant}, and it {own}. Say which one is meant: "
            f"--choice tying=all-three or --choice tying=none."
        )


def _stated(thing: Callable[..., Any], model: nn.Module) -> Iterator[tuple[str, bool]]:
    """Yield what says whether the head is tied, and what it says, the surest first."""
    for own, value in _settings(model):
        yield f"its setting {own}={value}", value
    for code, comment in _comments(model):
        yield f"the comment on {code!r} ({comment!r})", True
    for words in (type(model).__doc__, inspect.getdoc(thing), _of_module(model)):
        for sentence in re.split(r"[.;,:]\s|\n\s*\n", words or ""):
            if _TIED.search(sentence) and not _OPEN.search(sentence):
                yield f"its documentation ({' '.join(sentence.split()).rstrip('.')!r})", True


_ASSIGNED = re.compile(r"\s*self\.([\w.]+\.weight)(?:\.data)?\s*=")
"""An assignment of a weight, or of its numbers alone."""


def _comments(model: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield the statements that assign a weight of the head or the embedding as a shared one.

    With each comes its comment, on its first line or its last one, or in the lines above it. One
    under a condition may not be run.
    """
    rows = {tuple(one.weight.shape) for one in model.modules() if isinstance(one, nn.Embedding)}
    own = dict(model.named_parameters(remove_duplicate=False))
    try:
        lines = textwrap.dedent(inspect.getsource(type(model).__init__)).splitlines()
        body = ast.parse("\n".join(lines)).body[0]
    except (OSError, TypeError, SyntaxError):
        return
    for one in getattr(body, "body", ()):
        code, _, comment = lines[one.lineno - 1].partition("#")
        made = _ASSIGNED.match(code)
        if not made or made[1] not in own or tuple(own[made[1]].shape) not in rows:
            continue
        above = takewhile(
            lambda row: row.startswith("#"), map(str.strip, lines[one.lineno - 2 :: -1])
        )
        behind = lines[(one.end_lineno or one.lineno) - 1].partition("#")[2]
        said = (comment or behind).strip() or " ".join(row.lstrip("# ") for row in [*above][::-1])
        if _SHARED.search(said) and not _OPEN.search(said):
            yield code.strip(), textwrap.shorten(said, 160, placeholder=" ..")


def _of_module(model: nn.Module) -> str:
    """Return the documentation of the file that `model` is defined in."""
    return getattr(inspect.getmodule(type(model)), "__doc__", None) or ""


def _settings(model: nn.Module) -> Iterator[tuple[str, bool]]:
    """Yield the settings about ties that `model` holds, by itself or in an object or a mapping."""
    for own, value in vars(model).items():
        held = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        inner = {} if own.startswith("_") else dict(held)
        for path, one in ((own, value), *((str(name), one) for name, one in inner.items())):
            if isinstance(one, bool) and _FLAG.search(path):
                yield path, one
