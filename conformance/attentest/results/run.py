"""The record of a run: each backend with its description and its verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attentest.results.verdict import Verdict


@dataclass
class Judged:
    """What came out for one target: what the backend says of itself, and its verdicts.

    `measured` holds statements that are told and not judged; `failure` is the reason why it could
    not be loaded, "" where it was.
    """

    target: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    measured: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
