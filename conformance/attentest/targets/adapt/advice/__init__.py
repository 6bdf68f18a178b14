"""Options that may answer a question, tried before it is asked."""
