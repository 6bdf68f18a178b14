"""litgpt's decoder-only models as backends, made of their configurations."""

from attentest_litgpt.backend import of_config
from attentest_litgpt.reading import NotJudged

__all__ = ["NotJudged", "of_config"]
