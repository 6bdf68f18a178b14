"""Settings of the documentation; whatever the code contains is generated and never pasted."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import comparison_page  # noqa: E402  # a module of _ext
import families_page  # noqa: E402  # a module of _ext
import library_page  # noqa: E402  # a module of _ext
import mistake_pages  # noqa: E402  # a module of _ext
import pages  # noqa: E402  # a module of _ext

project = "attentest"
author = copyright = "attentest contributors"
version = release = pages.version()

extensions = ["myst_parser", "formulas", "reading"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext", "examples"]
html_theme = "furo"
html_math_renderer = "outline"
html_title = f"attentest {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sphinx = False
nitpicky = True


def setup(app):
    """Write the generated pages before Sphinx looks for sources."""
    app.connect("builder-inited", lambda app: pages.write(HERE.parent, HERE / "generated"))
    app.connect("builder-inited", lambda app: mistake_pages.write(HERE / "generated" / "mistakes"))
    app.connect("builder-inited", lambda app: library_page.write(HERE.parent, HERE / "generated"))
    app.connect("builder-inited", lambda app: families_page.write(HERE.parent, HERE / "generated"))
    app.connect("builder-inited", lambda app: comparison_page.write(HERE / "generated"))
