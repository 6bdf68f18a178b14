"""Long lines of a written adapter, broken as a formatter would."""

import ast

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
    comma = "" if len(parts) == 1 and _is_generator(parts[0]) else ","
    rows = [folded(f"{indent}    {one}") + comma for one in parts if one]
    return "\n".join([line[: start + 1], *rows, f"{indent})"])


def _is_generator(argument: str) -> bool:
    """Say whether an argument is a generator without parentheses, which no comma may follow."""
    try:
        call = ast.parse(f"f({argument})", mode="eval").body
    except SyntaxError:
        return False
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return isinstance(first, ast.GeneratorExp) and not argument.startswith("(")
