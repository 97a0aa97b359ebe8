"""How many threads BLAS has changes no bit of an audit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from toptail.stats.best_of_k import SERIAL, steady_product

AUDITS = """
import json, sys
import numpy as np
import toptail

rng = np.random.default_rng(0)
for shape in ((150, 1000), (4, 20_000)):
    value = rng.random(shape)
    table = {"query": np.repeat(np.arange(shape[0]), shape[1]), "value": value.ravel(),
             "score": (value + rng.normal(size=shape)).ravel(), "score_b": rng.random(value.size)}
    for resamples, extra in ((100, {}), (100, {"p_judged": np.full(value.size, 0.5)})):
        data = {**table, **extra}
        if extra:
            data["value"] = np.where(rng.random(value.size) < 0.5, table["value"], np.nan)
        result = toptail.audit(data, resamples=resamples).to_dict()
        result.pop("record", None)
        sys.stdout.write(json.dumps(result, default=str) + "\\n")
"""


def output(script: str, threads: int) -> str:
    """The output of the script in a process with so many BLAS threads."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
    )
    return done.stdout


@pytest.mark.slow
def test_an_audit_has_the_same_bits_with_any_number_of_threads() -> None:
    one = output(AUDITS, 1)
    assert one.count("\n") == 4
    assert one == output(AUDITS, 3)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (1, 9, 3), (7, 5, 1), (9, SERIAL // 8, 2), (131, 1_000, 11), (3, 0, 2), (0, 4, 2)],
)
def test_the_product_is_the_product(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m + n + k)
    left, right = rng.normal(size=(m, n)), rng.normal(size=(n, k))
    np.testing.assert_allclose(steady_product(left, right), left @ right, rtol=1e-11, atol=1e-11)
