"""Write the commit's name into the tree, for a copy that is sent where there is no git.

    python tools/stamp.py

A run in the copy then records that commit, with "+changes" if the package's tracked files differed.
The file, ``COMMIT``, is not tracked: send it along. In a checkout git is asked, and it is not read.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write the stamp, and print it."""
    # The file alone: importing the package would ask for its dependencies.
    provenance = runpy.run_path(str(ROOT / "src" / "toptail" / "provenance.py"))
    name = provenance["checked_out"]()
    if name is None:
        print(f"{ROOT} is no git checkout: there is no commit to write down.", file=sys.stderr)
        return 1
    (ROOT / provenance["STAMP"]).write_text(f"{name}\n", encoding="utf-8")
    print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
