"""The suite: a module or package per chapter, a check per clause, no backend named anywhere."""
