"""Views of influence: which position of the input moves which position of the output."""

from collections.abc import Callable
from dataclasses import replace

from kinds import INFLUENCE
from views import LAST_IS_PAD, LOGITS, WORDS, Ask, View, X, causal, influence, numbers

from attentest_spec.setting import Array


def _reach(
    component: str, call: Callable[[Ask, Array], Array], inputs: Array, columns: str, about: str
) -> View:
    return View(
        component=component,
        look=lambda ask: influence(lambda changed: call(ask, changed), inputs),
        kind=INFLUENCE,
        rows="output",
        columns=columns,
        about=about,
    )


OTHER, MEMORY = numbers(1, 4, 6, seed=1), numbers(1, 4, 6, seed=2)
SHORT, LONG, TWO = numbers(1, 3, 6), numbers(1, 5, 6, seed=1), numbers(2, 3, 6)

HEADS_CAUSAL = _reach(
    "multi_head_attention",
    lambda ask, x: ask(x, x, x, causal(4)),
    X,
    "input",
    "Self-attention of four words under a causal mask.",
)
HEADS_PADDED = _reach(
    "multi_head_attention",
    lambda ask, x: ask(x, x, x, LAST_IS_PAD),
    X,
    "input",
    "Self-attention of four positions, the last of them a pad: besides its own output it may "
    "move nothing.",
)
HEADS_VALUE = _reach(
    "multi_head_attention",
    lambda ask, value: ask(X, OTHER, value),
    MEMORY,
    "value",
    "Queries, keys and values are three different arrays; the values are changed.",
)
HEADS_CROSS = _reach(
    "multi_head_attention",
    lambda ask, memory: ask(SHORT, memory, memory),
    LONG,
    "key and value",
    "Three queries read five keys.",
)
FEED_REACH = _reach("feed_forward", lambda ask, x: ask(x), X, "input", "A sentence of four words.")
ENCODER_FREE = _reach(
    "encoder", lambda ask, x: ask(x), X, "input", "The encoder over four words, without a mask."
)
ENCODER_PADDED = _reach(
    "encoder_layer",
    lambda ask, x: ask(x, LAST_IS_PAD),
    X,
    "input",
    "One layer over four positions, the last of them a pad: besides its own output it may move "
    "nothing.",
)
ENCODER_NEIGHBOURS = _reach(
    "encoder",
    lambda ask, x: ask(x),
    TWO,
    "input",
    "A batch of two sentences of three words: 1 to 3 are the first, 4 to 6 the second.",
)
DECODER_TARGET = _reach(
    "decoder_layer",
    lambda ask, x: ask(x, MEMORY, None, causal(4)),
    X,
    "target",
    "One layer of the decoder over four steps of the target.",
)
DECODER_MEMORY = _reach(
    "decoder_layer",
    lambda ask, memory: ask(X, memory, LAST_IS_PAD, causal(4)),
    MEMORY,
    "memory",
    "One layer of the decoder reads a memory of four rows, the last of them a pad.",
)
MODEL_TARGET = replace(
    _reach(
        "model",
        lambda ask, target: ask(WORDS, target),
        WORDS[:, ::-1].copy(),
        "target",
        "The whole model; one word of the target is changed, and its logits are looked at.",
    ),
    choices=LOGITS,
)
