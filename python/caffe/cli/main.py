"""The console entry `caffe`, also `python -m caffe`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caffe.cli.flags import UsageError, describe, parse
from caffe.names import suggestion

#: Subcommand -> (module, or module:object in it, what it does). They are imported when called:
#: starting stays quick.
COMMANDS = {
    "train": ("caffe.cli.train", "train a net, or fine-tune one"),
    "test": ("caffe.cli.test", "score a net on its data"),
    "time": ("caffe.cli.time", "measure the time each layer of a net takes"),
    "memory": ("caffe.cli.memory", "show how much memory training will take, without training"),
    "device_query": ("caffe.cli.device_query", "show what this machine offers"),
    "prepare": ("caffe.cli.prepare", "make databases of images, and means of them"),
    "convert_imageset": ("caffe.cli.convert_imageset", "make a database of a list of images"),
    "compute_image_mean": ("caffe.cli.compute_image_mean", "compute the mean image of a database"),
    "extract_features": ("caffe.cli.extract_features", "write what a net makes of its data"),
    "classify": ("caffe.cli.classify", "score images"),
    "detect": ("caffe.cli.detect", "score windows of images"),
    "draw_net": ("caffe.cli.draw_net", "draw a net"),
    "parse_log": ("caffe.cli.parse_log", "turn a training log into tables"),
    "plot_training_log": ("caffe.cli.plot_training_log", "draw a chart of training logs"),
    "upgrade_net_proto_text": (
        "caffe.cli.upgrade:NET_TEXT",
        "bring a net prototxt to the current format",
    ),
    "upgrade_net_proto_binary": (
        "caffe.cli.upgrade:NET_BINARY",
        "bring a .caffemodel to the current format",
    ),
    "upgrade_solver_proto_text": (
        "caffe.cli.upgrade:SOLVER_TEXT",
        "bring a solver prototxt to the current format",
    ),
}
INTERRUPTED = 130
#: Errors whose message is a whole sentence; others need the name of their type.
_SPEAKING = (ValueError, OSError, RuntimeError, ImportError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Args:
        arguments: the command line without the program's name; None takes the process's.

    Returns:
        The exit status: 0, or 1 after one line on standard error that says what is wrong.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    verbose = os.environ.get("CAFFE_TRACEBACK", "") not in ("", "0")
    verbose |= any(word.lstrip("-") == "verbose" and word.startswith("-") for word in words)
    words = [word for word in words if word not in ("-verbose", "--verbose")]
    try:
        status = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()  # a reader that is gone shows here, not when Python exits
        return status
    except KeyboardInterrupt:
        _complain("interrupted", verbose)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of standard output is gone (`caffe help | head`). Python would complain again
        # when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        _complain(_one_line(error), verbose)
        return 1
    finally:
        if arguments is None:
            # The work is done: one more Ctrl-C must not turn the process's end into a traceback.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(words: list[str]) -> int:
    if not words or words[0].lstrip("-") in ("help", "h"):
        print(_help(words[1] if len(words) > 1 else ""))
        return 0 if words else 1
    command = words.pop(0)
    if command.lstrip("-") == "version":
        print(importlib.import_module("caffe").__version__)
        return 0
    if command not in COMMANDS:
        raise UsageError(f"unknown command '{command}'{suggestion(command, COMMANDS)}")
    if any(word in ("-help", "--help", "-h") for word in words):
        print(_help(command))
        return 0
    found = _load(command)
    if command == "prepare":
        return int(found.run_words(words))
    return int(found.run(parse(words, found.FLAGS)))


def _load(command: str) -> Any:
    """Return what carries a command out: it has FLAGS, USAGE and run()."""
    module, _, name = COMMANDS[command][0].partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def _help(command: str) -> str:
    if command in COMMANDS:
        found = _load(command)
        usage = getattr(found, "USAGE", f"caffe {command} FLAGS")
        flags = describe(found.FLAGS)
        return f"usage: {usage}\n{COMMANDS[command][1]}\n" + (f"\n{flags}" if flags else "")
    if command:
        raise UsageError(f"unknown command '{command}'{suggestion(command, COMMANDS)}")
    lines = [f"  {name:<26} {what}" for name, (_, what) in COMMANDS.items()]
    return (
        "usage: caffe COMMAND FLAGS\n\n" + "\n".join(lines) + "\n\n"
        "caffe help COMMAND lists a command's flags. --verbose (or CAFFE_TRACEBACK=1) shows where\n"
        "an error comes from."
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror + (f": '{error.filename}'" if error.filename else "")
    if isinstance(error, MemoryError):
        return f"out of memory{': ' + text if text else ''}; lower batch_size or compress more"
    # What a Python layer raised: the note names the layer. Its type often says more than its text.
    notes = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    if not text or not isinstance(error, _SPEAKING):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return notes + text


def _complain(message: str, verbose: bool) -> None:
    try:
        if verbose:
            traceback.print_exc()
        print(f"caffe: error: {message}", file=sys.stderr, flush=True)
    except OSError:
        # Nobody reads standard error any more; the exit status has to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def program() -> int:
    """Run the subcommand that this program is named after, as in BVLC Caffe."""
    return main([Path(sys.argv[0]).stem, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
