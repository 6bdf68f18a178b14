"""The tools that checks are written with: drawn inputs, assertions, calls, gradients."""
