"""COMET: a Caffe-compatible framework that trains CNNs in a fraction of the activation memory.

The names here are pycaffe's: nets, solvers, layers in Python, modes and seeds.
"""

from caffe import openmp_wait  # noqa: F401 - before the core, which loads OpenMP
from caffe._core import Error, num_threads, set_num_threads
from caffe.layer_types.base import Layer
from caffe.layer_types.factory import layer_types as layer_type_list
from caffe.mode import set_device, set_mode_cpu, set_mode_gpu
from caffe.net import Net
from caffe.net_spec import NetSpec, layers, params, to_proto
from caffe.proto.caffe_pb2 import TEST, TRAIN
from caffe.random_seed import set_random_seed
from caffe.solver_types import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
)

__version__ = "0.1.0"

__all__ = [
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Error",
    "Layer",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "__version__",
    "get_solver",
    "layer_type_list",
    "layers",
    "num_threads",
    "params",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_num_threads",
    "set_random_seed",
    "to_proto",
]
