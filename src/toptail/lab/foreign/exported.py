"""Programs of ``torch.export``, read as data and run operator by operator.

PyTorch's own reader unpickles example inputs and marked weights, loads compiled libraries and
evaluates texts of such a file. None of that is needed: a program is a list of operators with the
names of what they take and give, and tensors that lie in the archive as plain numbers.
"""

from __future__ import annotations

import json
import operator
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.lab.foreign.operators import is_allowed
from toptail.lab.foreign.pickled import Array, strided
from toptail.pools.guard import check_unpacked

_ATEN: Final = "torch.ops.aten."
_OF_SIZES: Final = (
    *("add", "sub", "mul", "neg", "floordiv", "mod", "truediv", "eq", "ne", "lt", "le", "gt", "ge"),
)
"""What Python's ``operator`` may do to sizes."""
_TYPES: Final = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, 12),
        ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"),
        strict=True,
    )
)
"""PyTorch's numbers of its types -> what PyTorch and NumPy call them."""
_FORMATS: Final = {1: "contiguous_format", 4: "preserve_format"}


@dataclass(frozen=True)
class ExportedProgram:
    """Operators in their order, and the tensors that they begin with."""

    nodes: Sequence[Mapping[str, Any]]
    inputs: tuple[str, ...]
    """Names of what it is given."""
    output: str
    tensors: Mapping[str, Array]

    def runner(self, torch: Any) -> Callable[..., Any]:
        """The program as a function of tensors."""
        stored = {name: torch.tensor(array) for name, array in self.tensors.items()}
        steps = [(_function(torch, node["target"]), node) for node in self.nodes]

        def run(*given: Any) -> Any:
            known = stored | dict(zip(self.inputs, given, strict=True))
            for function, node in steps:
                told = [(a["name"], _argument(torch, a["arg"], known)) for a in node["inputs"]]
                if node["target"].startswith(_ATEN):
                    result = function(**dict(told))
                else:
                    result = function(*(value for _, value in told))
                known.update(_named(node["outputs"], result))
            return known[self.output]

        return run


def read_program(path: Path) -> ExportedProgram:
    """The program of a ``.pt2`` file; raises where it asks for more than arithmetic."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        check_unpacked(path, sum(member.file_size for member in archive.infolist()))
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
        ((kind, told),) = spec.items()
        if kind == "user_input":
            inputs.append(str(told["arg"]["as_tensor"]["name"]))
        else:
            tensors[str(told["arg"]["name"])] = stored[told[f"{kind}_name"]]
    check_unpacked(path, sum(array.nbytes for array in tensors.values()))
    if [*map(list, signature["output_specs"])] != [["user_output"]]:
        raise ValueError("it has other outputs than one tensor")
    output = signature["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"]
    return ExportedProgram(nodes, tuple(inputs), str(output), tensors)


def _stored(archive: zipfile.ZipFile, root: str, kind: str) -> dict[str, Array]:
    """The weights or the constants of a program, which lie in files of plain numbers."""
    folder = f"{root}data/{kind}/"
    found = {}
    for name, told in json.loads(archive.read(f"{folder}model_{kind}_config.json"))[
        "config"
    ].items():
        meta = told["tensor_meta"]
        if told["use_pickle"] is not False or meta is None:
            raise ValueError(f"its '{name}' is pickled or no tensor, which is not let in")
        raw = archive.read(f"{folder}{told['path_name']}")
        flat = np.frombuffer(raw or bytes(8), _TYPES[meta["dtype"]])
        sizes, steps = ([int(n["as_int"]) for n in meta[part]] for part in ("sizes", "strides"))
        found[name] = strided(flat, int(meta["storage_offset"]["as_int"]), sizes, steps)
    return found


def _check(target: str) -> None:
    """Raise unless a program may do that: ``torch.ops.aten.add.Tensor``."""
    name = target.removeprefix(_ATEN).partition(".")[0]
    fine = target.startswith(_ATEN) and is_allowed(name)
    if not fine and target.removeprefix("_operator.") not in _OF_SIZES:
        raise ValueError(f"it uses {target[:60]}, which is not let in")


def _function(torch: Any, target: str) -> Callable[..., Any]:
    """What a target stands for."""
    if not target.startswith(_ATEN):
        function: Callable[..., Any] = getattr(operator, target.removeprefix("_operator."))
        return function
    name, _, overload = target.removeprefix(_ATEN).partition(".")
    overloads = getattr(torch.ops.aten, name)
    if overload not in overloads.overloads():
        raise ValueError(f"it uses {target[:60]}, which this PyTorch does not have")
    chosen: Callable[..., Any] = getattr(overloads, overload)
    return chosen


def _argument(torch: Any, told: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """What an operator is given: something known by its name, or a constant."""
    ((kind, value),) = told.items()
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
    if kind in ("as_none", "as_layout"):  # as tensors usually lie
        return None
    raise ValueError(f"an argument of the kind {kind} is not read")


def _named(outputs: Sequence[Mapping[str, Any]], result: Any) -> Iterator[tuple[str, Any]]:
    """What an operator gave, by the names that it has from then on."""
    for told, value in zip(outputs, (result,) if len(outputs) == 1 else result or (), strict=True):
        ((kind, names),) = told.items()
        if kind == "as_tensors":
            yield from zip((name["name"] for name in names), value, strict=True)
        elif kind != "as_none":
            yield names.get("name") or names["as_name"], value
