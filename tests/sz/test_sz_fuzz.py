"""Fuzzing: round trips and damaged streams under sanitizers, a short while each.

COMET_FUZZ_SECONDS (10 by default) is how long each of libFuzzer's harnesses runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sz_build import SZ, Sanitized, compile_objects, run

FUZZ = Path(__file__).parents[1] / "fuzz"
SECONDS = int(os.environ.get("COMET_FUZZ_SECONDS", "10"))
LIBFUZZER = ["-O1", "-g", "-fsanitize=fuzzer-no-link,address,undefined",
             "-fno-sanitize-recover=all"]  # fmt: skip


def test_random_round_trips_and_damage_under_sanitizers(
    sanitized: Sanitized, tmp_path: Path
) -> None:
    program = tmp_path / "random"
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{SZ / 'include'}"]
    main = FUZZ / "random_main.cpp"
    run(["g++", *strict, *sanitized.flags, main, *sanitized.objects, "-o", program])
    run([program, "300"])


@pytest.fixture(scope="module")
def fuzzers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build libFuzzer's harnesses and write their seeds."""
    if shutil.which("clang++") is None:
        pytest.skip("libFuzzer needs clang++ (apt-get install clang libfuzzer-14-dev); g++'s ran")
    folder = tmp_path_factory.mktemp("fuzzers")
    probe = folder / "probe.cpp"
    probe.write_text('extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }\n')
    link = [*LIBFUZZER, "-fsanitize=fuzzer"]
    command = ["clang++", *link, str(probe), "-o", str(folder / "probe")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = done.stderr.splitlines()[0]
        pytest.skip(f"clang++ has no libFuzzer (apt-get install libfuzzer-14-dev): {complaint}")
    objects = compile_objects(folder / "sz", LIBFUZZER, compiler="clang++")
    for name in ["decode", "round_trip"]:
        source = FUZZ / f"{name}_fuzzer.cpp"
        run(["clang++", "-std=c++17", *link, f"-I{SZ / 'include'}", source, *objects,
             "-o", folder / name])  # fmt: skip
    run([sys.executable, FUZZ / "make_corpus.py", folder / "corpus"])
    return folder


@pytest.mark.parametrize("name", ["decode", "round_trip"])
def test_libfuzzer(fuzzers: Path, name: str) -> None:
    corpus = fuzzers / "corpus" / name
    before = len(list(corpus.iterdir()))
    assert before > 50
    # No limit of its resident memory: Linux lets it inherit the peak of this process.
    limits = [f"-max_total_time={SECONDS}", "-max_len=8192", "-timeout=20",
              "-rss_limit_mb=0", "-malloc_limit_mb=500"]  # fmt: skip
    reports = ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={fuzzers}/"]
    output = run([fuzzers / name, *limits, *reports, corpus])
    executed = re.search(r"stat::number_of_executed_units: (\d+)", output)
    assert executed and int(executed[1]) > before  # all seeds, and changes of them
