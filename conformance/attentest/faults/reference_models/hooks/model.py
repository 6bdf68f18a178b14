"""The hooks of the generator and of the whole model."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.hooks.embedding import EmbeddingHooks, PositionHooks
from attentest.faults.reference_models.hooks.initial import InitialHooks
from attentest.faults.reference_models.hooks.masks import MaskHooks
from attentest.faults.reference_models.hooks.stacks import StackHooks
from attentest.faults.reference_models.modules import Node
from attentest_spec.parameters import one_vocabulary


class GeneratorHooks(Base):
    """From the decoder's state to the next token."""

    @abstractmethod
    def make_generator(self) -> Node:
        """Build the linear map to the target vocabulary."""

    def generator(self, module: Node, x: Tensor) -> Tensor:
        """Map x (B, T, D) to (B, T, V) and normalise as chosen."""
        logits = self.generator_logits(module, self.scale_state(x))
        return self.generator_output(self.cap_logits(logits))

    def scale_state(self, x: Tensor) -> Tensor:
        """Divide what goes into the linear map by the root of its width where that is chosen."""
        return x / x.shape[-1] ** 0.5 if self.choices.logit_scale == "inverse-sqrt-d" else x

    @abstractmethod
    def generator_logits(self, module: Node, x: Tensor) -> Tensor:
        """Apply the linear map."""

    def cap_logits(self, logits: Tensor) -> Tensor:
        """Return the logits, bounded softly where that is chosen."""
        if self.choices.logit_cap == "none":
            return logits
        cap = float(self.choices.logit_cap)
        return cap * torch.tanh(logits / cap)

    @abstractmethod
    def generator_output(self, logits: Tensor) -> Tensor:
        """Return probabilities, their logarithms, or the logits, as chosen."""


class ModelHooks(
    MaskHooks, EmbeddingHooks, PositionHooks, StackHooks, GeneratorHooks, InitialHooks
):
    """Encoder, decoder, embeddings and generator; the model makes its own masks."""

    def make_model(self) -> Node:
        """Build the model and tie its vocabulary matrices as chosen."""
        model = Node(
            self,
            "model",
            source_embedding=self.make_embedding(self.sizes.source_vocabulary),
            target_embedding=self.make_embedding(self.sizes.target_vocabulary),
            source_positions=self.make_positions(),
            target_positions=self.make_positions(),
            source_embedding_norm=self.make_embedding_norm(),
            target_embedding_norm=self.make_embedding_norm(),
            encoder=self.make_encoder(),
            decoder=self.make_decoder(),
            generator=self.make_generator(),
        )
        self.initialise_model(model)
        self.tie(model)
        return model

    def make_embedding_norm(self) -> Node | None:
        """Build the norm of one side's embedded tokens where that is chosen."""
        return self.make_chosen_norm() if self.choices.embedding_norm == "present" else None

    def check_tying(self) -> None:
        """Refuse to tie vocabularies of different sizes."""
        source, target = self.sizes.source_vocabulary, self.sizes.target_vocabulary
        if one_vocabulary(self.choices) and source != target:
            raise ValueError(f"Vocabularies of {source} and {target} ids cannot be tied.")

    def tie(self, model: Node) -> None:
        """Make the chosen vocabulary matrices one parameter."""
        self.check_tying()
        if one_vocabulary(self.choices):
            self.share_matrix(model.target_embedding, model.source_embedding)
        if self.choices.tying in ("all-three", "target-and-output"):
            self.share_matrix(model.generator, model.target_embedding)

    @abstractmethod
    def share_matrix(self, part: Node, other: Node) -> None:
        """Give `part` the vocabulary matrix of `other`."""

    def model(self, module: Node, source: Tensor, target: Tensor) -> Tensor:
        """Return (B, T, V) for source tokens (B, S) and target tokens (B, T)."""
        return self.decode(module, target, self.encode(module, source), source)

    def encode(self, module: Node, source: Tensor) -> Tensor:
        """Return the memory (B, S, D) of source tokens (B, S)."""
        embedded = self.embed(module, "source", source)
        return module.encoder(embedded, self.source_mask_of(source))

    def decode(self, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """Return the generator's output (B, T, V) for target tokens and a memory."""
        state = module.decoder(
            self.embed(module, "target", target),
            self.pass_memory(memory),
            self.memory_mask_of(source, target),
            self.target_mask_of(target),
        )
        return module.generator(state)

    def embed(self, module: Node, side: str, tokens: Tensor) -> Tensor:
        """Return tokens of one `side`, "source" or "target", embedded and with positions."""
        embedded = self.embedding_of(module, side)(tokens)
        return self.norm_embedded(module, side, self.positions_of(module, side)(embedded))

    def norm_embedded(self, module: Node, side: str, x: Tensor) -> Tensor:
        """Return the sum of embedding and position through the norm of its side, if any."""
        norm = getattr(module, f"{side}_embedding_norm")
        return x if norm is None else norm(x)

    def embedding_of(self, module: Node, side: str) -> Node:
        """Return the embedding of one side."""
        embedding: Node = getattr(module, f"{side}_embedding")
        return embedding

    def positions_of(self, module: Node, side: str) -> Node:
        """Return the positional encoding of one side."""
        positions: Node = getattr(module, f"{side}_positions")
        return positions

    def pass_memory(self, memory: Tensor) -> Tensor:
        """Return the memory as the decoder is given it."""
        return memory

    def source_mask_of(self, source: Tensor) -> Tensor | None:
        """Return the mask of the encoder."""
        return self.padding_mask(source, self.sizes.source_pad)

    def memory_mask_of(self, source: Tensor, target: Tensor) -> Tensor | None:
        """Return the mask of the attention to the memory."""
        return self.source_mask_of(source)

    def target_mask_of(self, target: Tensor) -> Tensor | None:
        """Return the mask of the decoder's self-attention."""
        return self.target_mask(target, self.sizes.target_pad)
