"""Whole models around a table of positions that is computed in float32."""

from positions import BaseOfAThousand, ByExponentialOfLogarithm
from stacks import Transformer


class TransformerInDouble(Transformer):
    """A model of any precision whose table was computed in float32."""

    def __init__(
        self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff, max_seq_length
    ):
        sizes = src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff
        super().__init__(*sizes, max_seq_length, dropout=0.0)
        self.positions = ByExponentialOfLogarithm(d_model, max_seq_length)


class TransformerOfAnotherBase(TransformerInDouble):
    def __init__(
        self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff, max_seq_length
    ):
        sizes = src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff
        super().__init__(*sizes, max_seq_length)
        self.positions = BaseOfAThousand(d_model, max_seq_length)
