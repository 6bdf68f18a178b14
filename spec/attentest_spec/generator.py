"""The generator: from the decoder's state to the next token, from section 3.4."""

import numpy as np

from attentest_spec.attention import softmax
from attentest_spec.linear import linear
from attentest_spec.setting import Floats, Setting, reported


@reported
def generator(given: Setting, x: Floats) -> Floats:
    """Map x to the vocabulary, and normalise as the choice `output` says.

    x (B, T, D) gives (B, T, V). Choices: `logit_scale`, `generator_bias`, `output`. Source:
    section 3.4.
    """
    scaled = x / np.sqrt(x.shape[-1]) if given.choices.logit_scale == "inverse-sqrt-d" else x
    return normalised(given.choices.output, linear(given, "", scaled))


def normalised(output: str, logits: Floats) -> Floats:
    """Return logits (.., V) as `output` (an option of the choice) says, over the last axis."""
    if output == "logits":
        return logits
    return softmax(logits) if output == "probabilities" else log_softmax(logits)


def log_softmax(logits: Floats) -> Floats:
    """Return log(softmax(x)) over the last axis, without a logarithm of what rounded to zero."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result
