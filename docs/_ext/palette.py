"""The colours of all drawings of the documentation; each has one meaning."""

KEEP, HIDDEN = "#8fd3c0", "#e3e1dc"
"""Colours of positions that a query may attend to, of hidden ones, and of NaN."""

POSITIVE, NEGATIVE = "#4393c3", "#d6604d"
"""Numbers above zero, and below."""

INK, PAPER = "#1d1d1b", "#ffffff"
"""Letters, and what is behind them."""
