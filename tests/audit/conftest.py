"""Fixtures of these tests."""

from __future__ import annotations

import pytest

from toptail import report


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Result folders are written without figures, which take longer than the audit."""
    monkeypatch.setattr(report, "save_figures", lambda *_: [])
