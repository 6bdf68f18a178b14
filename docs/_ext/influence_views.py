"""Views of influence: which position of the output depends on which position of the input."""

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
        look=lambda ask: influence(lambda values: call(ask, values), inputs),
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
    "Self-attention of four tokens under a causal mask.",
)
HEADS_PADDED = _reach(
    "multi_head_attention",
    lambda ask, x: ask(x, x, x, LAST_IS_PAD),
    X,
    "input",
    "Self-attention of four positions. The last one is padding: only its own output may depend on "
    "it.",
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
    "Three queries and five keys.",
)
FEED_REACH = _reach("feed_forward", lambda ask, x: ask(x), X, "input", "A sequence of four tokens.")
ENCODER_FREE = _reach(
    "encoder", lambda ask, x: ask(x), X, "input", "The encoder on four tokens, without a mask."
)
ENCODER_PADDED = _reach(
    "encoder_layer",
    lambda ask, x: ask(x, LAST_IS_PAD),
    X,
    "input",
    "One layer on four positions. The last one is padding: only its own output may depend on it.",
)
ENCODER_NEIGHBOURS = _reach(
    "encoder",
    lambda ask, x: ask(x),
    TWO,
    "input",
    "A batch of two sequences of three tokens: 1 to 3 are the first one, 4 to 6 the second one.",
)
DECODER_TARGET = _reach(
    "decoder_layer",
    lambda ask, x: ask(x, MEMORY, None, causal(4)),
    X,
    "target",
    "One layer of the decoder on four target positions.",
)
DECODER_MEMORY = _reach(
    "decoder_layer",
    lambda ask, memory: ask(X, memory, LAST_IS_PAD, causal(4)),
    MEMORY,
    "memory",
    "One layer of the decoder with a memory of four rows, the last one padding.",
)
MODEL_TARGET = replace(
    _reach(
        "model",
        lambda ask, target: ask(WORDS, target),
        WORDS[:, ::-1].copy(),
        "target",
        "The logits of the whole model when one token of the target is changed.",
    ),
    choices=LOGITS,
)
