"""A finished folder of the selection study, made once for all tests that only read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper.tests.selection.stored_stages import paper_like
from toptail.io.json_files import write_json
from toptail_paper.claims import annotate
from toptail_paper.selection import write as audits
from toptail_paper.selection.study import STUDY


def write_audit(audit: dict[str, Any], out: Path) -> Path:
    """The audit without its pages, which take longer than all the rest."""
    write_json(out / "audit.json", audit)
    return out / "report.html"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything comes out as the paper says, with all that is made of it."""
    stages = paper_like(tmp_path_factory.mktemp("finished"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audits, "write_report", write_audit)
        report = STUDY.finish(stages.path, annotate=annotate, resamples=200)
    assert report == stages.path / "report.html"
    return stages.path
