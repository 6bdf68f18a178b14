"""transformers' `generate` and its processors of logits agree with the decoding of the spec.

The library computes in float32, and its beams have a length penalty that is a power.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attentest_spec import decoding
from attentest_spec.attention import softmax
from attentest_spec.choices import Choices
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

transformers = pytest.importorskip("transformers")

WORDS, LENGTH, PAD, START, END = 7, 7, 5, 1, 3
BEAMS = Choices(
    output="logits", length_penalty="power", finished_beams="set-aside", beam_stop="n-before-length"
)
SEEDS = pytest.mark.parametrize("seed", range(4))
ALPHAS = pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
IDS = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": START}


def setting(**sizes: Any) -> Setting:
    ids = {"target_pad": PAD, "end": END, "start": START, "target_vocabulary": WORDS}
    return Setting(Sizes(**(ids | sizes)), BEAMS)


def table(seed: int) -> Floats:
    """Return logits (1, L, V, V) in which the end is as likely as other words."""
    logits = np.random.default_rng(seed).normal(scale=2.0, size=(1, LENGTH, WORDS, WORDS))
    logits[..., PAD] = -20.0
    return logits


class Scripted(transformers.PreTrainedModel, transformers.GenerationMixin):  # type: ignore[misc]
    """A decoder of the library whose logits are in a table."""

    config_class = transformers.PretrainedConfig

    def __init__(self, logits: Floats) -> None:
        super().__init__(transformers.PretrainedConfig(vocab_size=WORDS, use_cache=False))
        self.register_buffer("table", torch.tensor(logits[0]), persistent=False)

    device = torch.device("cpu")

    def forward(self, input_ids: Tensor, **rest: Any) -> Any:
        """Return the logits (B, T, V) after tokens (B, T)."""
        places = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        return transformers.modeling_outputs.CausalLMOutput(logits=self.table[places, input_ids])


def searched(seed: int, count: int, alpha: float, **how: Any) -> tuple[Floats, Floats]:
    """Return tokens (N, M) and scores (N) that the library finds."""
    found = Scripted(table(seed)).generate(
        torch.tensor([[START]]),
        max_length=LENGTH,
        num_beams=count,
        num_return_sequences=count,
        do_sample=False,
        length_penalty=alpha,
        return_dict_in_generate=True,
        output_scores=True,
        use_cache=False,
        **({"early_stopping": True, **IDS} | how),
    )
    return found.sequences.numpy(), found.sequences_scores.numpy()


def agree(found: tuple[Floats, Floats], wanted: tuple[Any, Any]) -> None:
    tokens, scores = wanted[0][0], wanted[1][0]
    np.testing.assert_array_equal(found[0], tokens[:, : found[0].shape[1]])
    assert (tokens[:, found[0].shape[1] :] == PAD).all()
    np.testing.assert_allclose(found[1], scores, rtol=1e-5)


@SEEDS
def test_greedy_is_that_of_transformers(seed: int) -> None:
    found = Scripted(table(seed)).generate(
        torch.tensor([[START]]), max_length=LENGTH, do_sample=False, use_cache=False, **IDS
    )
    wanted = decoding.greedy_decoding(setting(), table(seed), np.array([[START]]), LENGTH)
    np.testing.assert_array_equal(found.numpy(), wanted[:, : found.shape[1]])


@SEEDS
@ALPHAS
@pytest.mark.parametrize("count", [2, 3])
def test_beams_with_an_early_stop_are_those_of_transformers(
    seed: int, alpha: float, count: int
) -> None:
    given = setting(alpha=alpha)
    wanted = decoding.beam_search(given, table(seed), np.array([[START]]), LENGTH, count)
    agree(searched(seed, count, alpha), wanted)


@SEEDS
@ALPHAS
def test_beams_without_an_early_stop_are_those_of_transformers(seed: int, alpha: float) -> None:
    given = Setting(setting(alpha=alpha).sizes, BEAMS.but(beam_stop="length"))
    wanted = decoding.beam_search(given, table(seed), np.array([[START]]), LENGTH, 3)
    agree(searched(seed, 3, alpha, early_stopping="never"), wanted)


def marian(seed: int) -> Any:
    """Return a tiny model with random weights."""
    torch.manual_seed(seed)
    counts = {"layers": 1, "attention_heads": 2, "ffn_dim": 8}
    named: dict[str, Any] = {
        f"{side}_{name}": counts[name] for side in ("encoder", "decoder") for name in counts
    }
    config = transformers.MarianConfig(vocab_size=WORDS, d_model=8, init_std=1.0, **IDS, **named)
    model = transformers.MarianMTModel(config).eval()
    model.generation_config = transformers.GenerationConfig(**IDS)
    return model


@SEEDS
@pytest.mark.parametrize("count", [1, 3])
def test_a_random_model_is_searched_as_by_transformers(
    seed: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = marian(seed), torch.tensor([[2, 4, 6]])

    def following(given: Setting, scores: Floats, prefix: Any) -> Floats:
        with torch.no_grad():
            logits = model(source, decoder_input_ids=torch.tensor([list(prefix)])).logits[0, -1]
        found: Floats = logits.log_softmax(-1).double().numpy()
        return found

    monkeypatch.setattr(decoding, "next_scores", following)  # which the table would answer
    given, begin = setting(alpha=0.6), np.array([[START]])
    how = {"max_length": LENGTH, "do_sample": False, "num_beams": count}
    if count == 1:
        tokens = model.generate(source, **how).numpy()
        wanted = decoding.greedy_decoding(given, table(0), begin, LENGTH)
        np.testing.assert_array_equal(tokens, wanted[:, : tokens.shape[1]])
        return
    more = {"num_return_sequences": count, "length_penalty": 0.6, "early_stopping": True}
    found = model.generate(source, return_dict_in_generate=True, output_scores=True, **how, **more)
    wanted = decoding.beam_search(given, table(0), begin, LENGTH, count)
    agree((found.sequences.numpy(), found.sequences_scores.numpy()), wanted)


WARPERS: dict[str, Callable[[float], Any]] = {
    "temperature": transformers.TemperatureLogitsWarper,
    "top_k": lambda count: transformers.TopKLogitsWarper(int(count)),
    "top_p": transformers.TopPLogitsWarper,
}


@SEEDS
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.7},
        {"top_k": 3},
        {"top_p": 0.8},
        {"temperature": 1.5, "top_k": 4, "top_p": 0.6},
    ],
)
def test_sampling_is_that_of_transformers(seed: int, settings: dict[str, float]) -> None:
    logits = np.random.default_rng(seed).normal(scale=2.0, size=(3, WORDS))
    scores = torch.tensor(logits)
    for name, value in settings.items():
        scores = WARPERS[name](value)(torch.zeros(3, 0, dtype=torch.int64), scores)
    wanted = decoding.sampling(setting(**settings), logits)
    np.testing.assert_allclose(softmax(scores.numpy()), wanted, rtol=1e-12)
