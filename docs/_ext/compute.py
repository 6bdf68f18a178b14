"""The directive `compute`: runs lines of NumPy when the pages are built and draws one result.

    ```{compute} scores
    :rows: the cat sat
    :columns: the cat sat

    scores = query @ key.swapaxes(-1, -2) / np.sqrt(d_k)
    ```

All directives of a page share one namespace, which begins with NumPy and the spec: a page is one
program in pieces. The array named by the argument is drawn, one panel for each head. `rows` and
`columns` label its last two axes. `reference` names an expression; the build fails where the array
differs from its value, so that a page cannot teach another Transformer than the spec describes.
"""

from typing import Any

import numpy as np
from docutils import nodes
from matrices import by_sign, drawing
from sphinx.util.docutils import SphinxDirective

import attentest_spec

TOLERANCE = 1e-12
_PAGES: dict[str, dict[str, Any]] = {}


class Compute(SphinxDirective):
    """Run the lines, compare the result with the reference, and draw it."""

    required_arguments = 1
    has_content = True
    option_spec = {"rows": str, "columns": str, "reference": str}  # noqa: RUF012  # as docutils expects

    def run(self) -> list[nodes.Node]:
        """Return the code, the shape of the result and its picture."""
        names = _PAGES.setdefault(self.env.docname, {"np": np, **vars(attentest_spec)})
        name, code = self.arguments[0], "\n".join(self.content)
        try:
            exec(code, names)
            values = np.asarray(names[name])
            if reference := self.options.get("reference"):
                difference = float(np.abs(values - eval(reference, names)).max())
                if not difference <= TOLERANCE:
                    raise ValueError(f"{name} differs by {difference:.3g} from {reference}")
            labels = [self.options.get(axis, "").split() for axis in ("rows", "columns")]
            heads = [f"head {number + 1}" for number in range(values[0].shape[0])]
            titles = heads if values.ndim == 4 and len(heads) > 1 else []
            picture = drawing(values, by_sign(values), *labels, titles)
        except Exception as failure:
            raise self.error(f"{code}: {failure}") from failure
        text = f"{code}\n# {name}: shape {values.shape}"
        block = nodes.literal_block(text, text, language="python")
        return [block, nodes.raw("", picture, format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("compute", Compute)
    return {"parallel_read_safe": True}
