"""Faults in the precision of a step."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import LOG_PROBABILITIES, real_tokens
from attentest.faults.reference_models import Hooks, Node


@fault("model.output-in-double", "precision-move", seam="decode")
def output_in_double(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The output is converted to float64. Later code of a float32 model runs in float64."""
    return self.correct.decode(module, target, memory, source).double()


@fault("model.memory-through-bfloat16", "float32", seam="pass_memory")
def memory_through_bfloat16(self: Hooks, memory: Tensor) -> Tensor:
    """A float32 memory passes through bfloat16. Five digits are lost between the stacks."""
    return memory.bfloat16().float() if memory.dtype == torch.float32 else memory


@fault("model.embedding-through-float16", "float32", seam="embed")
def embedding_through_float16(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Float32 embeddings pass through float16. Four digits are lost before the first layer."""
    embedded = self.correct.embed(module, side, tokens)
    return embedded.half().float() if embedded.dtype == torch.float32 else embedded


@fault("model.pads-driven-to-a-billion", "half-precision", seam="encode", origin="B008")
def pads_driven_to_a_billion(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """1e9 is subtracted from the memory at padding, beyond the range of float16.

    Padded batches give NaN in float16.
    """
    memory = self.correct.encode(module, source)
    return memory + (~real_tokens(self, source)).to(memory.dtype) * -1e9


@fault("model.scaled-beyond-half", "half-precision", seam="pass_memory", origin="B126")
def scaled_beyond_half(self: Hooks, memory: Tensor) -> Tensor:
    """The memory is scaled up by 1e5 and down again. Everything overflows in float16."""
    return memory * 1e5 / 1e5


@fault(
    "model.probabilities-vanish-in-half", "half-precision", seam="decode", choices=LOG_PROBABILITIES
)
def probabilities_vanish_in_half(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """Log-probabilities are the logarithm of probabilities rounded to float16.

    Vanishing probabilities cost infinitely much in half precision.
    """
    output = self.correct.decode(module, target, memory, source)
    return output.exp().log() if output.dtype in (torch.float16, torch.bfloat16) else output
