"""Calls of an RMS norm."""

from functools import partial

from attentest.testing.norm_calls import draw_norm_call

draw_call = partial(draw_norm_call, component="rms_norm")
"""Draw a call of an RMS norm; see :func:`~attentest.testing.norm_calls.draw_norm_call`."""
