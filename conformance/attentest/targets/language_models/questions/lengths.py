"""Words on decoder-only models that take texts of one length alone."""

from collections.abc import Iterator

_REFUSALS = ("AssertionError", "ValueError", "NotImplementedError")
_ONE_TOKEN = (
    "{} takes one token at a time, and refuses a whole text ({}), with which a decoder-only model "
    "is judged: judge its parts one by one, or a class of your own that takes all tokens."
)
_ONE_LENGTH = (
    "{} gives logits for a text of one token, and raises for every longer one ({}), with which a "
    "decoder-only model is judged: mend the line that raises, or judge its parts one by one."
)
_WHOLE_LENGTH = (
    "{} gives logits for a text of its greatest length, and raises for shorter ones ({}), with "
    "which a decoder-only model is judged: cut its masks and tables to the length of the text, as "
    "mask[:T, :T], or judge its parts one by one."
)


def lengths_tried(failure: str, greatest: int) -> Iterator[tuple[int, str]]:
    """Yield the lengths of other texts to try, with words on models that take those alone.

    `failure` is that of a text which is neither one token nor of the `greatest` length.
    """
    yield 1, _ONE_TOKEN if failure.startswith(_REFUSALS) else _ONE_LENGTH
    yield greatest, _WHOLE_LENGTH
