"""Greedy decoding of held-out questions by a trained model, and how much of it is right."""

from dataclasses import dataclass

import numpy as np

from attentest.harness.errors import BackendError
from attentest.studies.learning.learner import Trainable
from attentest.studies.learning.parts import Parts
from attentest.studies.learning.regime import OWN, Regime
from attentest_spec import Choices, Setting, UnknownName, Unsupported
from attentest_spec.decoding import continue_greedily
from attentest_spec.setting import Array


@dataclass(frozen=True)
class Decoder:
    """Greedy decoding by the spec, or by the method `greedy` of a model where it is `own`."""

    part: Trainable
    given: Setting
    own: bool = False

    @classmethod
    def of(cls, part: Trainable, parts: Parts, regime: Regime, choices: Choices) -> "Decoder":
        """Return the decoder that a regime asks for; `parts` are given the reason."""
        if regime.parts != OWN or regime.component != "model":
            return cls(part, parts.given)
        reason = _unfit(part, regime, choices)
        parts.origin["greedy_decoding"] = f"the spec's, {reason}" if reason else "its own"
        return cls(part, parts.given, own=not reason)

    def written(self, source: Array, begin: Array, length: int) -> Array:
        """Return `begin` (B, 1) continued to (B, `length`) for the sources (B, S)."""
        if self.own:
            return self._by_its_own(source, begin, length)
        memory = self._memory(source)

        def following(tokens: Array) -> Array:
            if memory is None:
                output = self.part(source, tokens)
            else:
                output = self.part(tokens, memory, source, method="decode")
            last: Array = output[:, -1]
            return last

        return continue_greedily(self.given, following, begin, length)

    def _by_its_own(self, source: Array, begin: Array, length: int) -> Array:
        sizes = self.given.sizes
        written: Array = self.part(source, begin, length, sizes.end, method="greedy")
        missing = max(0, length - written.shape[1])  # where all sequences ended before
        padded = np.pad(written, ((0, 0), (0, missing)), constant_values=sizes.target_pad)
        return padded[:, :length]

    def _memory(self, source: Array) -> Array | None:
        """Return the encoded source; None for a model that has to be called as a whole."""
        try:
            memory: Array = self.part(source, method="encode")
        except (Unsupported, UnknownName):
            return None
        return memory


def _unfit(part: Trainable, regime: Regime, choices: Choices) -> str:
    """Return why a model is not decoded by its own method, "" where it is."""
    task = regime.of_task
    if choices.decoding_stop == "end-token" and not task.ends:
        return "for its own stops at a token that is a word here"
    source, target = task.batch([0], 1, regime.length)
    try:
        part(source, target[:, :1], 2, regime.sizes.end, method="greedy")
    except (Unsupported, UnknownName):
        return "for its model has no method greedy"
    except Exception as failure:  # code of its author
        raise BackendError("decoding with model", failure) from failure
    return ""


def accuracies(written: Array, target: Array, pad: int) -> tuple[float, float]:
    """Return the shares of right tokens and of right sequences (B, T), without the padding."""
    kept = target != pad
    right = (written == target) | ~kept
    return float(right[kept].mean()), float(right.all(axis=1).mean())
