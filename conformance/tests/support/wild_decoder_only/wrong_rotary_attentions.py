"""Attention with mistakes in its rotary positions."""

from rotary_attentions import BufferedRotaryAttention, rotate_half


class ValuesTurnedAttention(BufferedRotaryAttention):
    """Values are turned, too."""

    def turn(self, q, k, v, cos, sin):
        return tuple(one * cos + rotate_half(one) * sin for one in (q, k, v))


class KeysNotTurnedAttention(BufferedRotaryAttention):
    """Keys are as they were projected."""

    def turn(self, q, k, v, cos, sin):
        return q * cos + rotate_half(q) * sin, k, v


class MixedPairsAttention(BufferedRotaryAttention):
    """A table for adjacent pairs is applied to halves."""

    def angles(self, length, x):
        cos, sin = super().angles(length, x)
        half = cos.shape[-1] // 2
        return tuple(one[:, :half].repeat_interleave(2, dim=-1) for one in (cos, sin))
