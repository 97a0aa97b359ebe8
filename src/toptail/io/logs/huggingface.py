"""Data sets that Hugging Face's ``save_to_disk`` wrote: folders of Arrow files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc

from toptail.errors import InputError, refusing
from toptail.io.files import check_readable, entries
from toptail.io.json_files import read_object

STATE: Final = "state.json"
INFO: Final = "dataset_info.json"
SPLITS: Final = "dataset_dict.json"
_ADVICE: Final = "save the data set again with save_to_disk"


def is_data_set(path: Path) -> bool:
    """Whether a folder is a data set, or holds the splits of one."""
    return path.is_dir() and any((path / name).is_file() for name in (STATE, INFO, SPLITS))


def read_data_set(path: Path) -> pa.Table:
    """The rows of a data set, or of its only split."""
    if (path / SPLITS).is_file():
        return read_data_set(path / _only_split(path))
    with refusing(path, "is not a readable data set", _ADVICE):
        tables = [_read(file) for file in data_files(path)]
        return pa.concat_tables(tables).replace_schema_metadata(None)


def _only_split(path: Path) -> str:
    splits = read_object(path / SPLITS, _ADVICE).get("splits")
    known = [s for s in splits if _is_name(s)] if isinstance(splits, list) else []
    if len(known) != 1:
        raise InputError(
            f"{path} holds the splits {', '.join(known) or 'none'}; give the folder of one, "
            f"such as {path / (known or ['test'])[0]}."
        )
    return str(known[0])


def _is_name(name: Any) -> bool:
    """Whether a text is a name inside the folder, not a path to another place."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {*"/\\\0"} & {*name}


def data_files(path: Path) -> list[Path]:
    """The Arrow files of a data set, in the order of their rows."""
    if (path / SPLITS).is_file():
        return data_files(path / _only_split(path))
    if not (path / STATE).is_file():
        found = entries(path, "*.arrow")
    else:
        listed = read_object(path / STATE, _ADVICE).get("_data_files")
        names = [f.get("filename") if isinstance(f, dict) else None for f in listed or ()]
        if not all(map(_is_name, names)):
            raise InputError(f"{path / STATE} names files that are not in the folder; {_ADVICE}.")
        found = [path / str(name) for name in names]
    if not found:
        raise InputError(f"{path} has no Arrow files; {_ADVICE}.")
    return found


def _read(file: Path) -> pa.Table:
    check_readable(file)
    with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
        table.validate(full=True)  # wrong offsets inside a column would crash the process later
        return table
