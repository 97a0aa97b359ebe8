"""The folder of a check: ``check.json``, the page, and what the verdicts were made of."""

from __future__ import annotations

from pathlib import Path

from toptail.io.arrays import write_arrays
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import write_json
from toptail.lab.check.page import check_html
from toptail.lab.check.request import CheckResult, SourceResult


def write_check(result: CheckResult, out: Path) -> Path:
    """Write a check, whole or not at all; returns the path of ``report.html``.

    ``SOURCE/`` has the candidates (``pools.npz``), their scores and values (``table.parquet``), the
    audit of one step and those of the episodes. What an earlier check left about sources that this
    one did not ask for is taken away.
    """
    made = {each.source.name for each in result.sources}
    with staged_folder(out, _older(out, made)) as stage:
        for each in result.sources:
            _write_source(each, stage / each.source.name)
        result.queries.save(stage / "queries.npz")
        write_json(stage / "check.json", result.content)
        (stage / "report.html").write_text(check_html(result.content), encoding="utf-8")
    return out / "report.html"


def _write_source(made: SourceResult, folder: Path) -> None:
    folder.mkdir()
    write_arrays(folder / "pools.npz", dict(made.pools), compressed=True)
    if made.table is not None and made.audit is not None:
        made.table.write(folder / "table.parquet")
        made.audit.write(folder / "one_step")
    for kind, results in (("one_step", made.picked), ("closed_loop", made.followed)):
        for name, picks in results.items():
            picks.write(folder / kind / name)


def _older(out: Path, made: set[str]) -> list[str]:
    """Files of an earlier check about sources that are not made now."""
    stale = [pools.parent for pools in entries(out, "*/pools.npz") if pools.parent.name not in made]
    files = [path for folder in stale for path in entries(folder, "**/*") if path.is_file()]
    return [str(path.relative_to(out)) for path in files]
