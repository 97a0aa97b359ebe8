"""What must hold of every report page of a study."""

from __future__ import annotations

import re


def assert_asks_for_nothing(page: str, most_bytes: int) -> None:
    """One small file: no address, no script, and a policy that allows none."""
    assert len(page.encode()) < most_bytes
    without_images = re.sub(r"data:image/[^\"]+", "", page)
    assert "http://" not in without_images
    assert "https://" not in without_images
    assert "<script" not in page
    assert "default-src 'none'" in page
