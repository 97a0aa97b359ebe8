"""Programs of PyTorch do arithmetic: what would write, run or read anything else is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.foreign.fixtures import FOREIGN
from tests.foreign.test_pickled import Runs
from toptail.errors import InputError
from toptail.lab.foreign.torchscript import (
    OPERATORS,
    checked_code,
    checked_copy,
    is_allowed,
    read_program,
    read_torchscript,
)

CODE = """class Q(Module):
  __parameters__ = ["w", ]
  w : Tensor
  gamma : float
  training : bool
  p : Final[float] = 0.5
  __annotations__["0"] = __torch__.torch.nn.modules.linear.Linear
  def forward(self: __torch__.Q,
    s: Tensor,
    a: Optional[Tensor]=None) -> Tensor:
    _0 = __torch__.torch.nn.functional.elu
    _1 = getattr(self, "0")
    if torch.__isnot__(a, None):
      a0 = unchecked_cast(Tensor, a)
      x = torch.cat([s, a0], -1)
    else:
      ops.prim.RaiseException("no {}", "builtins.ValueError")
      x = s
    torch.warn("\\033[31m", 2)
    y = (_1).forward(_0(x, 1., False, ), )
    BODY
    return torch.mul_(torch.sum(y, [-1]), self.gamma)
"""
KNOWN = ("save", "from_file", "add", "mul_", "wait")
"""Names of operators that a PyTorch of these tests has."""


def is_operator(name: str) -> bool:
    return name in KNOWN


def with_body(line: str) -> str:
    return CODE.replace("BODY", line)


def test_code_of_arithmetic_stays_as_it_is_but_for_warnings() -> None:
    text = checked_code(with_body("pass"), is_operator)
    assert "warn" not in text
    assert "def forward(self: __torch__.Q, s: Tensor, a: Optional[Tensor]=None)" in text
    assert text == checked_code(text, is_operator)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('_9 = torch.save(x, "f")', r"torch\.save, which is not allowed"),
        ('_9 = torch.from_file("f", True, 4)', r"torch\.from_file, which"),
        ("_9 = torch.set_(x, y)", r"torch\.set_, which"),
        ("_9 = torch.as_strided(x, [9], [1])", r"torch\.as_strided, which"),
        ("_9 = torch.from_file", r"torch\.from_file, which"),
        ('_9 = (x).save("f")', r"uses x\.save, which"),
        ('_9 = getattr(x, "save")("f")', "uses save, which"),
        ("_9 = torch.add(x, x).save", "uses save, which"),
        ("_9 = __torch__.f(x).save", "uses save, which"),
        ("_9 = __torch__.torch.classes.dist_c10d.Store(x)", "torch.classes.dist_c10d.Store, which"),
        ('_9 = ops.aten.from_file("f", True, 4)', r"ops\.aten.*which"),
        ("_9 = ops.prim.Print(x)", r"ops\.prim\.Print, which"),
        ("_9 = torch.ops.aten.save(x)", r"torch\.ops.*which"),
        ('print("x")', "its code uses 'print'"),
        ("_9 = fork(_0, x)", "its code uses 'fork'"),
        ('open("f")', "its code uses 'open'"),
        ("print = x", "its code defines 'print'"),
        ("getattr = x", "its code defines 'getattr'"),
        ('__torch__ = "f"', "its code defines '__torch__'"),
        ("_9 = [n for n in x]", "a part of the kind ListComp"),
        ("_9 = lambda: x", "a part of the kind Lambda"),
        ("import os", "a part of the kind Import"),
        ("with x:\n      pass", "a part of the kind With"),
        ("_9 = b'x'", "its code has a bytes"),
        ("_9 = (", "never closed|was not closed|invalid"),
    ],
)
def test_other_code_is_refused(line: str, message: str) -> None:
    with pytest.raises((ValueError, SyntaxError), match=message):
        checked_code(with_body(line), is_operator)


@pytest.mark.parametrize(
    "change",
    [
        ("a: Optional[Tensor]=None", 'a: Tensor=torch.from_file("f", True, 4)'),
        ("p : Final[float] = 0.5", 'p : Final[Tensor] = torch.from_file("f", True, 4)'),
        ("def forward(", "def __setstate__(self: __torch__.Q) -> NoneType:\n"
         '    _9 = torch.from_file("f", True, 4)\n    return None\n  def forward('),
        ("class Q(Module)", 'class Q(torch.from_file("f", True, 4))'),
        ("s: Tensor", 's: torch.from_file("f", True, 4)'),
    ],
)  # fmt: skip
def test_code_that_runs_while_it_is_loaded_is_looked_through(change: tuple[str, str]) -> None:
    assert change[0] in CODE
    with pytest.raises(ValueError, match=r"torch\.from_file, which is not allowed"):
        checked_code(with_body("pass").replace(*change), is_operator)


def zipped(path: Path, **members: bytes | str) -> Path:
    """An archive of PyTorch's."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"q/{name}", content)
    return path


def scripted(path: Path, **members: bytes | str) -> Path:
    """An archive of TorchScript with an object and no tensors, but for what is given."""
    sound: dict[str, bytes | str] = {
        "data.pkl": b"\x80\x02c__torch__\nQ\n)\x81}b.",
        "constants.pkl": b"\x80\x02).",
        "code/__torch__.py": with_body("pass"),
        "version": b"3\n",
    }
    return zipped(path, **sound | members)


def test_pytorch_is_given_what_was_looked_through_and_nothing_else(tmp_path: Path) -> None:
    more = {"extra/x": b"y", "code/__torch__.py.debug_pkl": b"z", "traced_inputs.pkl": b"w"}
    content = checked_copy(scripted(tmp_path / "q.pt", **more), is_operator)
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    kept = ("data.pkl", "constants.pkl", "code/__torch__.py", "version")
    assert names == [f"archive/{name}" for name in kept]


PROGRAMS = FOREIGN / "torch"


@pytest.mark.parametrize("name", ["traced.pt", "scripted.pt"])
def test_what_pytorch_wrote_is_let_in(name: str) -> None:
    content = checked_copy(PROGRAMS / name, is_operator)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        code = "".join(archive.read(n).decode() for n in archive.namelist() if n.endswith(".py"))
    assert "torch.layer_norm(" in code
    assert "torch.silu(" in code


def test_a_program_that_pytorch_wrote_is_let_in() -> None:
    program = read_program(PROGRAMS / "exported.pt2")
    assert program.inputs == ("s", "a", "g")
    assert program.tensors["p_net_0_weight"].shape == (8, 6)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("name", ["traced.pt", "scripted.pt", "exported.pt2"])
def test_stored_programs_score_as_they_did(name: str) -> None:
    with np.load(PROGRAMS / "rows.npz") as known:
        rows = [known[part] for part in ("states", "actions", "goals")]
        found = read(PROGRAMS / name).score(*rows)
        np.testing.assert_allclose(found, known["scores"], rtol=1e-5, atol=1e-6)


_FAR = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00K\x09\x85K\x01\x85\x89NtR."
)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"data.pkl": b"\x80\x02c__torch__.torch.classes.a\nB\n)\x81."}, "classes.a.B"),
        ({"data.pkl": b"\x80\x02c__torch__.torch\nclasses.B\n)\x81."}, "torch.classes.B"),
        ({"constants.pkl": pickle.dumps(Runs(os.system, "touch f"), 2)}, "posix.system"),
        ({"data.pkl": _FAR, "data/0": b"\0" * 16}, "more numbers than its storage has"),
        ({"data.pkl": _FAR, "data/0": b"\0" * 8}, "more numbers than are in the file"),
        ({"code/__torch__/a.py": "def f(x: Tensor) -> Tensor:\n  return torch.save(x)\n"}, "save"),
        ({"code/__torch__.py": "x = '\u00e9'\n"}, "ascii"),
    ],
)
def test_archives_that_bring_other_things_are_refused(
    members: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, InputError), match=message):
        checked_copy(scripted(tmp_path / "q.pt", **members), is_operator)


def node(target: str, output: str = "y", **given: Any) -> dict[str, Any]:
    inputs = [{"name": name, "arg": arg, "kind": 1} for name, arg in given.items()]
    return {"target": target, "inputs": inputs, "outputs": [{"as_tensor": {"name": output}}]}


def exported(path: Path, *nodes: dict[str, Any], **members: bytes) -> Path:
    """A program of s and a, with a weight w of two numbers."""
    ints = {"sizes": [{"as_int": 2}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}}
    weight = {"path_name": "weight_0", "use_pickle": False, "tensor_meta": {"dtype": 7} | ints}
    specs: list[Any] = [{"user_input": {"arg": {"as_tensor": {"name": name}}}} for name in "sa"]
    specs.append({"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}})
    output = [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]
    signature = {"input_specs": specs, "output_specs": output}
    module = {"graph": {"nodes": nodes}, "signature": signature}
    sound = {
        "archive_format": b"pt2",
        "byteorder": b"little",
        "models/model.json": json.dumps({"graph_module": module}).encode(),
        "data/weights/model_weights_config.json": json.dumps({"config": {"w": weight}}).encode(),
        "data/constants/model_constants_config.json": b'{"config": {}}',
        "data/weights/weight_0": np.array([1, 2], np.float32).tobytes(),
    }
    return zipped(path, **sound | members)


S, W = ({"as_tensor": {"name": name}} for name in ("s", "p_w"))
ADDS = node("torch.ops.aten.add.Tensor", self=S, other=W)


def test_a_program_is_read_without_pytorch(tmp_path: Path) -> None:
    program = read_program(exported(tmp_path / "q.pt2", ADDS))
    assert program.inputs == ("s", "a")
    np.testing.assert_array_equal(program.tensors["p_w"], [1, 2])


@pytest.mark.parametrize(
    "target",
    [
        *("torch.ops.aten.from_file.default", "torch.ops.aten.save.default"),
        *("torch.ops.aten.set_.source_Tensor", "torch.ops.aten.as_strided.default"),
        *("torch.ops.aten.empty.memory_format", "torch.ops.inductor.add.default", "torch.hub.load"),
        *("_operator.call", "_operator.attrgetter", "builtins.eval"),
    ],
)
def test_an_operator_that_is_no_arithmetic_is_refused(target: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"it uses {target}, which is not allowed"):
        read_program(exported(tmp_path / "q.pt2", node(target, self=S, other=W)))


def config(**changed: Any) -> bytes:
    meta = {
        "dtype": 7,
        "sizes": [{"as_int": 2}],
        "strides": [{"as_int": 1}],
        "storage_offset": {"as_int": 0},
    }
    told = {"path_name": "weight_0", "use_pickle": False, "tensor_meta": meta | changed}
    return json.dumps({"config": {"w": told | changed}}).encode()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"use_pickle": True}, "'w' is pickled"),
        ({"tensor_meta": None}, "no tensor"),
        ({"sizes": [{"as_int": 3}]}, "more numbers than its storage has"),
        ({"storage_offset": {"as_int": 1}}, "does not fit its storage"),
        ({"sizes": [{"as_expr": {"expr_str": "__import__('os')"}}]}, "as_int"),
        ({"path_name": "../../models/model.json"}, "no item named|models/model.json"),
    ],
)
def test_weights_are_plain_numbers_of_the_archive(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    told = {"data/weights/model_weights_config.json": config(**changed)}
    with pytest.raises((ValueError, KeyError), match=message):
        read_program(exported(tmp_path / "q.pt2", ADDS, **told))


def test_weights_of_one_file_are_counted_one_by_one(tmp_path: Path) -> None:
    path = exported(tmp_path / "q.pt2", ADDS)
    with zipfile.ZipFile(path) as archive:
        model = json.loads(archive.read("q/models/model.json"))
        one = json.loads(config(sizes=[{"as_int": 500_000}]))["config"]["w"]
    specs = model["graph_module"]["signature"]["input_specs"]
    many = {f"w{i}": one for i in range(1_200)}
    specs += [{"parameter": {"arg": {"name": n}, "parameter_name": n}} for n in many]
    told = {
        "models/model.json": json.dumps(model).encode(),
        "data/weights/weight_0": bytes(2_000_000),
        "data/weights/model_weights_config.json": json.dumps(
            {"config": many | {"w": one}}
        ).encode(),
    }
    with pytest.raises(ValueError, match=r"unpacks to 2\.4 GB or more"):
        read_program(exported(tmp_path / "q.pt2", **told))


# With PyTorch -----------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


ROWS = [np.random.default_rng(i).normal(size=(5, 2)).astype(np.float32) for i in range(3)]


def saved(torch: Any, module: Any, path: Path) -> Path:
    """A module as TorchScript, or exported."""
    example = tuple(torch.zeros(4, 2) for _ in range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix == ".pt2":
            many = torch.export.Dim("many")
            program = torch.export.export(module, example, dynamic_shapes=({0: many},) * 3)
            torch.export.save(program, path)
        elif path.stem == "traced":
            torch.jit.trace(module, example, check_trace=False).save(path)
        else:
            torch.jit.script(module).save(path)
    return path


def read(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript, by PyTorch
        return read_torchscript(path)


def changed(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    """Change the members of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, change(name, content))


def critics(torch: Any) -> dict[str, Any]:
    """Critics of the usual kinds."""
    nn, functional = torch.nn, torch.nn.functional

    class Plain(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.gamma = 0.9
            layers = (nn.LayerNorm(8), nn.GELU(), nn.BatchNorm1d(8), nn.Dropout(), nn.SiLU())
            self.net = nn.Sequential(nn.Linear(6, 8), *layers, nn.Linear(8, 1))

        def forward(self, s, a, g):  # type: ignore[no-untyped-def]
            return self.net(torch.cat([s, a, g], -1)) * self.gamma

    class Ensemble(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList([nn.Linear(6, 3) for _ in range(2)])
            self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

        def q(self, x: torch.Tensor) -> torch.Tensor:
            values = [functional.elu(head(x)).square().amax(-1) for head in self.heads]
            return torch.stack(values).min(0)[0]

        def forward(self, s, a, g):  # type: ignore[no-untyped-def]
            x = torch.cat([s, a, g], -1)
            far = torch.where(x.abs().sum(-1) > 3, x.norm(p=2, dim=-1), torch.zeros_like(x[:, 0]))
            weights = functional.softmax(self.heads[0](x) * self.scale, dim=-1)
            return self.q(x) - far + (weights[:, :2] * s).mean(-1).clamp(-1.0, 1.0)

    class Distances(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.phi, self.psi = nn.Linear(4, 6), nn.Linear(2, 6)

        def forward(self, s, a, g):  # type: ignore[no-untyped-def]
            x, y = self.phi(torch.cat([s, a], 1)), self.psi(g)
            x, y = functional.normalize(x, dim=-1), functional.normalize(y, dim=-1)
            both = torch.einsum("ij,ij->i", x, y) + functional.cosine_similarity(x, y)
            parts = torch.maximum(x.view(-1, 2, 3), y.reshape(-1, 2, 3)).logsumexp(-1)
            return both - torch.sqrt((x - y).pow(2).sum(-1) + 1e-6) + parts.flatten(1).sum(1)

    return {module.__name__: module().eval() for module in (Plain, Ensemble, Distances)}


@pytest.mark.parametrize("name", ["Plain", "Ensemble", "Distances"])
@pytest.mark.parametrize("file", ["traced.pt", "scripted.pt", "q.pt2"])
def test_usual_critics_score_as_they_do_in_pytorch(
    name: str, file: str, torch: Any, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    critic = critics(torch)[name]
    expected = critic(*map(torch.tensor, ROWS)).detach().numpy().reshape(5)
    path = saved(torch, critic, tmp_path / file)
    np.testing.assert_allclose(read(path).score(*ROWS), expected, rtol=1e-5, atol=1e-6)


def attackers(torch: Any, victim: str) -> dict[str, Any]:
    """Critics that write a file; what they write is a part of their score, and so not left out."""
    nn = torch.nn

    class Mapped(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.victim: str = victim

        def forward(self, s, a, g):  # type: ignore[no-untyped-def]
            file = torch.from_file(self.victim, True, 4)
            file.fill_(7.0)
            return (s + a + g).sum(-1) + file.sum()

    class Saved(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.victim: str = victim

        def forward(self, s, a, g):  # type: ignore[no-untyped-def]
            torch.save(s, self.victim)
            return (s + a + g).sum(-1)

    return {"from_file": Mapped(), "save": Saved()}


@pytest.mark.parametrize("name", ["from_file", "save"])
def test_a_script_that_writes_a_file_is_refused(name: str, torch: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"\0" * 16)
    path = saved(torch, attackers(torch, str(victim))[name], tmp_path / "scripted.pt")
    with pytest.raises(InputError, match=f"torch.{name}, which is not allowed"):
        read(path).score(*ROWS)
    assert victim.read_bytes() == b"\0" * 16


def test_an_exported_program_that_writes_a_file_is_refused(torch: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"\0" * 16)
    path = saved(torch, critics(torch)["Plain"], tmp_path / "q.pt2")
    told = {"filename": {"as_string": str(victim)}, "shared": {"as_bool": True}}
    opens = node("torch.ops.aten.from_file.default", "f", **told, size={"as_int": 4})
    file = {"as_tensor": {"name": "f"}}
    fills = node("torch.ops.aten.fill_.Scalar", "f_1", self=file, value={"as_float": 7.0})

    def change(name: str, content: bytes) -> bytes:
        if not name.endswith("model.json"):
            return content
        model = json.loads(content)
        graph = model["graph_module"]["graph"]
        graph["nodes"] = [n | {"metadata": {}} for n in (opens, fills)] + graph["nodes"]
        some = dict(next(iter(graph["tensor_values"].values())))
        sizes = {"sizes": [{"as_int": 4}], "strides": [{"as_int": 1}]}
        graph["tensor_values"] |= dict.fromkeys(("f", "f_1"), some | sizes)
        return json.dumps(model).encode()

    changed(path, change)
    with pytest.raises(InputError, match=r"aten\.from_file\.default, which is not allowed"):
        read(path).score(*ROWS)
    assert victim.read_bytes() == b"\0" * 16


def test_default_arguments_do_not_run_while_a_file_is_loaded(torch: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"\0" * 16)
    path = saved(torch, critics(torch)["Plain"], tmp_path / "traced.pt")
    opens = f'torch.fill_(torch.from_file("{victim}", True, 4), 7.)'

    def change(name: str, content: bytes) -> bytes:
        if not name.endswith("__torch__.py") and b"class Plain" not in content:
            return content
        return content.replace(b"g: Tensor)", f"g: Tensor, h: Tensor={opens})".encode())

    changed(path, change)
    with pytest.raises(InputError, match=r"torch\.from_file, which is not allowed"):
        read(path)
    assert victim.read_bytes() == b"\0" * 16


def test_example_inputs_of_an_exported_program_are_not_unpickled(
    torch: Any, tmp_path: Path
) -> None:
    """PyTorch's own reader would run them."""
    critic = critics(torch)["Plain"]
    path = saved(torch, critic, tmp_path / "q.pt2")
    evil = io.BytesIO()
    torch.save(Runs(os.mkdir, str(tmp_path / "unpickled")), evil)

    def change(name: str, content: bytes) -> bytes:
        return evil.getvalue() if "sample_inputs" in name else content

    changed(path, change)
    expected = critic(*map(torch.tensor, ROWS)).detach().numpy().reshape(5)
    np.testing.assert_allclose(read(path).score(*ROWS), expected, rtol=1e-5, atol=1e-6)
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.usefixtures("torch")
def test_an_overload_is_no_way_to_python(tmp_path: Path) -> None:
    target = "torch.ops.aten.add.__setattr__"
    path = exported(tmp_path / "q.pt2", node(target, name={"as_string": "x"}, value=S))
    with pytest.raises(InputError, match="which this PyTorch does not have"):
        read(path)


@pytest.mark.parametrize("file", ["scripted.pt", "q.pt2"])
def test_a_program_that_changes_what_it_is_shown_changes_its_own(
    file: str, torch: Any, tmp_path: Path
) -> None:
    class Overwrites(torch.nn.Module):  # type: ignore[misc]
        def forward(self, s, a, g):  # type: ignore[no-untyped-def]
            return s.zero_().sum(-1) + a.sum(-1) + g.sum(-1)

    rows = [row.copy() for row in ROWS]
    read(saved(torch, Overwrites(), tmp_path / file)).score(*rows)
    np.testing.assert_array_equal(rows, ROWS)


def test_operators_that_are_let_in_take_no_file(torch: Any) -> None:
    """Texts are modes, formats and messages; whatever else has one is looked at here."""
    schemas = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]
    assert {s.name.removeprefix("aten::") for s in schemas} >= OPERATORS
    texts = {
        "self substr el key a b str string separator fillchar t l s item approximate reduce ord",
        "rounding_mode interpolation side padding equation indexing mode assert_msg type values",
        "input dict inputs to_add",
    }
    known = set(" ".join(texts).split())
    for schema in schemas:
        if is_allowed(schema.name.removeprefix("aten::")):
            for argument in schema.arguments:
                kind = str(argument.type)
                assert "str" not in kind or argument.name in known, schema
                assert not any(word in kind for word in ("Generator", "Stream", "Storage")), schema
