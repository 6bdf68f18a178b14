"""Faults in calls of decoder-only models: shapes, precisions, gradients, modes and refusals."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.language_model.settings import LEARNED
from attentest.faults.reference_models import Hooks, Mask, Node


@fault(
    "language_model.last-token-alone",
    "shapes",
    seam="finish_language_model",
    origin="karpathy/nanoGPT#253",
)
def last_token_alone(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Only the last token has an output. Scores of a whole text cannot be computed."""
    return self.correct.finish_language_model(module, x[:, -1:])


@fault("language_model.single-text-squeezed", "shapes", seam="finish_language_model", origin="B036")
def single_text_squeezed(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """A batch of one loses its axis. A single prompt fails where batches work."""
    output = self.correct.finish_language_model(module, x)
    return output.squeeze(0)


@fault("language_model.state-in-bfloat16", "float32", seam="finish_language_model")
def state_in_bfloat16(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The last state passes through a narrow format. Three digits of the logits are left."""
    return self.correct.finish_language_model(module, x.bfloat16().to(x.dtype))


@fault(
    "language_model.output-in-float32",
    "half-precision",
    seam="finish_language_model",
    origin="linkedin/Liger-Kernel PR#308",
)
def output_in_float32(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output of half precision is float32. It takes twice the memory and mixes formats."""
    output = self.correct.finish_language_model(module, x)
    return output.float() if output.element_size() == 2 else output


@fault("language_model.state-overflows", "half-precision", seam="embed_tokens", origin="B126")
def state_overflows(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """A state passes through numbers beyond float16. Half precision gives NaN."""
    x = self.correct.embed_tokens(module, tokens, places)
    return x * 2.0**18 / 2.0**18


@fault("language_model.embedding-detached", "gradient", seam="embed_tokens", kind="gradient")
def embedding_detached(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """No gradient reaches the embedding. A tied matrix learns as generator alone."""
    return self.correct.embed_tokens(module, tokens, places).detach()


@fault(
    "language_model.attention-detached",
    "gradient",
    seam="attention_branch",
    kind="gradient",
    components=("causal_layer",),
)
def attention_detached(
    self: Hooks, module: Node, x: Tensor, keep: Tensor, places: Tensor
) -> Tensor:
    """No gradient passes through attention. Its four matrices stay as they were initialised."""
    return self.correct.attention_branch(module, x, keep, places).detach()


@fault(
    "language_model.state-detached",
    "every-parameter-trained",
    seam="finish_language_model",
    kind="gradient",
)
def state_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """No gradient reaches the blocks. The generator alone is trained."""
    return self.correct.finish_language_model(module, x.detach())


@fault(
    "language_model.positions-detached",
    "every-parameter-trained",
    seam="pick_rows",
    kind="gradient",
    choices=LEARNED,
)
def positions_detached(self: Hooks, rows: Tensor, places: Tensor) -> Tensor:
    """Learned positions get no gradient. They stay random."""
    return self.correct.pick_rows(rows.detach(), places)


@fault(
    "language_model.ids-wrap",
    "negative-id-refused",
    seam="embed_tokens",
    origin="BlinkDL/ChatRWKV PR#217",
)
def ids_wrap(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """Foreign ids wrap around. A text of another tokeniser is read as another text."""
    wrapped = tokens % self.sizes.target_vocabulary
    return self.correct.embed_tokens(module, wrapped, places)


@fault("language_model.ids-cut", "out-of-range-refused", seam="embed_tokens")
def ids_cut(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """Foreign ids become the nearest known one. Every unknown word is the same."""
    known = tokens.clamp(0, self.sizes.target_vocabulary - 1)
    return self.correct.embed_tokens(module, known, places)


@fault("language_model.positions-wrap", "too-long-input", seam="pass_places", choices=LEARNED)
def positions_wrap(self: Hooks, places: Tensor) -> Tensor:
    """Positions beyond the table begin again. Long texts are read as if folded."""
    return places % self.sizes.max_length


@fault(
    "language_model.positions-cut",
    "too-long-input",
    seam="pass_places",
    origin="alex-hh/profam PR#79",
    choices=LEARNED,
)
def positions_cut(self: Hooks, places: Tensor) -> Tensor:
    """Positions beyond the table become its last one. The end of a long text has no order."""
    return places.clamp(max=self.sizes.max_length - 1)


@fault(
    "language_model.dropout-always-on",
    "evaluation-is-deterministic",
    seam="finish_language_model",
    origin="B100",
    kind="mode",
)
def dropout_always_on(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Dropout before the generator ignores the mode. Every answer is another one."""
    dropped = functional.dropout(x, self.sizes.dropout, training=True)
    return self.correct.finish_language_model(module, dropped)


@fault(
    "language_model.embedding-scaled-in-evaluation",
    "evaluation-is-deterministic",
    seam="embed_tokens",
    kind="mode",
)
def embedding_scaled_in_evaluation(
    self: Hooks, module: Node, tokens: Tensor, places: Tensor
) -> Tensor:
    """In evaluation the state is scaled by what dropout keeps. It is scaled in training, too."""
    x = self.correct.embed_tokens(module, tokens, places)
    return x if self.is_training(module) else x * (1.0 - self.sizes.dropout)


@fault("language_model.tokens-replaced", "input-untouched", seam="embed_tokens")
def tokens_replaced(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """The first token is overwritten after it was read. The targets of the loss change."""
    x = self.correct.embed_tokens(module, tokens, places)
    tokens[:, 0] = (tokens[:, 0] + 1) % self.sizes.target_vocabulary
    return x


@fault("language_model.mask-overwritten", "input-untouched", seam="default_places")
def mask_overwritten(self: Hooks, tokens: Tensor, mask: Mask) -> Tensor:
    """The mask is overwritten by its opposite. The next call hides all real tokens."""
    places = self.correct.default_places(tokens, mask)
    if mask is not None:
        torch.logical_not(mask, out=mask)
    return places
