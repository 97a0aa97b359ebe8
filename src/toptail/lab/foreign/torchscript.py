"""Modules that PyTorch saved with their code: TorchScript, and programs of ``torch.export``."""

from __future__ import annotations

import ast
import importlib
import io
import json
import operator
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.files import check_readable
from toptail.lab.foreign.networks import ForeignCritic, Rows
from toptail.lab.foreign.pickled import (
    Array,
    opened_archive,
    read_tensors,
    require_plausible,
    root_of,
    strided,
)

_TENSORS: Final = """
abs acos add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax any arange argmax argmin
argsort asin atan atan2 avg_pool1d avg_pool2d baddbmm bilinear bitwise_and bitwise_not bitwise_or
bitwise_xor bmm ceil celu clamp clamp_max clamp_min clip complex constant_pad_nd conv1d conv2d
convolution copysign cos cosh cosine_similarity cross cummax cummin cumprod cumsum diag diagonal
diff dist div divide dot dropout einsum elu embedding eq equal erf erfc erfinv exp exp2 expm1 eye
feature_dropout fill flip float_power floor floor_divide fmax fmin fmod frac full full_like gather
ge gelu glu greater greater_equal group_norm gt hardsigmoid hardswish hardtanh heaviside hypot index
index_add index_fill index_put index_select inner instance_norm isclose isfinite isinf isnan
kthvalue layer_norm le leaky_relu lerp less less_equal linalg_cross linalg_matrix_norm linalg_norm
linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid log_sigmoid_forward log_softmax
logaddexp logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt masked_fill
masked_scatter masked_select matmul max max_pool1d max_pool2d maximum mean median min minimum mish
mm mode mse_loss mul multiply mv nan_to_num nanmean nansum native_dropout native_layer_norm ne neg
negative nonzero norm one_hot ones ones_like outer pad pairwise_distance pow prelu prod
quantile reciprocal relu relu6 remainder renorm repeat_interleave rms_norm roll round rsqrt rsub
scaled_dot_product_attention scatter scatter_add searchsorted selu sgn sigmoid sign silu sin sinh
smooth_l1_loss softmax softplus softshrink sort sqrt square std std_mean sub subtract sum take
take_along_dim tan tanh tensordot threshold topk trace tril triu true_divide trunc var var_mean vdot
where xlogy zero zeros zeros_like batch_norm cdist _cdist_forward _convolution _log_softmax _softmax
"""
_SHAPES: Final = """
alias atleast_1d atleast_2d broadcast_tensors broadcast_to cat chunk clone column_stack concat
concatenate contiguous copy detach detach_copy dim dstack expand expand_as flatten hstack
is_contiguous is_floating_point item lift_fresh lift_fresh_copy meshgrid movedim narrow new_full
new_ones new_zeros numel permute ravel repeat reshape reshape_as resolve_conj
resolve_neg result_type scalar_tensor select size slice split split_with_sizes squeeze stack stride
swapaxes swapdims sym_numel sym_size t tensor tensor_split tile to transpose type_as unbind
unflatten unsqueeze unsafe_chunk unsafe_split unsafe_split_with_sizes view view_as vstack
_to_copy _unsafe_view _shape_as_tensor _assert_async _assert_scalar
_assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size device cpu data grad
"""
_NUMBERS_AND_LISTS: Final = """
__and__ __contains__ __derive_index __getitem__ __is__ __isnot__ __not__ __or__ __range_length
__xor__ Bool Float FloatImplicit Int IntImplicit ScalarImplicit append as_tensor center clear count
degrees dict extend find floordiv format gamma get index indices insert is_autocast_enabled
is_grad_enabled is_scripting items join keys
len list pop range reverse sorted str update values
"""

OPERATORS: Final = frozenset(f"{_TENSORS} {_SHAPES} {_NUMBERS_AND_LISTS}".split())
"""Names of allowed operators, with all their overloads: arithmetic, shapes, lists; no files."""


def is_allowed(name: str) -> bool:
    """Whether an operator, ``add``, or its variant in place, ``add_``, is allowed."""
    return name in OPERATORS or (name.endswith("_") and name[:-1] in OPERATORS)


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
"""Types and constants of TorchScript, and conversions to numbers."""
_FORBIDDEN: Final = frozenset(("print", "fork", "awaitable", "rpc_async", "rpc_remote", "rpc_sync"))
"""Functions of TorchScript that no code may call or define."""
_OF_PRIM: Final = frozenset(
    (
        *("NumToTensor", "RaiseException", "data", "device", "dtype", "is_nested", "layout"),
        *("max", "min", "requires_grad", "type", "unchecked_unwrap_optional"),
    )
)
_COPIED: Final = ("version", ".data/version", "byteorder", "data.pkl", "constants.pkl")

IsOperator = Callable[[str], bool]
"""Whether PyTorch has an operator of a name."""


def checked_copy(path: Path, is_operator: IsOperator) -> bytes:
    """A copy of a TorchScript archive that has its checked code and tensors, and nothing else."""
    target = io.BytesIO()
    with (
        opened_archive(path, path.stat().st_size) as archive,
        zipfile.ZipFile(target, "w") as copy,
    ):
        root = root_of(archive)
        for index in ("data", "constants"):
            read_tensors(archive, f"{root}{index}", path)
        for name in dict.fromkeys(archive.namelist()):
            inner = name.removeprefix(root)
            if inner in _COPIED or inner.startswith(("data/", "constants/")):
                copy.writestr(f"archive/{inner}", archive.read(name))
            elif inner.startswith("code/") and inner.endswith(".py"):
                code = checked_code(archive.read(name).decode("ascii"), is_operator)
                copy.writestr(f"archive/{inner}", code)
    return target.getvalue()


def checked_code(text: str, is_operator: IsOperator) -> str:
    """The same code without warnings; raises where it does more than arithmetic."""
    tree = _WithoutWarnings().visit(ast.parse(text))
    nodes = list(ast.walk(tree))
    defined = {name for node in nodes for name in _defined(node)}
    if wrong := defined & (_ROOTS | _CALLED | _FORBIDDEN):
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


class _WithoutWarnings(ast.NodeTransformer):
    """Removes warnings, which would be printed, and bare strings."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        value = node.value
        warns = isinstance(value, ast.Call) and _dotted(value.func) == ["torch", "warn"]
        return ast.Pass() if warns or isinstance(value, ast.Constant) else node


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    return [node.arg] if isinstance(node, ast.arg) else []


def _dotted(node: ast.expr) -> list[str]:
    """The parts of ``a.b.c``; the first is empty for an expression that is no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *parts]


def _check_name(parts: list[str], is_operator: IsOperator) -> None:
    """Raise unless it is an allowed operator, defined in the archive, or an attribute."""
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
        raise ValueError(f"its code uses {'.'.join(filter(None, parts))}, which is not allowed")


_ATEN: Final = "torch.ops.aten."
_OF_SIZES: Final = (
    *("add", "sub", "mul", "neg", "floordiv", "mod", "truediv", "eq", "ne", "lt", "le", "gt", "ge"),
)
"""Functions of Python's ``operator`` that may be applied to sizes."""
_TYPES: Final = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, 12),
        ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"),
        strict=True,
    )
)
"""PyTorch's number of a type -> its name in PyTorch and NumPy."""
_FORMATS: Final = {1: "contiguous_format", 4: "preserve_format"}


@dataclass(frozen=True)
class ExportedProgram:
    """Operators in their order, the names of inputs and output, and the stored tensors."""

    nodes: Sequence[Mapping[str, Any]]
    inputs: tuple[str, ...]
    output: str
    tensors: Mapping[str, Array]

    def runner(self, torch: Any) -> Callable[..., Any]:
        """The program as a function of tensors."""
        stored = {name: torch.tensor(array) for name, array in self.tensors.items()}
        steps = [(_function(torch, node["target"]), node) for node in self.nodes]

        def run(*tensors: Any) -> Any:
            known = stored | dict(zip(self.inputs, tensors, strict=True))
            for function, node in steps:
                named = {a["name"]: _argument(torch, a["arg"], known) for a in node["inputs"]}
                if node["target"].startswith(_ATEN):
                    result = function(**named)
                else:
                    result = function(*named.values())
                known.update(_named(node["outputs"], result))
            return known[self.output]

        return run


def read_program(path: Path) -> ExportedProgram:
    """The program of a ``.pt2`` file; raises where it does more than arithmetic."""
    with opened_archive(path, path.stat().st_size) as archive:
        names = archive.namelist()
        root = "".join(n.removesuffix("archive_format") for n in names if "archive_format" in n)
        if f"{root}models/model.json" not in names:
            raise ValueError("it is of an older format; export it again with a newer PyTorch")
        if archive.read(f"{root}byteorder") != b"little":
            raise ValueError("its numbers are not in the usual byte order")
        module = json.loads(archive.read(f"{root}models/model.json"))["graph_module"]
        stored = {**_stored(archive, root, "weights"), **_stored(archive, root, "constants")}
    nodes, signature = module["graph"]["nodes"], module["signature"]
    for node in nodes:
        _check(str(node["target"]))
    inputs, tensors = [], {}
    for spec in signature["input_specs"]:
        ((kind, about),) = spec.items()
        if kind == "user_input":
            inputs.append(str(about["arg"]["as_tensor"]["name"]))
        else:
            tensors[str(about["arg"]["name"])] = stored[about[f"{kind}_name"]]
    require_plausible(sum(array.nbytes for array in tensors.values()), path.stat().st_size)
    if [*map(list, signature["output_specs"])] != [["user_output"]]:
        raise ValueError("it has other outputs than one tensor")
    output = signature["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"]
    return ExportedProgram(nodes, tuple(inputs), str(output), tensors)


def _stored(archive: zipfile.ZipFile, root: str, kind: str) -> dict[str, Array]:
    """The weights or the constants of a program, which lie in files of plain numbers."""
    folder, found, files = f"{root}data/{kind}/", {}, dict[str, bytes]()
    listed = json.loads(archive.read(f"{folder}model_{kind}_config.json"))["config"]
    for name, about in listed.items():
        meta = about["tensor_meta"]
        if about["use_pickle"] is not False or meta is None:
            raise ValueError(f"its '{name}' is pickled or no tensor, which is not allowed")
        file = f"{folder}{about['path_name']}"
        raw = files[file] if file in files else files.setdefault(file, archive.read(file))
        flat = np.frombuffer(raw or bytes(8), _TYPES[meta["dtype"]])
        sizes, steps = ([int(n["as_int"]) for n in meta[part]] for part in ("sizes", "strides"))
        found[name] = strided(flat, int(meta["storage_offset"]["as_int"]), sizes, steps)
    return found


def _check(target: str) -> None:
    """Raise unless a program may do that: ``torch.ops.aten.add.Tensor``."""
    name = target.removeprefix(_ATEN).partition(".")[0]
    fine = target.startswith(_ATEN) and is_allowed(name)
    if not fine and target.removeprefix("_operator.") not in _OF_SIZES:
        raise ValueError(f"it uses {target[:60]}, which is not allowed")


def _function(torch: Any, target: str) -> Callable[..., Any]:
    if not target.startswith(_ATEN):
        function: Callable[..., Any] = getattr(operator, target.removeprefix("_operator."))
        return function
    name, _, overload = target.removeprefix(_ATEN).partition(".")
    overloads = getattr(torch.ops.aten, name)
    if overload not in overloads.overloads():
        raise ValueError(f"it uses {target[:60]}, which this PyTorch does not have")
    chosen: Callable[..., Any] = getattr(overloads, overload)
    return chosen


def _argument(torch: Any, stored: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """An argument of an operator: a known result by its name, or a constant."""
    ((kind, value),) = stored.items()
    if kind in ("as_int", "as_ints", "as_bool", "as_bools", "as_string"):
        return value
    if kind in ("as_float", "as_floats"):  # infinities are texts
        return [float(v) for v in value] if isinstance(value, list) else float(value)
    if kind in ("as_tensor", "as_name"):
        return known[value if kind == "as_name" else value["name"]]
    if kind == "as_tensors":
        return [known[part["name"]] for part in value]
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool", "as_optional_tensor"):
        return _argument(torch, value, known)
    if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools", "as_optional_tensors"):
        return [_argument(torch, part, known) for part in value]
    if kind in ("as_scalar_type", "as_memory_format"):
        return getattr(torch, (_TYPES if kind == "as_scalar_type" else _FORMATS)[value])
    if kind == "as_device":
        return torch.device("cpu")
    if kind in ("as_none", "as_layout"):  # the default layout
        return None
    raise ValueError(f"an argument of the kind {kind} is not read")


def _named(outputs: Sequence[Mapping[str, Any]], result: Any) -> Iterator[tuple[str, Any]]:
    """The results of an operator, by their names."""
    for stored, value in zip(
        outputs, (result,) if len(outputs) == 1 else result or (), strict=True
    ):
        ((kind, names),) = stored.items()
        if kind == "as_tensors":
            yield from zip((name["name"] for name in names), value, strict=True)
        elif kind != "as_none":
            yield names.get("name") or names["as_name"], value


BATCH: Final = 4_096
"""Rows shown to a module at a time."""


class _Module(NamedTuple):
    """A loaded module, and its number of inputs."""

    forward: Any
    inputs: int


def read_torchscript(path: Path) -> ForeignCritic:
    """A critic whose ``forward(states, actions, goals)`` or ``forward(states, actions)`` scores.

    ``.pt2`` is a program of ``torch.export``, anything else TorchScript. Neither needs the
    Python code that made it, and both may do arithmetic only (`OPERATORS`). Scores may have a last
    dimension of 1.
    """
    check_readable(path)
    torch = _torch(path)
    advice = (
        "expected what torch.jit.save or torch.export.save wrote, with arithmetic alone; a critic "
        "that needs more can be given as FILE.py:FUNCTION"
    )
    with refusing(path, "is no program of PyTorch that is read here", advice):
        module = _exported(torch, path) if path.suffix == ".pt2" else _scripted(torch, path)
    if module.inputs not in (2, 3):
        raise InputError(
            f"{path} takes {module.inputs} inputs: expected states, actions and goals, or states "
            "and actions."
        )

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        inputs = (states, actions, goals)[: module.inputs]
        parts = []
        for start in range(0, len(states), BATCH):
            rows = [torch.tensor(x[start : start + BATCH]) for x in inputs]  # copies
            with torch.no_grad():
                parts.append(module.forward(*rows).float().numpy())
        scores = np.concatenate(parts)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores

    return ForeignCritic(score, "torch")


def _torch(path: Path) -> Any:
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: reading it needs PyTorch, which is not installed: pip install torch."
        ) from None


def _scripted(torch: Any, path: Path) -> _Module:
    content = checked_copy(path, lambda name: hasattr(torch.ops.aten, name))
    module = torch.jit.load(io.BytesIO(content), map_location="cpu").eval()
    return _Module(module, len(module.forward.schema.arguments) - 1)


def _exported(torch: Any, path: Path) -> _Module:
    program = read_program(path)
    return _Module(program.runner(torch), len(program.inputs))
