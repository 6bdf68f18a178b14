"""The generator, from the decoder's state to the next token (section 3.4)."""

from typing import Annotated

import numpy as np

from attentest_spec.attention import softmax
from attentest_spec.choices import Choices
from attentest_spec.linear import linear
from attentest_spec.setting import Floats, Setting, reported


@reported
def generator(given: Setting, x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows V"]:
    """Map x to the vocabulary, and normalise under the choice `output`.

    x (.., D) gives (.., V). Choices: `logit_scale`, `generator_bias`, `logit_cap`, `output`.
    Source: section 3.4.
    """
    scaled = x / np.sqrt(x.shape[-1]) if given.choices.logit_scale == "inverse-sqrt-d" else x
    return normalised(given.choices.output, capped(given.choices, linear(given, "", scaled)))


def capped(choices: Choices, logits: Annotated[Floats, "*rows V"]) -> Annotated[Floats, "*rows V"]:
    """Return c tanh(logits / c) for the declared cap c, the logits (.., V) where there is none."""
    if choices.logit_cap == "none":
        return logits
    cap = float(choices.logit_cap)
    bounded: Floats = cap * np.tanh(logits / cap)
    return bounded


def normalised(output: str, logits: Annotated[Floats, "*rows V"]) -> Annotated[Floats, "*rows V"]:
    """Return the logits under `output` (an option of the choice), over the last axis.

    Logits (.., V) give (.., V).
    """
    if output == "logits":
        return logits
    return softmax(logits) if output == "probabilities" else log_softmax(logits)


def log_softmax(logits: Annotated[Floats, "*rows V"]) -> Annotated[Floats, "*rows V"]:
    """Return log(softmax(x)) over the last axis, without a logarithm of what rounded to zero.

    Logits (.., V) give (.., V).
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result
