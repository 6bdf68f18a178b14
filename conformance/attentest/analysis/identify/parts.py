"""Parameters and inputs that isolate one choice of a component.

Each part of a component can be disabled through its canonical parameters: attention whose output
weights are zero adds nothing, and a feed-forward network can be made linear under every listed
activation but two, because act(z) - act(-z) is z for all others.
"""

from dataclasses import dataclass, replace

import numpy as np

from attentest.analysis.identify.station import parameters_of, retied
from attentest.harness.subject import Probe
from attentest_spec import COMPONENTS, Choices, Sizes
from attentest_spec.contract import Input
from attentest_spec.parameters import head_width, learned_positions
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Array, Floats, Setting

SCALES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10)
"""Magnitudes of the rows that a norm is given: its epsilon shows in the small ones."""

SHORTEST = 1e-13
"""The magnitude of rows that are shorter than any least length in use."""

NOT_LINEAR = {"none": "relu-squared", "gated": "sigmoid"}
"""The activation of which no two units make a linear map, without a gate and with one."""

LARGE = slice(1, 6)
"""The tokens that :func:`large_model` makes large."""


BEYOND = 90
"""A length beyond the trained one, with which all bands of frequencies have a pair."""


def rotary_sizes(sizes: Sizes, limit: int | None) -> Sizes:
    """Return `sizes` with heads of eight pairs, and with texts longer than those of training."""
    longest = min(BEYOND, limit or BEYOND)
    return sizes.but(d_model=16 * sizes.heads, max_length=longest, trained_length=64)


@dataclass(frozen=True)
class Part:
    """A built component, the choices its parameters show, and the others known so far.

    A `masked` one is given masks that hide the last of several keys where it may do without: code
    may take a mask that hides nothing for none.
    """

    component: str
    probe: Probe
    choices: Choices
    masked: bool = False

    @property
    def width(self) -> int:
        """The model width."""
        return self.probe.sizes.d_model

    def drawn(self) -> dict[str, Floats]:
        """Return random parameters."""
        return parameters_of(self.component, self.probe, self.choices)

    def tied(self, parameters: dict[str, Floats]) -> dict[str, Floats]:
        """Return `parameters` with tied ones made equal again."""
        return retied(parameters, self.component, self.probe, self.choices)

    def inputs(
        self, *, rows: Floats | None = None, seed: int = 4, length: int = 3, head: int = 2
    ) -> tuple[Input, ...]:
        """Return random inputs; `rows` (B, L, D) stand in for the embedded ones.

        Sequences are of `length`, that of the memory of 2 at most, and that of the target of a
        model of 1: nothing is masked. A `head` is the width of one where attention has no
        projections.
        """
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2, length, self.width)) if rows is None else rows
        matrix = rng.normal(size=(self.width, self.width))
        tokens = rng.integers(1, self.probe.sizes.source_vocabulary, size=(2, 2, length))
        keys = min(length, 2)
        memory = rng.normal(size=(len(x), keys, self.width))
        heads = rng.normal(size=(3, 2, self.probe.sizes.heads, length, head))
        given: dict[str, tuple[Input, ...]] = {
            "attention": (heads[0], heads[1], heads[2], self.own_kept(length)),
            "multi_head_attention": (x, x, x, self.own_kept(x.shape[1])),
            "embedding": (tokens[0],),
            "residual": (x, matrix),
            "encoder_layer": (x, self.own_kept(x.shape[1])),
            "decoder_layer": (x, memory, self.memory_kept(keys), self.own_kept(x.shape[1])),
            "rms_norm": (rows_of_all_scales(self) if rows is None else x,),
            "padded_batch": (np.arange(3, 9), np.array([3, 1, 2])),
            "loss": self.loss_inputs(),
            "model": (tokens[0], tokens[1][:, :1]),
            "optimiser": _small_gradients(),
            "gradient_clipping": (np.array([3e-3, 4e-3]), np.array([1, 1]), np.array(1e-3)),
            "learning_rate": (self.probe.sizes.warmup + 5001,),  # where the schedules differ
            "rotary": self.rotary_inputs(),
            "causal_layer": (x, None, None),
            "language_model": (tokens[0], None, None),
        }
        given |= {"encoder": given["encoder_layer"], "decoder": given["decoder_layer"]}
        return given.get(self.component, (x,))

    def rotary_inputs(self) -> tuple[Input, ...]:
        """Return x (2, H, L, E) for heads of one part of the width, and no positions."""
        sizes = self.probe.sizes
        shape = (2, sizes.heads, sizes.max_length, sizes.d_model // sizes.heads)
        return np.random.default_rng(6).normal(size=shape), None

    def loss_inputs(self) -> tuple[Input, ...]:
        """Return an output of positive numbers (B, T, V), and a target (B, T) with padding.

        Taken as logits, as logarithms and as probabilities they give different losses. The
        sequences have different numbers of targets.
        """
        sizes, rng = self.probe.sizes, np.random.default_rng(4)
        output = rng.uniform(0.1, 0.9, size=(2, 4, sizes.target_vocabulary))
        target = np.arange(8).reshape(2, 4) % (sizes.target_vocabulary - 1)
        target = target + (target >= sizes.target_pad)
        target[0, 1:] = sizes.target_pad
        return output, target

    def large_inputs(self) -> tuple[Input, ...]:
        """Return tokens of a model that are large under the parameters of :func:`large_model`."""
        length = min(3, self.probe.sizes.max_length)
        tokens = np.random.default_rng(4).integers(LARGE.start, LARGE.stop, size=(2, 2, length))
        return tokens[0], tokens[1]

    def own_kept(self, length: int) -> Array | None:
        """Return a mask for a sequence that attends to itself: causal where it must be that."""
        if set(self.probe.subject.limits.masks) == {"causal"}:
            return np.tril(np.ones((1, 1, length, length), dtype=bool))
        return self.all_kept(length)

    def all_kept(self, keys: int) -> Array | None:
        """Return a mask for `keys`, None where it may be left out."""
        return self._kept(keys, "mask")

    def memory_kept(self, keys: int) -> Array | None:
        """Return a mask for the memory of a decoder, None where it may be left out."""
        return self._kept(keys, "source_mask")

    def _kept(self, keys: int, role: str) -> Array | None:
        kinds = self.probe.subject.limits.masks_of(role)
        spared = "none" in kinds and not (self.masked and "padding" in kinds)
        return None if spared else np.arange(keys)[None, None, None] < max(1, keys - self.masked)


def _small_gradients() -> tuple[Input, ...]:
    """Return a run of the optimiser in which all of its constants and the decay show.

    The gradients are of all magnitudes between that of usual epsilons and 1.
    """
    rng = np.random.default_rng(5)
    scales = np.array([1.0, 1e-3, 1e-5, 1e-7, 1e-9])
    rates = 0.1 * (1.0 + np.arange(6) % 2)
    return rng.normal(size=5), rng.normal(size=(6, 5)) * scales, rates


def bent(part: Part) -> Part:
    """Return `part` with the activation under which :func:`norms_alone` is not linear."""
    gate = str(part.choices.feed_forward_gate)
    return replace(part, choices=part.choices.but(activation=NOT_LINEAR[gate]))


def has(component: str, part: str) -> bool:
    """Return whether `component` is `part`, or contains it at any depth."""
    return component == part or any(has(one, part) for one in COMPONENTS[component].contains)


def stilled(parameters: dict[str, Floats], *sublayers: str) -> dict[str, Floats]:
    """Return `parameters` with the named kinds of sublayers giving nothing but zero."""
    last = {"self_attention": "output", "cross_attention": "output", "feed_forward": "outer"}
    silent = tuple(f"{one}.{last[one]}." for one in sublayers)
    return {
        name: np.zeros_like(values) if any(one in name for one in silent) else values
        for name, values in parameters.items()
    }


def linear_feed_forward(parameters: dict[str, Floats]) -> dict[str, Floats]:
    """Return `parameters` with feed-forward networks that are linear, unless they are bent."""
    changed = dict(parameters)
    for name, values in parameters.items():
        if "feed_forward.inner.weight" in name:
            half = values[: len(values) // 2]
            gate = name.replace("inner", "gate")
            if gate in parameters:  # z times u for every activation: the unit keeps its sign
                first = parameters[gate][: len(half)]
                changed[gate] = np.concatenate([first, -first])
                changed[name] = np.concatenate([half, half])
            else:
                changed[name] = np.concatenate([half, -half])
            outer = name.replace("inner", "outer")
            columns = parameters[outer][:, : len(half)]
            changed[outer] = np.concatenate([columns, -columns], axis=1)
        elif name.endswith(("feed_forward.inner.bias", "feed_forward.gate.bias")):
            changed[name] = np.zeros_like(values)
    return changed


def norms_alone(part: Part) -> dict[str, Floats]:
    """Return parameters under which nothing but norms and linear maps is active."""
    return part.tied(
        linear_feed_forward(stilled(part.drawn(), "self_attention", "cross_attention"))
    )


def rows_of_all_scales(part: Part) -> Floats:
    """Return rows (B, 1, D), one for each of :data:`SCALES`, and one below any least length."""
    scales = np.array([*SCALES, SHORTEST])[:, None, None]
    rows: Floats = np.random.default_rng(6).normal(size=(len(scales), 1, part.width)) * scales
    return rows


def embedding_names(parameters: dict[str, Floats]) -> list[str]:
    """Return the three matrices of a model that have a row for every token."""
    wanted = ("source_embedding.weight", "target_embedding.weight", "generator.weight")
    return [name for name in wanted if name in parameters]


def model_of_all_scales(part: Part) -> tuple[dict[str, Floats], tuple[Input, ...]]:
    """Return parameters and inputs of a model whose first states are rows of all scales.

    The embedding of the token takes away what the first position adds; at a width of 4 and of 16
    nothing of that is rounded. The choices of the embedding and of the positions must be known.
    """
    parameters = norms_alone(part)
    parameters = {
        name: np.zeros_like(values) if "positions" in name else values
        for name, values in parameters.items()
    }
    learned = learned_positions(part.choices)
    first = 0.0 if learned else table(Setting(choices=part.choices), 1, part.width)[0]
    factor = np.sqrt(part.width) if part.choices.embedding_scale == "sqrt-d" else 1.0
    rows = rows_of_all_scales(part)[:, 0]
    weight = parameters["source_embedding.weight"].copy()
    weight[1 : 1 + len(rows)] = (rows - first) / factor
    tokens = np.arange(1, 1 + len(rows))[:, None]
    return parameters | dict.fromkeys(embedding_names(parameters), weight), (tokens, tokens)


def large_model(part: Part, size: float = 1e3) -> dict[str, Floats]:
    """Return parameters of a model under which every norm is given large numbers.

    There its epsilon hardly plays a part. The tokens LARGE are large and never the outcome; later
    ones are small, so that a softmax over those is not saturated.
    """
    parameters = norms_alone(part)
    for name in parameters:
        if "norm." in name:
            parameters[name] = parameters[name] * size
    weight = parameters["source_embedding.weight"].copy()
    weight[LARGE] *= size
    weight[LARGE.stop :] /= size
    large = part.tied(parameters) | dict.fromkeys(embedding_names(parameters), weight)
    if "generator.bias" in parameters:
        bias = parameters["generator.bias"].copy()
        bias[: LARGE.stop] = -(size**3)
        return large | {"generator.bias": bias}
    if part.choices.tying in ("none", "embeddings"):
        return large | {"generator.weight": np.where(np.abs(weight) > 1.0, 0.0, weight)}
    return large


def steep(part: Part, factor: float) -> dict[str, Floats]:
    """Return parameters whose attention scores are `factor` times fixed numbers of either sign.

    Query column 0 (made 1 by the norms, where they have a bias) meets key column 1, the same in
    every head. One attention of the first layer is at work, of a model the one to the memory, and
    nothing else.
    """
    first = 0.0 if part.choices.norm_bias == "present" else 1.0
    beside = "self_attention" if part.component == "model" else "cross_attention"
    parameters = stilled(part.drawn(), beside, "feed_forward")
    later = stilled(parameters, "self_attention", "cross_attention")
    parameters |= {
        name: values for name, values in later.items() if ".0." not in name and "layers" in name
    }
    width = head_width(part.probe.sizes, part.choices)
    for name, values in parameters.items():
        if name.endswith(("query.weight", "key.weight")):
            column, number = (0, factor) if "query" in name else (1, -1.0)
            parameters[name] = np.zeros_like(values)
            parameters[name][::width, column] = number
        elif name.endswith(("query.bias", "key.bias")):
            parameters[name] = np.zeros_like(values)
        elif name.endswith("norm.gain"):
            parameters[name] = np.array([first] + [1.0] * (part.width - 1))
        elif name.endswith("norm.bias"):
            parameters[name] = np.array([1.0] + [0.0] * (part.width - 1))
    return part.tied(parameters)
