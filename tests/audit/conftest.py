"""Fixtures of these tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Result folders are written without figures, which take longer than the audit."""
    monkeypatch.setattr("toptail.report.figures.save_figures", lambda *_: [])
