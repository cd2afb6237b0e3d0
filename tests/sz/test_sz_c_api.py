"""The C interface, from C."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sz_build import SZ, Sanitized, run

MAIN = Path(__file__).with_name("c_api_main.c")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{SZ / 'include'}"]

needs_compilers = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("g++")), reason="needs gcc and g++"
)


@needs_compilers
@pytest.mark.parametrize("standard", ["c89", "c99", "c11"])
def test_the_header_is_plain_c(standard: str, tmp_path: Path) -> None:
    source = tmp_path / "header.c"
    source.write_text('#include "sz/sz.h"\nint main(void) { return SZ_OK; }\n')
    run(["gcc", f"-std={standard}", *STRICT, "-fsyntax-only", source])


def test_every_function_and_status_from_c(sanitized: Sanitized, tmp_path: Path) -> None:
    run(["gcc", "-std=c99", *STRICT, *sanitized.flags, "-c", MAIN, "-o", tmp_path / "main.o"])
    program = tmp_path / "program"
    run(["g++", *sanitized.flags, tmp_path / "main.o", *sanitized.objects, "-lm", "-o", program])
    assert run([program]) == "0 failures\n"


@needs_compilers
@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_the_library_can_be_installed_and_found(tmp_path: Path) -> None:
    """Builds sz by itself and a C program that finds it with CMake."""
    build, prefix, user = tmp_path / "build", tmp_path / "prefix", tmp_path / "user"
    run(["cmake", "-S", SZ, "-B", build, "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_BUILD_TYPE=Debug",
         f"-DCMAKE_INSTALL_PREFIX={prefix}"])  # fmt: skip
    run(["cmake", "--build", build, "-j2"])
    run(["cmake", "--install", build])
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\n"
        "project(user LANGUAGES C CXX)\n"
        "find_package(sz REQUIRED)\n"
        f"add_executable(user {MAIN})\n"
        "set_target_properties(user PROPERTIES LINKER_LANGUAGE CXX)\n"
        "target_link_libraries(user sz::sz m)\n"
    )
    run(["cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["cmake", "--build", user / "build"])
    assert run([user / "build/user"]) == "0 failures\n"
