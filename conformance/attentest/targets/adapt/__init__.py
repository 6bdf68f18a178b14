"""Code that was not written for the contract, read and put behind it."""

from attentest.targets.adapt.reading import Reading, Unclear

__all__ = ["Reading", "Unclear"]
