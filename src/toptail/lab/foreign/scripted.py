"""TorchScript, checked and written anew before PyTorch loads it.

PyTorch runs parts of such a file while it loads it (default arguments, constants,
``__setstate__``), and any operator may stand there. So the code, which is a subset of Python, is
parsed here first, and only arithmetic is let in. PyTorch is then given an archive written from
what was checked, so that no second way to read the file matters.
"""

from __future__ import annotations

import ast
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toptail.lab.foreign.operators import is_allowed
from toptail.lab.foreign.torch_files import read_tensors, root_of
from toptail.pools.guard import check_unpacked

_SYNTAX: Final = (
    *(ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.keyword),
    *(ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.Pass, ast.If, ast.For, ast.While),
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.Constant, ast.List),
    *(ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Load, ast.Store),
)
_ROOTS: Final = frozenset(("torch", "ops", "__torch__", "CONSTANTS"))
_CALLED: Final = frozenset(
    ("annotate", "getattr", "isinstance", "unchecked_cast", "uninitialized", "range")
)
_KNOWN: Final = frozenset(
    (
        *("Any", "Device", "Dict", "Final", "List", "Module", "NamedTuple", "NoneType", "Optional"),
        *("Scalar", "Tensor", "Tuple", "Union", "__annotations__", "bool", "complex", "float"),
        *("inf", "int", "nan", "number", "str"),
    )
)
"""Types and constants of TorchScript, and what numbers are made by."""
_LOUD: Final = frozenset(("print", "fork", "awaitable", "rpc_async", "rpc_remote", "rpc_sync"))
"""What TorchScript knows besides, and no code may call or define."""
_OF_PRIM: Final = frozenset(
    (
        *("NumToTensor", "RaiseException", "data", "device", "dtype", "is_nested", "layout"),
        *("max", "min", "requires_grad", "type", "unchecked_unwrap_optional"),
    )
)
_KEPT: Final = ("version", ".data/version", "byteorder", "data.pkl", "constants.pkl")

IsOperator = Callable[[str], bool]
"""Whether PyTorch has an operator of a name."""


def written_anew(path: Path, is_operator: IsOperator) -> bytes:
    """An archive of TorchScript with its code and tensors checked, and nothing else in it."""
    target = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w") as copy:
        check_unpacked(path, sum(member.file_size for member in archive.infolist()))
        root = root_of(archive)
        for index in ("data", "constants"):
            read_tensors(archive, f"{root}{index}", path)
        for name in dict.fromkeys(archive.namelist()):
            inner = name.removeprefix(root)
            if inner in _KEPT or inner.startswith(("data/", "constants/")):
                copy.writestr(f"archive/{inner}", archive.read(name))
            elif inner.startswith("code/") and inner.endswith(".py"):
                code = checked_code(archive.read(name).decode("ascii"), is_operator)
                copy.writestr(f"archive/{inner}", code)
    return target.getvalue()


def checked_code(text: str, is_operator: IsOperator) -> str:
    """The same code without warnings; raises where it asks for more than arithmetic."""
    tree = _Silent().visit(ast.parse(text))
    nodes = list(ast.walk(tree))
    defined = {name for node in nodes for name in _defined(node)}
    if wrong := defined & (_ROOTS | _CALLED | _LOUD):
        raise ValueError(f"its code defines '{min(wrong)}'")
    for node in nodes:
        if not isinstance(node, _SYNTAX):
            raise ValueError(f"its code has a part of the kind {type(node).__name__}")
        if isinstance(node, ast.Name) and node.id not in _ROOTS | _CALLED | _KNOWN | defined:
            raise ValueError(f"its code uses '{node.id}'")
        if isinstance(node, ast.Attribute):
            _check_name(_dotted(node), is_operator)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            _check_name(["", str(getattr(node.args[1], "value", None))], is_operator)
        elif isinstance(node, ast.Constant) and not isinstance(
            node.value, str | float | int | None
        ):
            raise ValueError(f"its code has a {type(node.value).__name__}")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Silent(ast.NodeTransformer):
    """Leaves out warnings, which would reach the terminal, and texts that do nothing."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        value = node.value
        warns = isinstance(value, ast.Call) and _dotted(value.func) == ["torch", "warn"]
        return ast.Pass() if warns or isinstance(value, ast.Constant) else node


def _defined(node: ast.AST) -> list[str]:
    """The name that a node gives to something."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    return [node.arg] if isinstance(node, ast.arg) else []


def _dotted(node: ast.expr) -> list[str]:
    """The parts of ``a.b.c``; the first is empty where it is no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *parts]


def _check_name(parts: list[str], is_operator: IsOperator) -> None:
    """Raise unless it is an operator that is let in, something of the archive, or an attribute."""
    root, *inner = parts
    if root == "torch":
        fine = len(inner) == 1 and is_allowed(inner[0])
    elif root == "ops":
        fine = inner[0] == "prim" and set(inner[1:]) <= _OF_PRIM
    elif root == "__torch__":  # the archive's own; but torch.classes are compiled ones
        fine = inner[:2] != ["torch", "classes"]
    else:  # of a value: an attribute, a method, or an operator
        fine = is_allowed(inner[-1]) or not is_operator(inner[-1])
    if not fine:
        raise ValueError(f"its code uses {'.'.join(filter(None, parts))}, which is not let in")
