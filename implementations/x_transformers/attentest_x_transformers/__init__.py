"""x-transformers as backends, made of the library's own parts."""

from attentest_x_transformers.decoders import of_decoder

__all__ = ["of_decoder"]
