"""The tables of a whole model: its parameter map, its positions and its vocabularies."""
