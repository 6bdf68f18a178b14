"""x-transformers as an implementation of the spec: a backend of the library's own parts."""
