"""The Annotated Transformer's design: closures over sublayers, pre-norm, deep copies."""
