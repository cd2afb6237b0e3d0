"""Build script: setuptools packs the Python, scikit-build-core's plugin builds the C++ core with CMake."""

from setuptools import setup

setup(cmake_source_dir=".")
