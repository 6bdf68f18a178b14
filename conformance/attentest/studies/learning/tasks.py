"""The tasks that models are trained on, by their names."""

from collections.abc import Callable, Mapping

from attentest.studies.learning import languages, sequences
from attentest.studies.learning.task import ZERO, Task


def _both(vocabulary: Callable[[int], int]) -> Callable[[int], tuple[int, int]]:
    """Return the vocabularies of a task whose source and target have the same tokens."""
    return lambda length: (vocabulary(length),) * 2


_LIST = (
    Task(
        name="copy",
        meaning="say the source again",
        vocabularies=_both(lambda length: 11),
        draw=sequences.draw_words,
        write=sequences.write_copies,
        width=sequences.same_width,
        length=10,
        steps=500,
    ),
    Task(
        name="reversal",
        meaning="say the source backwards, its first token still in front",
        vocabularies=_both(lambda length: 11),
        draw=sequences.draw_words,
        write=sequences.write_reversals,
        width=sequences.same_width,
        length=10,
        steps=500,
    ),
    Task(
        name="addition",
        meaning="say the digits of the sum of two numbers",
        vocabularies=_both(lambda length: ZERO + 10),
        draw=sequences.draw_summands,
        write=sequences.write_sums,
        width=sequences.sum_width,
        length=2,
        steps=2000,
        ends=True,
    ),
    Task(
        name="modular-addition",
        meaning="say the sum of two numbers modulo a third one",
        vocabularies=_both(lambda length: ZERO + length),
        draw=sequences.draw_pairs,
        write=sequences.write_remainders,
        width=lambda length: (3, 2),
        length=23,
        steps=3000,
        usual={"rate": 0.002, "weight_decay": 1.0, "d_ff": 128, "every": 100},
        held_out=3,
        every=sequences.every_pair,
    ),
    Task(
        name="agreement",
        meaning="say whether the words of a sentence agree, with an encoder alone",
        vocabularies=languages.answers,
        draw=languages.draw_agreements,
        write=languages.write_agreements,
        width=languages.agreement_width,
        length=1,
        steps=1500,
        usual={"rate": 0.002, "batch": 64, "validation": 500},
        component="encoder",
    ),
    Task(
        name="translation",
        meaning="translate a sentence from one invented language into another",
        vocabularies=languages.vocabulary,
        draw=languages.draw_clauses,
        write=languages.write_translations,
        width=languages.translation_width,
        length=1,
        steps=400,
        usual={"batch": 64},
        ends=True,
        text=languages.text,
    ),
)

TASKS: Mapping[str, Task] = {task.name: task for task in _LIST}
"""The tasks by their names."""
