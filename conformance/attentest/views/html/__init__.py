"""The report: one page out of runs and result files, and what changed between two runs."""

from attentest.results.changes import Change, Changes, Unrelated, changes
from attentest.results.optional import Missing
from attentest.results.run import Run
from attentest.views.html.material import Material, read
from attentest.views.html.page import page

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
