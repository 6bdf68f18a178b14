"""The input of a call of an encoder or decoder: its arguments, batches and lengths."""
