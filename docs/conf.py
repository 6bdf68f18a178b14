"""Settings of the documentation; what can be read from the code is generated, never pasted."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import gallery  # noqa: E402  # it stands in _ext
import pages  # noqa: E402  # it stands in _ext
import real  # noqa: E402  # it stands in _ext
import sides  # noqa: E402  # it stands in _ext

project = "attentest"
author = copyright = "attentest contributors"
version = release = pages.version()

extensions = ["myst_parser", "drawn", "formulas", "shell"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext", "examples"]
html_theme = "furo"
html_math_renderer = "drawn"
html_title = f"attentest {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sphinx = False
nitpicky = True


def setup(app):
    """Write the generated pages before Sphinx looks for sources."""
    app.connect("builder-inited", lambda app: pages.write(HERE.parent, HERE / "generated"))
    app.connect("builder-inited", lambda app: gallery.write(HERE / "generated" / "mistakes"))
    app.connect("builder-inited", lambda app: real.write(HERE.parent, HERE / "generated"))
    app.connect("builder-inited", lambda app: sides.write(HERE / "generated"))
