"""`caffe upgrade_net_proto_text` and its kin: files of older formats to the current one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import Message

from caffe import log, prototxt, upgrade
from caffe.atomic_file import write_atomically
from caffe.cli.flags import Flag, Flags, UsageError


class UpgradeCommand:
    """Reads a file, brings it to the current format, and writes another."""

    FLAGS: tuple[Flag, ...] = ()

    def __init__(
        self,
        command: str,
        read: Callable[[str], Message],
        change: Callable[..., bool],
        write: Callable[[Message], bytes],
    ) -> None:
        """Take the parts: `change` upgrades a message in place and tells whether it had to."""
        self.USAGE = f"caffe {command} FILE_IN FILE_OUT"
        self._read, self._change, self._write = read, change, write

    def run(self, flags: Flags) -> int:
        """Upgrade.

        Raises:
            UsageError: not two files.
            ValueError, OSError: the one cannot be read, or the other written.
        """
        if len(flags.arguments) != 2:
            raise UsageError(f"{len(flags.arguments)} files given, needs two: {self.USAGE}")
        source, target = flags.arguments
        message = self._read(source)
        if not self._change(message, source):
            log.warning(f"'{source}' is in the current format already")
        write_atomically(Path(target), self._write(message))
        log.info(f"Wrote '{target}'")
        return 0


def _text(message: Message) -> bytes:
    text = text_format.MessageToString(message, as_utf8=True)
    # Whole numbers as BVLC Caffe writes them: 2, not 2.0.
    return re.sub(r"^(\s*\w+: -?\d+)\.0$", r"\1", text, flags=re.MULTILINE).encode()


def _binary(message: Message) -> bytes:
    return message.SerializeToString()


NET_TEXT = UpgradeCommand(
    "upgrade_net_proto_text", prototxt.read_net_as_written, upgrade.upgrade_net, _text
)
NET_BINARY = UpgradeCommand(
    "upgrade_net_proto_binary", prototxt.read_binary_net_as_written, upgrade.upgrade_net, _binary
)
SOLVER_TEXT = UpgradeCommand(
    "upgrade_solver_proto_text", prototxt.read_solver_as_written, upgrade.upgrade_solver, _text
)
