"""What the package itself calls: nothing that runs code from data, but for what is named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import fathometer
from soak.security.trial import Point

ALLOWED = {
    (
        "capture/functions.py",
        "exec",
    ): "the text is made of a number and of names cell0, cell1, …; no user's text",
    (
        "models/user_code.py",
        "import_module",
    ): "imports what a user names as package.module:name",
    ("models/sources.py", "import_module"): "packages by constant names: timm, torchvision, transformers",
    ("models/torchvision_operators.py", "import_module"): "torchvision, by its constant name",
    ("training/lightning.py", "import_module"): "lightning, by its constant names",
    ("report/page/bundle.py", "__import__"): "altair, jinja2, vl_convert, by constant names",
    ("models/weights.py", "import pickle"): "for the name of the error that torch.load raises",
}
"""File and call, and why it may stand there."""

_FORBIDDEN = {"eval", "exec", "__import__", "compile"}
_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml", "subprocess"}
_METHODS = {"import_module", "system", "popen", "run_module", "run_path", "unsafe_load"}


def no_call_runs_code_from_data() -> Point:
    """Every call and import in the package."""
    point = Point("no call in the package runs code from data")
    root = Path(fathometer.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for line, found in suspicious(ast.parse(path.read_text("utf-8"))):
            point.note((name, found) in ALLOWED, f"{name}, line {line}: {found}")
    return point


def suspicious(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of all that may run code, or unpickle."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((node.lineno, f"import {n}") for n in names if n.partition(".")[0] in _MODULES)
        if not isinstance(node, ast.Call):
            continue
        options = {o.arg: o.value.value for o in node.keywords if isinstance(o.value, ast.Constant)}
        called = node.func
        if options.get("shell") is True or options.get("trust_remote_code") is True:
            yield node.lineno, "shell or trust_remote_code"
        if isinstance(called, ast.Name) and called.id in _FORBIDDEN | _METHODS:
            yield node.lineno, called.id
        if not isinstance(called, ast.Attribute):
            continue
        owner = called.value.id if isinstance(called.value, ast.Name) else ""
        if called.attr in _METHODS:
            yield node.lineno, called.attr
        if owner == "torch" and called.attr == "load" and options.get("weights_only") is not True:
            yield node.lineno, "torch.load without weights_only=True"
        if called.attr == "load" and owner in ("np", "numpy") and options.get("allow_pickle") is not False:
            yield node.lineno, "numpy.load without allow_pickle=False"
        if called.attr in ("read_pickle", "to_pickle"):
            yield node.lineno, called.attr
