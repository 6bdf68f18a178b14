"""Questions about whole models, and when they are asked."""
