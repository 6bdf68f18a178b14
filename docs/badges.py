"""Writes the badges of the suite's own score, and their place in README.md.

Run by `tox -e badges` on what `attentest faults --json FILE` wrote.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markers import between

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("docs/_static/badges")


def main() -> None:
    """Write both badges; a score that is not perfect shows in red and ends with an error."""
    import anybadge  # here, so that the words can be tested where it is not installed

    score = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    shown = badges(score)
    folder = ROOT / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, (label, value, good) in shown.items():
        badge = anybadge.Badge(label, value, default_color="green" if good else "red")
        (folder / f"{name}.svg").write_text(badge.badge_svg_text, encoding="utf-8")
    between(ROOT / "README.md", "badges", in_words(shown))
    sys.exit(0 if all(good for _, _, good in shown.values()) else 1)


def badges(score: Mapping[str, Any]) -> dict[str, tuple[str, str, bool]]:
    """Return label, value and whether it is good, of each badge by its name.

    Raises ValueError for a score of some faults, or without the zoo.
    """
    from attentest.faults import faults
    from attentest.faults.unusual import UNUSUAL

    tried = {*score["killed"], *score["survived"]}
    if tried != set(faults()) or set(score["zoo"]) != set(UNUSUAL):
        raise ValueError(
            f"The score is of {len(tried)} faults and {len(score['zoo'])} sound oddities, not of "
            f"all {len(faults())} and {len(UNUSUAL)}; run attentest faults without a selection."
        )
    seeds = len(score["seeds"])
    kills, alarms = len(score["killed"]), len(score["false alarms"])
    over = f"over {seeds} seeds" if seeds > 1 else "with one seed"
    wrong = score["survived"] or score["spurious"] or score["idle clauses"]
    return {
        "kills": ("planted faults killed", f"{kills} of {len(tried)} {over}", not wrong),
        "alarms": ("false alarms", f"{alarms} on {len(UNUSUAL)} sound oddities {over}", not alarms),
    }


def in_words(shown: Mapping[str, tuple[str, str, bool]]) -> str:
    """Return the Markdown that shows the badges, with what they say for those who cannot see."""
    return "\n".join(
        f"![{label}: {value}]({FOLDER.as_posix()}/{name}.svg)"
        for name, (label, value, _) in shown.items()
    )


if __name__ == "__main__":
    main()
