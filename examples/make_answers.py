"""Make examples/answers.jsonl, a small log of a best-of-8 run: ``python examples/make_answers.py``.

One hundred sums, eight sampled answers to each. ``rm_v1`` is a noisy reward model; ``rm_v2`` is the
same one, which also likes large numbers.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

rng = random.Random(0)
with (Path(__file__).parent / "answers.jsonl").open("w", encoding="utf-8") as file:
    for _ in range(100):
        a, b = rng.randint(100, 999), rng.randint(100, 999)
        for _ in range(8):
            answer = a + b + rng.choice([0, 0, 1, -1, 10])
            careful = 2.0 * (answer == a + b) + rng.gauss(0, 1)
            row = {"prompt": f"{a}+{b}", "response": f"The sum is {answer}.", "answer": answer}
            row |= {"rm_v1": round(careful, 3), "rm_v2": round(careful + 0.4 * (answer - a - b), 3)}
            file.write(json.dumps(row | {"is_correct": answer == a + b}) + "\n")
