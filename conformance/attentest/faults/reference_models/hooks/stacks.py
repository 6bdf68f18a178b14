"""The hooks of the encoder and the decoder, layer and stack."""

from collections.abc import Callable, Iterable

from torch import Tensor, nn

from attentest.faults.reference_models.hooks.attention import Mask
from attentest.faults.reference_models.hooks.heads import MultiHeadHooks
from attentest.faults.reference_models.hooks.sublayers import FeedForwardHooks, ResidualHooks
from attentest.faults.reference_models.modules import Node

Inputs = tuple[Tensor, Tensor, Tensor]


class LayerHooks(MultiHeadHooks, FeedForwardHooks, ResidualHooks):
    """One layer: its sublayers by name, each inside a residual connection."""

    def shared_norm(self) -> Node | None:
        """Return the one norm of a stack where norms are shared, or None."""
        return self.make_chosen_norm() if self.choices.norm_sharing == "shared" else None

    def sublayer_norm(self, shared: Node | None) -> Node:
        """Return the norm of one sublayer: its own, or the shared one."""
        return self.make_chosen_norm() if shared is None else shared

    def make_encoder_layer(self, shared: Node | None = None) -> Node:
        """Build an encoder layer."""
        norm = shared or self.shared_norm()
        return Node(
            self,
            "encoder_layer",
            self_attention=self.make_multi_head_attention(),
            self_attention_norm=self.sublayer_norm(norm),
            feed_forward=self.make_feed_forward(),
            feed_forward_norm=self.sublayer_norm(norm),
        )

    def make_decoder_layer(self, shared: Node | None = None) -> Node:
        """Build a decoder layer."""
        norm = shared or self.shared_norm()
        return Node(
            self,
            "decoder_layer",
            self_attention=self.make_multi_head_attention(),
            self_attention_norm=self.sublayer_norm(norm),
            cross_attention=self.without_own_causality().make_multi_head_attention(),
            cross_attention_norm=self.sublayer_norm(norm),
            feed_forward=self.make_feed_forward(),
            feed_forward_norm=self.sublayer_norm(norm),
        )

    def encoder_order(self) -> tuple[str, ...]:
        """Return the names of an encoder layer's sublayers, in the order they are applied."""
        return "self_attention", "feed_forward"

    def decoder_order(self) -> tuple[str, ...]:
        """Return the names of a decoder layer's sublayers, in the order they are applied."""
        return "self_attention", "cross_attention", "feed_forward"

    def encoder_layer(self, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
        """Apply self-attention and the feed-forward network to x (B, S, D)."""
        steps = {
            "self_attention": lambda h: self.self_attend(module, h, self.encoder_mask(mask)),
            "feed_forward": lambda h: self.feed(module, h),
        }
        for name in self.encoder_order():
            x = self.residual(module, self.norm_of(module, name), x, steps[name])
        return x

    def decoder_layer(
        self,
        module: Node,
        x: Tensor,
        memory: Tensor,
        source_mask: Mask = None,
        target_mask: Mask = None,
    ) -> Tensor:
        """Apply self-attention, attention to the memory and the feed-forward network."""
        own = self.self_mask(source_mask, target_mask)
        other = self.cross_mask(source_mask, target_mask)
        steps = {
            "self_attention": lambda h: self.self_attend(module, h, own),
            "cross_attention": lambda h: self.cross_attend(module, h, memory, other),
            "feed_forward": lambda h: self.feed(module, h),
        }
        for name in self.decoder_order():
            x = self.residual(module, self.norm_of(module, name), x, steps[name])
        return x

    def norm_of(self, module: Node, name: str) -> Node:
        """Return the norm of the sublayer `name`."""
        norm: Node = getattr(module, f"{name}_norm")
        return norm

    def sublayer_of(self, module: Node, name: str) -> Node:
        """Return the sublayer `name`."""
        sublayer: Node = getattr(module, name)
        return sublayer

    def self_attend(self, module: Node, x: Tensor, mask: Mask) -> Tensor:
        """Let x attend to itself."""
        sublayer = self.sublayer_of(module, "self_attention")
        return sublayer(*self.self_inputs(x), mask)

    def cross_attend(self, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
        """Let x attend to the memory."""
        sublayer = self.sublayer_of(module, "cross_attention")
        return sublayer(*self.cross_inputs(x, memory), mask)

    def feed(self, module: Node, x: Tensor) -> Tensor:
        """Apply the feed-forward network."""
        return self.sublayer_of(module, "feed_forward")(x)

    def self_inputs(self, x: Tensor) -> Inputs:
        """Return query, key and value of self-attention."""
        return x, x, x

    def cross_inputs(self, x: Tensor, memory: Tensor) -> Inputs:
        """Return query, key and value of the attention to the memory."""
        return x, memory, memory

    def encoder_mask(self, mask: Mask) -> Mask:
        """Return the mask of the encoder's self-attention."""
        return mask

    def self_mask(self, source_mask: Mask, target_mask: Mask) -> Mask:
        """Return the mask of the decoder's self-attention."""
        return target_mask

    def cross_mask(self, source_mask: Mask, target_mask: Mask) -> Mask:
        """Return the mask of the attention to the memory."""
        return source_mask


class StackHooks(LayerHooks):
    """A stack of layers, and its final norm where there is one."""

    def make_layers(self, build: Callable[[], nn.Module], count: int) -> nn.Module:
        """Build `count` layers, each on its own, in a container that registers them."""
        return nn.ModuleList([build() for _ in range(count)])

    def make_final_norm(self) -> Node | None:
        """Build the norm that ends a stack where that is chosen."""
        return self.make_chosen_norm() if self.choices.final_norm == "present" else None

    def make_encoder(self) -> Node:
        """Build the encoder."""
        self.check_sizes("layers")
        norm = self.shared_norm()
        layers = self.make_layers(lambda: self.make_encoder_layer(norm), self.sizes.layers)
        return Node(self, "encoder", layers=layers, norm=self.make_final_norm())

    def make_decoder(self) -> Node:
        """Build the decoder."""
        self.check_sizes("layers")
        norm = self.shared_norm()
        layers = self.make_layers(lambda: self.make_decoder_layer(norm), self.sizes.layers)
        return Node(self, "decoder", layers=layers, norm=self.make_final_norm())

    def encoder(self, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
        """Apply the encoder's layers to x (B, S, D)."""
        return self.run_stack(module, x, lambda layer, h: layer(h, mask))

    def decoder(
        self,
        module: Node,
        x: Tensor,
        memory: Tensor,
        source_mask: Mask = None,
        target_mask: Mask = None,
    ) -> Tensor:
        """Apply the decoder's layers to x (B, T, D), all with one memory."""
        return self.run_stack(
            module, x, lambda layer, h: layer(h, memory, source_mask, target_mask)
        )

    def layers_of(self, module: Node) -> Iterable[Node]:
        """Return the layers in the order they are applied."""
        return list(module.layers)

    def run_stack(self, module: Node, x: Tensor, step: Callable[[Node, Tensor], Tensor]) -> Tensor:
        """Apply `step` with every layer in turn, then the final norm."""
        for layer in self.layers_of(module):
            x = step(layer, x)
        return self.finish_stack(module, x)

    def finish_stack(self, module: Node, x: Tensor) -> Tensor:
        """Apply the norm that ends the stack, where there is one."""
        return x if module.norm is None else module.norm(x)
