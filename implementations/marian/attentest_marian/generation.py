"""The `generate` of transformers, driven by a scripted model, and its processors of logits.

Beams add up in float32, whatever they are given.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    MarianConfig,
    PreTrainedModel,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, Script


class Scripted(PreTrainedModel, GenerationMixin):  # type: ignore[misc]  # of any type
    """A model of the library, an encoder and a decoder, whose answers are those of a script."""

    config_class = MarianConfig
    main_input_name = "input_ids"

    def __init__(self, sizes: Sizes) -> None:
        """Begin without a table of scores."""
        ids = {
            "pad_token_id": sizes.target_pad,
            "eos_token_id": sizes.end,
            "decoder_start_token_id": sizes.start,
        }
        config = MarianConfig(vocab_size=sizes.target_vocabulary, use_cache=False, **ids)
        super().__init__(config)
        self.script = Script(sizes)
        self.alpha = sizes.alpha
        self.generation_config = GenerationConfig(use_cache=False, forced_eos_token_id=None, **ids)

    @property
    def device(self) -> torch.device:
        """The device of the table; the library looks for that of a parameter."""
        return self.script.scores.device

    def get_encoder(self, *given: Any, **named: Any) -> "Encoder":
        """Return the encoder."""
        return Encoder(self.script)

    def forward(
        self,
        *,
        decoder_input_ids: Tensor,
        encoder_outputs: BaseModelOutput,
        **rest: Any,
    ) -> Seq2SeqLMOutput:
        """Return the logits (B, T, V) for target tokens (B, T) and a memory."""
        memory = encoder_outputs.last_hidden_state
        return Seq2SeqLMOutput(logits=self.script.answer(decoder_input_ids, memory))

    def generated(self, scores: Tensor, begin: Tensor, length: int, **how: Any) -> Any:
        """Call `generate` with a table of scores (B, L, V, V) and given tokens (B, P)."""
        self.script.play(scores)
        if begin.shape[1] >= length:
            return SimpleNamespace(sequences=begin, sequences_scores=None)
        return self.generate(
            self.script.source,
            decoder_input_ids=begin,
            # Another first token would get the configured one in front of it.
            decoder_start_token_id=int(begin[0, 0]),
            max_length=length,
            return_dict_in_generate=True,
            **how,
        )


class Encoder(nn.Module):
    """The encoder of a script, from source tokens (B, 1) to the memory."""

    def __init__(self, script: Script) -> None:
        """Share the script of the model."""
        super().__init__()
        self.script = script

    def forward(self, input_ids: Tensor, **rest: Any) -> BaseModelOutput:
        """Return the memory, as the library's encoders do."""
        return BaseModelOutput(self.script.memory(input_ids))


def greedy(built: Scripted, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    """Return the tokens (B, M) of greedy decoding."""
    found = built.generated(scores, begin, length, do_sample=False, num_beams=1)
    return built.script.filled(found.sequences, length)


def beams(
    built: Scripted, scores: Tensor, begin: Tensor, length: int, count: int
) -> tuple[Tensor, Tensor | None]:
    """Return the tokens (B, N, M) and the scores (B, N) of a beam search for the n best."""
    if count == 1:  # the library calls a beam of one greedy decoding, which has no scores
        return greedy(built, scores, begin, length)[:, None], None
    found = built.generated(
        scores,
        begin,
        length,
        do_sample=False,
        num_beams=count,
        num_return_sequences=count,
        length_penalty=built.alpha,
        early_stopping=True,
        output_scores=True,
    )
    tokens = built.script.filled(found.sequences, length)
    sums = found.sequences_scores.to(scores.dtype)
    return tokens.view(-1, count, length), sums.view(-1, count)


def sampled(sizes: Sizes) -> Any:
    """Return the function from logits (B, V) to the probabilities that `generate` draws by."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sizes.temperature)])
    if sizes.top_k:
        warpers.append(TopKLogitsWarper(sizes.top_k))
    if sizes.top_p < 1:
        warpers.append(TopPLogitsWarper(sizes.top_p))
    nothing = torch.zeros(1, 0, dtype=torch.int64)
    return lambda logits: warpers(nothing, logits).softmax(-1)


CHOICES: dict[str, Value] = {
    "decoding_stop": "end-token",
    "after_end": "padding",
    "decoding_mode": "as-given",
    "length_penalty": "power",
    "counted_length": "new",
    "finished_beams": "set-aside",
    "beam_stop": "n-before-length",
    "filter_order": "temperature-first",
    "nucleus": "of-what-is-left",
}
"""The choices of decoding."""

RECIPES = {
    "greedy_decoding": Recipe(Scripted, greedy),
    "beam_search": Recipe(Scripted, beams),
    "sampling": Recipe(sampled),
}
"""The recipes of decoding."""
