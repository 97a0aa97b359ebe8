"""``python -m validation.attack``: broken files through every reader, kills of every command.

The exit code is 1 where something did not hold. What was measured is printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from validation.attack.files import READERS, attack_files
from validation.attack.kills import CASES, attack_command


def main() -> int:
    """Attack and print the counts."""
    parser = argparse.ArgumentParser(prog="python -m validation.attack", description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="damaged files for each reader")
    parser.add_argument("--kills", type=int, default=20, help="kills of each command")
    words = parser.parse_args()
    counts: Counter[str] = Counter()
    findings: list[str] = []
    for reader in READERS:
        counted, found = attack_files(reader, range(words.files))
        counts.update(counted)
        findings += found
        print(reader.name, dict(counted), *found, sep="\n  ", file=sys.stderr)
    kills = 0
    for case in CASES:
        made, found = attack_command(case, words.kills)
        kills += made
        findings += found
        print(f"{case.name}: {made} kills", *found, sep="\n  ", file=sys.stderr)
    result = {"files": sum(counts.values()), **counts, "kills": kills, "findings": findings}
    print(json.dumps(result, indent=1))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
