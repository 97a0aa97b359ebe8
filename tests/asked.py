"""Commands as a person types them."""

from __future__ import annotations

from typing import Any, TypeVar

from toptail.commands.flags import parse

Command = TypeVar("Command")


def asked(command: type[Command], **flags: Any) -> Command:
    """The command with flags given by their names: ``pool_size=4`` is typed ``--pool-size 4``."""
    words: list[str] = []
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag] * value
        else:
            for each in value if isinstance(value, tuple) else (value,):
                words += [flag, str(each)]
    return parse(command, words)
