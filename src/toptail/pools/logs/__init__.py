"""Logs of other tools as tables of scored candidates: who wrote a file is told by its content.

Each reader gives a long table with the columns ``query`` and ``candidate``. Where a log says what
is a score and what a value, the table says so as files of :mod:`toptail.pools.written` do;
otherwise the usual rules of names decide, or the sentence that asks for ``--scores`` and
``--values``.
"""

from __future__ import annotations

from toptail.pools.logs.found import is_log, log_files, log_of_json, log_of_lines, read_log

__all__ = ["is_log", "log_files", "log_of_json", "log_of_lines", "read_log"]
