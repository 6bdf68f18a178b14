"""Several backends compared: numbers, cost, learning; and weights and vectors exported."""
