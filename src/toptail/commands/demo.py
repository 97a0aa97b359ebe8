"""``toptail demo``: the audit on built-in pools whose truth is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from toptail.commands.flags import OUTPUT
from toptail.commands.terminal import say, show, table_with


@dataclass(frozen=True)
class Demo:
    """Audit five built-in scorers whose best-of-K curves are known in closed form.

    toptail demo
    """

    out: Annotated[Path, OUTPUT] = Path("toptail-demo")
    """Folder for the report."""

    def run(self) -> int:
        import numpy as np

        from toptail import audit, builtin_pools
        from toptail.pools.builtin import expected
        from toptail.progress import Caller, called_by

        with called_by(Caller("toptail demo")):
            result = audit(builtin_pools())
        report = result.write(self.out)
        say(result.summary())
        k = np.array(result.k, dtype=float)
        say("\nValue of best of K: measured (closed form)")
        table = table_with("scorer", *(f"K={n}" for n in result.k))
        for name, scorer in result.scorers.items():
            try:
                truth = [f" ({v:.3f})" for v in expected(name)(k)]
            except KeyError:
                truth = [""] * len(k)
            cells = [f"{v:.3f}{t}" for v, t in zip(scorer.curve.value, truth, strict=True)]
            table.add_row(name, *cells)
        show(table)
        say(f"Report: {report}")
        return 0
