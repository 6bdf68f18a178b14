"""Long lines of a written adapter, broken as a formatter would."""

WIDTH = 88


def folded(line: str) -> str:
    """Return `line` with one argument of its outermost call a line, where it is too long."""
    start = line.find("(")
    if len(line) <= WIDTH or start < 0 or not line.rstrip().endswith(")"):
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    parts, depth, last = [], 0, start + 1
    body_end = len(line.rstrip()) - 1
    for at in range(start + 1, body_end):
        depth += (line[at] in "([{") - (line[at] in ")]}")
        if depth < 0:
            return line
        if line[at] == "," and depth == 0:
            parts.append(line[last:at].strip())
            last = at + 1
    parts.append(line[last:body_end].strip())
    rows = [folded(f"{indent}    {one}") + "," for one in parts if one]
    return "\n".join([line[: start + 1], *rows, f"{indent})"])
