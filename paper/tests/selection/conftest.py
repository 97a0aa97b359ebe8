"""Audits without their pages."""

from __future__ import annotations

import pytest

from paper.tests.conftest import write_audit
from toptail.results import write_report
from toptail_paper.selection import write as audits


@pytest.fixture(autouse=True)
def bare_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits are written without their pages; `whole_audits` is for tests that read them."""
    monkeypatch.setattr(audits, "write_report", write_audit)


@pytest.fixture
def whole_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits are written with pages and figures, as they are for everybody."""
    monkeypatch.setattr(audits, "write_report", write_report)
