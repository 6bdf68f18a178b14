"""x-transformers as a backend, made of the library's own parts."""
