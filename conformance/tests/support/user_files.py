"""Files as users write them, for tests of targets."""

import textwrap
from pathlib import Path


def write_files(folder: Path, **files: str) -> Path:
    """Write `files` into `folder`, `__` in a name for a slash, and return the folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/').replace('/init', '/__init__')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder
