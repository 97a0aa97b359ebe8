"""Fixtures of these tests."""

from __future__ import annotations

import pytest

from toptail.report import render


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Result folders are written without figures, which take longer than the audit."""
    monkeypatch.setattr(render, "save_figures", lambda *_: [])
