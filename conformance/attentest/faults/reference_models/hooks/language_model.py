"""The hooks of decoder-only models: causal blocks, positions that are given, and padding."""

from abc import abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.attention import Mask
from attentest.faults.reference_models.hooks.model import ModelHooks
from attentest.faults.reference_models.modules import Node
from attentest_spec.parameters import has_second_norm

SUBLAYERS = ("self_attention", "feed_forward")


class LanguageModelHooks(ModelHooks):
    """One stack of causal blocks between an embedding and a generator."""

    def make_language_model(self) -> Node:
        """Build the model, and tie its two vocabulary matrices as chosen."""
        self.check_sizes("d_model", "layers", "target_vocabulary", "max_length")
        normed = self.choices.embedding_norm == "present"
        ended = self.choices.final_norm == "present"
        model = Node(
            self,
            "language_model",
            embedding=self.make_embedding(self.sizes.target_vocabulary),
            positions=self.make_positions(),
            embedding_norm=self.make_chosen_norm() if normed else None,
            layers=self.make_layers(self.make_causal_layer, self.sizes.layers),
            norm=self.make_chosen_norm() if ended else None,
            generator=self.make_generator(),
        )
        self.tie_language_model(model)
        return model

    def tie_language_model(self, model: Node) -> None:
        """Make embedding and generator one parameter where that is chosen."""
        if self.choices.tying in ("all-three", "target-and-output"):
            self.share_matrix(model.generator, model.embedding)

    def make_causal_layer(self) -> Node:
        """Build a block."""
        layer = Node(
            self,
            "causal_layer",
            self_attention=self.make_causal_attention(),
            self_attention_norm=self.make_chosen_norm(),
            feed_forward=self.make_feed_forward(),
        )
        if has_second_norm(self.choices):
            layer.feed_forward_norm = self.make_chosen_norm()
        if self.choices.block_norms == "sandwich":
            for name in SUBLAYERS:
                setattr(layer, f"{name}_branch_norm", self.make_chosen_norm())
        return layer

    def make_causal_attention(self) -> Node:
        """Build the self-attention of a block."""
        return self.make_multi_head_attention()

    def language_model(
        self,
        module: Node,
        tokens: Tensor,
        mask: Mask = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return (B, T, V) for tokens (B, T), with a mask of real tokens and with positions."""
        places = self.default_places(tokens, mask) if positions is None else positions
        places = self.pass_places(places)
        x = self.embed_tokens(module, tokens, places)
        for layer in self.causal_layers(module):
            x = layer(x, mask, places)
        return self.finish_language_model(module, x)

    def pass_places(self, places: Tensor) -> Tensor:
        """Return the positions as they are used."""
        return places

    def default_places(self, tokens: Tensor, mask: Mask) -> Tensor:
        """Return the positions (B, T) of tokens that are given none, as chosen."""
        if mask is None or self.choices.padded_positions == "columns":
            return self.column_places(tokens)
        return self.counted_places(mask)

    @abstractmethod
    def column_places(self, tokens: Tensor) -> Tensor:
        """Return the numbers (B, T) of the columns."""

    @abstractmethod
    def counted_places(self, mask: Tensor) -> Tensor:
        """Return the numbers (B, T) of real tokens before each one, 0 at the padding before."""

    def embed_tokens(self, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
        """Return the tokens embedded, with their positions, through a norm if there is one."""
        x = self.add_places(module.positions, module.embedding(tokens), places)
        return x if module.embedding_norm is None else module.embedding_norm(x)

    def add_places(self, positions: Node, x: Tensor, places: Tensor) -> Tensor:
        """Add the rows of the positions (B, T) to x (B, T, D), where rows are added at all."""
        if self.choices.positional_encoding == "none":
            return self.dropout(positions, x)
        length = x.shape[1] if places.device.type == "meta" else int(places.max()) + 1
        rows = self.position_rows(positions, length, x.device).to(x.dtype)
        return self.dropout(positions, x + self.pick_rows(rows, places))

    @abstractmethod
    def pick_rows(self, rows: Tensor, places: Tensor) -> Tensor:
        """Return those of the rows (L, D) that are at the places (B, T), as (B, T, D)."""

    def causal_layers(self, module: Node) -> Iterable[Node]:
        """Return the blocks in the order they are applied."""
        return list(module.layers)

    def finish_language_model(self, module: Node, x: Tensor) -> Tensor:
        """Apply the final norm, where there is one, and the generator."""
        return module.generator(x if module.norm is None else module.norm(x))

    def causal_layer(
        self, module: Node, x: Tensor, mask: Mask = None, positions: Tensor | None = None
    ) -> Tensor:
        """Apply both sublayers of a block to x (B, T, D), one after the other or side by side."""
        places = self.column_places(x[..., 0]) if positions is None else positions
        keep = self.visible_keys(x.shape[1], mask, x.device)
        keep = self.limit_documents(keep, places)
        return self.join_branches(module, x, self.attention_branch(module, x, keep, places))

    def join_branches(self, module: Node, x: Tensor, attended: Tensor) -> Tensor:
        """Return the output of a block for x (B, T, D), of which attention adds `attended`."""
        if self.in_parallel():
            both = attended + self.feed_forward_branch(module, x)
            return self.close_sum(module, "self_attention", x, both)
        x = self.close_sum(module, "self_attention", x, attended)
        return self.close_sum(module, "feed_forward", x, self.feed_forward_branch(module, x))

    def limit_documents(self, keep: Tensor, places: Tensor) -> Tensor:
        """Return the visible keys (B, 1, T, T), of the query's own document where declared."""
        if self.choices.packed_documents == "one-text":
            return keep
        return keep & self.same_document(places)

    @abstractmethod
    def same_document(self, places: Tensor) -> Tensor:
        """Return which tokens are of one document, (B, 1, T, T), for positions (B, T)."""

    def in_parallel(self) -> bool:
        """Say whether the feed-forward network is given the input of the block."""
        return self.choices.block_layout != "sequential"

    def attention_branch(self, module: Node, x: Tensor, keep: Tensor, places: Tensor) -> Tensor:
        """Return what attention adds to the residual path."""
        opened = self.open_branch(module, "self_attention", x)
        found = self.causal_attention(module.self_attention, opened, keep, places)
        return self.end_branch(module, "self_attention", found)

    def feed_forward_branch(self, module: Node, x: Tensor) -> Tensor:
        """Return what the feed-forward network adds to the residual path."""
        opened = self.open_branch(module, "feed_forward", x)
        return self.end_branch(module, "feed_forward", module.feed_forward(opened))

    def opening_norm(self, module: Node, name: str) -> Node:
        """Return the norm before the sublayer `name`."""
        shared = self.choices.block_layout == "parallel-one-norm"
        norm: Node = getattr(module, f"{'self_attention' if shared else name}_norm")
        return norm

    def open_branch(self, module: Node, name: str, x: Tensor) -> Tensor:
        """Return what the sublayer `name` is given: the norm of x, or x."""
        normed = self.choices.block_norms in ("pre", "sandwich")
        return self.opening_norm(module, name)(x) if normed else x

    def end_branch(self, module: Node, name: str, branch: Tensor) -> Tensor:
        """Return what the sublayer `name` adds: its output with dropout, or the norm of that."""
        dropped = self.dropout(module, branch)
        match self.choices.block_norms:
            case "post-branch":
                ending: Node = getattr(module, f"{name}_norm")
                return ending(dropped)
            case "sandwich":
                ending = getattr(module, f"{name}_branch_norm")
                return ending(dropped)
            case _:
                return dropped

    def close_sum(self, module: Node, name: str, x: Tensor, branch: Tensor) -> Tensor:
        """Return the sum, or the norm of that."""
        total = x + branch
        if self.choices.block_norms != "post":
            return total
        closing: Node = getattr(module, f"{name}_norm")
        return closing(total)

    def causal_attention(self, module: Node, x: Tensor, keep: Tensor, places: Tensor) -> Tensor:
        """Let x (B, T, D) attend to itself."""
        return self.multi_head_attention(module, x, x, x, keep, places)

    @abstractmethod
    def visible_keys(self, length: int, mask: Mask, device: torch.device) -> Tensor:
        """Return the keys that queries see, (1, 1, T, T) or (B, 1, T, T); padding sees itself."""
