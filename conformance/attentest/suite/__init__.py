"""The suite: one module per chapter, one check per clause, no backend named anywhere."""
