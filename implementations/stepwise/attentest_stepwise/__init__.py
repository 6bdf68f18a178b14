"""The course design: a Transformer in five explicit steps, post-norm, raw logits."""
