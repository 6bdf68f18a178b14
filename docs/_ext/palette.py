"""The colours of all drawings of the documentation; each has one meaning."""

KEEP, HIDDEN = "#8fd3c0", "#e3e1dc"
"""What a query may attend to, and what is hidden from it or is not a number."""

POSITIVE, NEGATIVE = "#4393c3", "#d6604d"
"""Numbers above zero, and below."""

INK, PAPER = "#1d1d1b", "#ffffff"
"""Letters, and what is behind them."""
