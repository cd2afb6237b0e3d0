"""Build script: setuptools packs the Python, scikit-build-core's plugin has CMake build the C++."""

from setuptools import setup

setup(cmake_source_dir=".")
