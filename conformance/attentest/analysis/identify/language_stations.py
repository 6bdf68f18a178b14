"""Parameters and inputs that isolate one kind of choice of a decoder-only model."""

from dataclasses import dataclass

import numpy as np

from attentest.analysis.identify.parts import SCALES, linear_feed_forward, stilled
from attentest.analysis.identify.station import Station, parameters_of, retied
from attentest.harness.subject import Probe
from attentest_spec import Choices, Limits, Setting, Sizes
from attentest_spec.parameters import learned_positions
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Array, Floats

HEADS, HEAD = 3, 16
"""Heads, of which no power of two is the number, and the width of each: eight pairs of columns."""

LONG = 90
"""A length beyond the trained one of 64, from which on a dynamic scaling begins."""

PLACES = ((0, 1, 2, 3, 5, 13, 34, 80), (2, 3, 4, 5, 9, 11, 20, 70))
"""The positions of two texts: near ones show fast pairs, far ones slow pairs and scalings."""

SEEN = 3
"""So many tokens are seen with every window of this size."""

ATTENTION, NETWORK = "self_attention", "feed_forward"


def sizes_for(limits: Limits) -> Sizes:
    """Return sizes of one block inside the limits of a backend."""
    heads = min(HEADS, limits.heads or HEADS)
    return limits.fitted(
        Sizes(
            d_model=HEAD * heads,
            heads=heads,
            d_ff=HEAD * heads // 2,
            layers=1,
            source_vocabulary=17,
            target_vocabulary=17,
            max_length=min(LONG, limits.length or LONG),
            kv_heads=1,
            trained_length=64,
            window=SEEN,
        )
    )


@dataclass(frozen=True)
class Stations:
    """A built model with the choices that its parameters show, which makes stations."""

    probe: Probe
    structure: Choices

    @property
    def sizes(self) -> Sizes:
        """The sizes of the model."""
        return self.probe.sizes

    def drawn(self) -> dict[str, Floats]:
        """Return random parameters."""
        return parameters_of(self.probe.component, self.probe, self.structure)

    def tied(self, parameters: dict[str, Floats]) -> dict[str, Floats]:
        """Return `parameters` with tied ones made equal again."""
        return retied(parameters, self.probe.component, self.probe, self.structure)

    def answer(
        self, parameters: dict[str, Floats], tokens: Array, positions: Array | None = None
    ) -> Station:
        """Return the answer to tokens (B, T), without a mask, at the positions (B, T) if any."""
        return Station.of(self.probe, self.tied(parameters), (tokens, None, positions))

    def tokens(self, length: int, seed: int = 4) -> Array:
        """Return two random texts (2, T), no longer than the model takes."""
        count = min(length, self.sizes.max_length)
        found: Array = np.random.default_rng(seed).integers(
            1, self.sizes.target_vocabulary, size=(2, count)
        )
        return found

    def places(self, length: int, *, same: bool = False) -> Array | None:
        """Return positions (2, T) of a kind that the model takes, None where it takes none.

        They are all 0 where they are the `same`, and its own ones where the text is long.
        """
        kinds, limit = self.probe.subject.limits.positions, self.sizes.max_length
        if same:
            return np.zeros((2, length), dtype=np.int64) if "shared" in kinds else None
        if "shared" not in kinds or length > len(PLACES[0]):
            return None
        rows = np.array(PLACES if "per-sample" in kinds else (PLACES[0], PLACES[0]))
        found: Array = np.minimum(rows, limit - 1)[:, :length]
        return found

    def linear(self) -> Station:
        """Return the answer with norms and linear maps alone, to tokens of moderate size."""
        parameters = linear_feed_forward(stilled(self.drawn(), ATTENTION))
        parameters["embedding.weight"] = 4.0 * parameters["embedding.weight"]
        return self.answer(parameters, self.tokens(6))

    def of_all_scales(self, choices: Choices) -> Station:
        """Return the answer with norms and linear maps alone, to rows of all scales.

        The embedding of each token takes away what the first position adds.
        """
        parameters = linear_feed_forward(stilled(self.drawn(), ATTENTION))
        if "positions.weight" in parameters:
            parameters["positions.weight"] = np.zeros_like(parameters["positions.weight"])
        width = self.sizes.d_model
        learned = learned_positions(choices)
        first = 0.0 if learned else table(Setting(choices=choices), 1, width)[0]
        factor = np.sqrt(width) if choices.embedding_scale == "sqrt-d" else 1.0
        weight = parameters["embedding.weight"].copy()
        rows = np.random.default_rng(6).normal(size=(len(SCALES), width))
        weight[1 : 1 + len(rows)] = (rows * np.array(SCALES)[:, None] - first) / factor
        parameters["embedding.weight"] = weight
        return self.answer(parameters, np.arange(1, 1 + len(rows))[:, None])

    def network(self) -> Station:
        """Return the answer with everything active but attention."""
        parameters = stilled(self.drawn(), ATTENTION)
        parameters["embedding.weight"] = 4.0 * parameters["embedding.weight"]
        return self.answer(parameters, self.tokens(4))

    def attention(
        self,
        length: int,
        *,
        steep: float = 1.0,
        same: bool = False,
        network: bool = False,
        added: float = 0.0,
    ) -> Station:
        """Return the answer with attention active, whose scores are `steep` times as large.

        All tokens are at one position where it is the `same`; the network is silent by default.
        `added` is what a norm of queries adds to its weight.
        """
        parameters = self.drawn() if network else stilled(self.drawn(), NETWORK)
        for name, values in parameters.items():
            if f"{ATTENTION}.query" in name:  # its projection, and a norm that it has
                own = added if name.endswith("gain") else 0.0
                parameters[name] = (values + own) * steep - own
        tokens = self.tokens(length)
        return self.answer(parameters, tokens, self.places(tokens.shape[1], same=same))

    def saturated(self) -> Station:
        """Return the answer of a generator whose logits are large, but the cap is not."""
        parameters = stilled(self.drawn(), ATTENTION, NETWORK)
        parameters["generator.weight"] = 1e7 * parameters["generator.weight"]
        if self.structure.tying == "all-three":
            parameters["embedding.weight"] = parameters["generator.weight"]
        return self.answer(parameters, self.tokens(4))
