"""The report: one page out of runs and result files, and what changed between two runs."""

from attentest.extra import Missing
from attentest.report.changes import Change, Changes, Unrelated, changes
from attentest.report.material import Material, read
from attentest.report.page import page
from attentest.report.runs import Run

__all__ = [
    "Change",
    "Changes",
    "Material",
    "Missing",
    "Run",
    "Unrelated",
    "changes",
    "page",
    "read",
]
