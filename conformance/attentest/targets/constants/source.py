"""Numbers in the source of a file: which of them have names, and others in their place.

`Constants` and `computed_numbers` need nothing else of the suite.
"""

import ast
import dis
from collections.abc import Collection, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class Constants(ast.NodeTransformer):
    """Replaces the numbers in a source by `values`, and notes in `found` those that have names.

    A number has a name where a file or a class assigns it, where it is a default, a keyword, a
    value in a dictionary, an attribute of self, or the default of an option of a command; the
    second argument of torch's own layers is called nhead, that of its stacks num_layers. Values
    without a keyword have the names of the arguments, where a class of the file is called. How
    often a list of modules repeats one of the classes of a file, by a loop or written out, is
    called layers_in_a_list.
    """

    listed = "layers_in_a_list"
    axes = 6

    def __init__(
        self, values: dict[str, Any], found: dict[str, Any], computed: Collection[str] = ()
    ) -> None:
        self.values, self.found, self.local = values, found, False
        self.computed = computed
        self.taken: dict[str, list[str]] = {}

    def number(self, name: str, node: Any) -> Any:
        """Return the node of the number called `name`, another one where `values` has it."""
        if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
            return node
        self.found.setdefault(name, node.value)
        return ast.copy_location(ast.Constant(self.values.get(name, node.value)), node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Look at a number that is a size wherever it is written: 512 is called number_512."""
        name = f"number_{node.value}" if type(node.value) is int else ""
        if name not in self.values:
            return node
        return ast.copy_location(ast.Constant(self.values[name]), node)

    def repeated(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """Return the items of a list of modules with another number of those that are equal."""
        made: list[ast.expr] = []
        while nodes:
            own = ast.dump(nodes[0])
            alike = [one for one in nodes if ast.dump(one) == own]
            several = len(alike) > 1 and nodes[: len(alike)] == alike and self.is_layer(nodes[0])
            if not several:
                made.append(nodes[0])
                nodes = nodes[1:]
                continue
            nodes = nodes[len(alike) :]
            self.found.setdefault(self.listed, len(alike))
            if self.listed not in self.values:
                made += alike
                continue
            text = f"[*(0 for _ in range({self.values[self.listed]}))]"
            inner = ast.parse(text, mode="eval").body.elts[0]  # type: ignore[attr-defined]
            inner.value.elt = alike[0]
            made.append(inner)
        return made

    @staticmethod
    def is_layer(node: ast.AST) -> bool:
        """Say whether a call makes an object of a class that is no head and no expert."""
        called = node.func if isinstance(node, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else ""
        return name[:1].isupper() and not any(one in name.lower() for one in ("head", "expert"))

    def listing(self, node: ast.Call) -> None:
        """Look at the items of a list of modules."""
        if len(node.args) == 1 and isinstance(node.args[0], ast.List):
            node.args[0].elts = self.repeated(node.args[0].elts)
        node.args = self.repeated(node.args)
        for one in node.args:
            made = one.value if isinstance(one, ast.Starred) else one
            if isinstance(made, ast.ListComp | ast.GeneratorExp) and self.is_layer(made.elt):
                self.over(made.generators[0].iter)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Note the arguments of the classes of the file."""
        for one in [one for one in ast.walk(node) if isinstance(one, ast.ClassDef)]:
            for made in one.body:
                if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                    self.taken[one.name] = [own.arg for own in made.args.args[1:]]
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        """Look at a loop that appends layers."""
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        appends = any(getattr(one.func, "attr", "") in ("append", "add_module") for one in calls)
        if appends and any(map(self.is_layer, calls)):
            self.over(node.iter)
        return self.generic_visit(node)

    def over(self, node: ast.expr) -> None:
        """Look at what a loop over layers counts to."""
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range":
            node.args[-1:] = [self.number(self.listed, one) for one in node.args[-1:]]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Look at the defaults, and at what is no variable of the function."""
        own = node.args
        for held, defaults in (
            ((own.posonlyargs + own.args)[::-1], own.defaults),
            (own.kwonlyargs[::-1], own.kw_defaults),
        ):
            pairs = zip((one.arg for one in held), defaults[::-1], strict=False)
            made = [self.number(*pair) for pair in pairs]
            defaults[:] = made[::-1]
        before, self.local = self.local, True
        self.generic_visit(node)
        self.local = before
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Look at an assignment."""
        for one in node.targets:
            if isinstance(one, ast.Name) and not self.local:
                node.value = self.number(one.id, node.value)
                if one.id in self.computed and one.id in self.values:
                    node.value = ast.copy_location(ast.Constant(self.values[one.id]), node)
            elif isinstance(one, ast.Attribute):
                node.value = self.number(one.attr, node.value)
            elif isinstance(one, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(one.elts, node.value.elts, strict=False)
                named = not self.local and len(one.elts) == len(node.value.elts)
                node.value.elts = [
                    self.number(a.id, b) if named and isinstance(a, ast.Name) else b
                    for a, b in pairs
                ]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Look at an assignment with an annotation."""
        if isinstance(node.target, ast.Name) and not self.local:
            node.value = self.number(node.target.id, node.value)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Look at what a dictionary holds that the file does not write out."""
        key = getattr(node.slice, "value", None)
        if key in self.computed and key in self.values and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Constant(self.values[key]), node)
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Look at the values of a dictionary, but for one that numbers words."""
        values = [getattr(one, "value", None) for one in node.values]
        if len(values) > 2 and sorted(map(repr, values)) == sorted(map(repr, range(len(values)))):
            return self.generic_visit(node)
        node.values = [
            self.number(key.value, one)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
            else one
            for key, one in zip(node.keys, node.values, strict=True)
        ]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Look at the keywords of a call, at options of commands, and at layers of torch."""
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        option = [getattr(one, "value", None) for one in node.args if called == "add_argument"]
        for one in node.keywords:
            name = one.arg or ""
            if name == "default" and option and isinstance(option[-1], str):
                name = option[-1].lstrip("-").replace("-", "_")
            if name == "dim" and getattr(one.value, "value", None) in range(self.axes):
                continue  # an axis of a tensor, as softmax has it
            one.value = self.number(name, one.value)
        for place, name in enumerate(self.taken.get(called, ())[: len(node.args)]):
            node.args[place] = self.number(name, node.args[place])
        if called in ("ModuleList", "Sequential"):
            self.listing(node)
        layers = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer")
        if called in layers and len(node.args) > 1:
            node.args[1] = self.number("nhead", node.args[1])
        stacks = ("nn.TransformerEncoder", "nn.TransformerDecoder")
        if ast.unparse(node.func) in stacks and len(node.args) > 1:
            node.args[1] = self.number("num_layers", node.args[1])
        return self.generic_visit(node)


LACKING = 64
"""A number in the place of one that a file does not have where it is imported."""


def keys_of_files(tree: ast.Module) -> list[str]:
    """Return the keys that constructors look up where they load a file of settings themselves."""
    loads = ("safe_load", "full_load", "load", "loads")
    found: list[str] = []
    for made in ast.walk(tree):
        is_own = isinstance(made, ast.FunctionDef) and made.name == "__init__"
        nodes = list(ast.walk(made)) if is_own else []
        calls = [one.func for one in nodes if isinstance(one, ast.Call)]
        names = [(ast.unparse(one).partition(".")[0], getattr(one, "attr", "")) for one in calls]
        if any(a in ("yaml", "json", "toml", "tomllib") and b in loads for a, b in names):
            slices = [one.slice for one in nodes if isinstance(one, ast.Subscript)]
            keys = [one.value for one in slices if isinstance(one, ast.Constant)]
            found += [one for one in keys if type(one) is str]
    return found


def computed_numbers(tree: ast.Module, held: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that a file gets from calls, attributes and keys, as from `len(words)`.

    `held` are the names of its module. Those that follow from other numbers of it are none. Of a
    dictionary that a call returns, as of one in a file, numbers are found whose keys are written.
    """
    found: dict[str, Any] = dict.fromkeys(keys_of_files(tree), LACKING)
    reads = (ast.Call, ast.Attribute, ast.Subscript)
    opened = [one for node in tree.body if isinstance(node, ast.With) for one in node.body]
    assigned = [one for one in [*tree.body, *opened] if isinstance(one, ast.Assign)]
    made = [one for one in assigned if isinstance(one.value, ast.Call)]
    names = [getattr(target, "id", "") for one in made for target in one.targets]
    inside = [held[name] for name in names if type(held.get(name)) is dict]
    taken = [
        getattr(one.slice, "value", "") for one in ast.walk(tree) if type(one) is ast.Subscript
    ]
    keys = [one for one in dict.fromkeys(taken) if type(one) is str] if inside else []
    for one in inside:
        values = {key: value for key, value in one.items() if type(key) is str and key in keys}
        inside += [value for value in values.values() if type(value) is dict]
        own = {key: value for key, value in values.items() if type(value) in (int, float)}
        found = {**own, **found}
    for node in assigned:
        inner = list(ast.walk(node.value))
        read = {one.id for one in inner if isinstance(one, ast.Name)}
        numbers = [one for one in read if type(held.get(one)) in (int, float)]
        measured = any(isinstance(one, reads) for one in inner)
        for one in node.targets:
            name = getattr(one, "id", "")
            if measured and not numbers and type(held.get(name)) is int:
                found[name] = held[name]
    return found


def numbers_of_calls(home: ModuleType) -> dict[str, Any]:
    """Return the numbers that a module gets from calls, and those that its classes lack.

    A name that is assigned where the file is run as a script alone, or by a statement that fails,
    is lacking; a size may be given in its place.
    """
    try:
        tree = ast.parse(Path(str(home.__file__)).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    held = vars(home)
    return {**computed_numbers(tree, held), **dict.fromkeys(lacking(tree, held), LACKING)}


def lacking(tree: ast.Module, held: Collection[str]) -> list[str]:
    """Return the names that the classes of a file read and that it assigns, but does not hold.

    They are assigned where the file is run as a script alone, or by a statement that fails, as an
    import of a name that another file gets from its data.
    """
    nodes = list(ast.walk(tree))
    stored = {
        one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    imports = [one for one in nodes if isinstance(one, ast.ImportFrom)]
    stored |= {name.asname or name.name for one in imports for name in one.names}
    classes = ast.Module([one for one in tree.body if isinstance(one, ast.ClassDef)], [])
    read = {*_globals(compile(classes, "", "exec"))}
    return sorted((stored & read) - {*held})


def _globals(code: CodeType) -> Iterator[str]:
    """Yield the names of its file that the functions of a code read."""
    yield from (one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals(inner)
