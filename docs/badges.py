"""Writes the badges with the score of the suite, and links to them in README.md.

Run by `tox -e badges` on the output of `attentest faults --json FILE`.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markers import write_between

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("docs/_static/badges")


def main() -> None:
    """Write both badges; a score that is not perfect is red and ends with exit status 1."""
    import anybadge  # here, so that the texts can be tested without it

    score = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    shown = badges(score)
    folder = ROOT / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, (label, value, good) in shown.items():
        badge = anybadge.Badge(label, value, default_color="green" if good else "red")
        (folder / f"{name}.svg").write_text(badge.badge_svg_text, encoding="utf-8")
    write_between(ROOT / "README.md", "badges", images(shown))
    sys.exit(0 if all(good for _, _, good in shown.values()) else 1)


def badges(score: Mapping[str, Any]) -> dict[str, tuple[str, str, bool]]:
    """Return the label, the value and whether it is good, of each badge by its name.

    Raises ValueError for a score of a part of the faults or of the unusual but correct code.
    """
    from attentest.faults import faults
    from attentest.faults.unusual import UNUSUAL

    tried = {*score["killed"], *score["survived"]}
    if tried != set(faults()) or set(score["zoo"]) != set(UNUSUAL):
        raise ValueError(
            f"The score is of {len(tried)} faults and {len(score['zoo'])} unusual but "
            f"correct implementations, not of all {len(faults())} and {len(UNUSUAL)}; run "
            "attentest faults without a selection."
        )
    seeds = len(score["seeds"])
    detected, alarms = len(score["killed"]), len(score["false alarms"])
    unusual = f"{len(UNUSUAL)} unusual but correct implementations"
    over = f"over {seeds} seeds" if seeds > 1 else "with one seed"
    wrong = score["survived"] or score["spurious"] or score["idle clauses"]
    return {
        "detected": ("injected faults detected", f"{detected} of {len(tried)} {over}", not wrong),
        "alarms": ("false alarms", f"{alarms} on {unusual} {over}", not alarms),
    }


def images(shown: Mapping[str, tuple[str, str, bool]]) -> str:
    """Return the Markdown images of the badges, with text alternatives."""
    return "\n".join(
        f"![{label}: {value}]({FOLDER.as_posix()}/{name}.svg)"
        for name, (label, value, _) in shown.items()
    )


if __name__ == "__main__":
    main()
