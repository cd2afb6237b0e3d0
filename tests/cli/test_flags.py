"""Command line flags in all the spellings that Caffe's users know."""

from __future__ import annotations

import pytest

from caffe.cli.flags import Flag, UsageError, describe, parse

KNOWN = (
    Flag("solver", "", "file"),
    Flag("iterations", 50, "count"),
    Flag("rate", 0.5, "rate"),
    Flag("shuffle", False, "shuffle"),
    Flag("effect", "stop", "effect", ("stop", "none")),
)


@pytest.mark.parametrize(
    "words",
    [
        ["-solver", "x", "-iterations", "3", "-shuffle"],
        ["--solver", "x", "--iterations", "3", "--shuffle"],
        ["-solver=x", "--iterations=3", "-shuffle=true"],
        ["-shuffle", "--solver=x", "-iterations", "3"],
    ],
)
def test_spellings(words):
    flags = parse(words, KNOWN)
    assert (flags.text("solver"), flags.number("iterations"), flags.on("shuffle")) == ("x", 3, True)
    assert flags.given == {"solver", "iterations", "shuffle"}
    assert flags.arguments == []


def test_defaults_and_arguments():
    flags = parse(["one", "-noshuffle", "-5", "--", "-solver"], KNOWN)
    assert flags.values == {flag.name: flag.default for flag in KNOWN}
    assert flags.arguments == ["one", "-5", "-solver"]


def test_values_may_look_like_flags_or_hold_equals_signs():
    assert parse(["-solver", "-x"], KNOWN).text("solver") == "-x"
    assert parse(["-solver=a=b"], KNOWN).text("solver") == "a=b"
    assert parse(["-iterations", "-3"], KNOWN).number("iterations") == -3


def test_words():
    assert parse(["-solver", "a, b,,c"], KNOWN).words("solver") == ["a", "b", "c"]
    assert parse([], KNOWN).words("solver") == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-solvr", "x"], "unknown flag '-solvr'; did you mean '-solver'?"),
        (["--solvr=x"], "unknown flag '--solvr'; did you mean '-solver'?"),
        (["-solver"], "flag -solver needs a value: file"),
        (["-iterations", "3.5"], "flag -iterations needs a whole number, got '3.5'"),
        (["-iterations="], "flag -iterations needs a whole number, got ''"),
        (["-rate", "x"], "flag -rate needs a number, got 'x'"),
        (["-shuffle=maybe"], "flag -shuffle needs true or false, got 'maybe'"),
        (["-effect", "stpo"], "flag -effect is 'stpo', but must be one of stop, none"),
    ],
)
def test_errors(words, message):
    with pytest.raises(UsageError) as error:
        parse(words, KNOWN)
    assert str(error.value) == message


def test_help_lists_every_flag():
    lines = describe(KNOWN).splitlines()
    assert len(lines) == len(KNOWN)
    assert "[stop|none] (default stop)" in lines[-1]
