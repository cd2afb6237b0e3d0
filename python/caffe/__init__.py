"""COMET: a Caffe-compatible framework that trains CNNs in a fraction of the activation memory.

The names here are pycaffe's: nets, solvers, layers in Python, modes and seeds.
"""

from caffe import openmp_wait  # noqa: F401 - before the core, which loads OpenMP

# isort: split
from caffe import io, log
from caffe._core import Error, num_threads, set_num_threads
from caffe.bound_check import check_bounds
from caffe.classifier import Classifier
from caffe.detector import Detector
from caffe.layer_types.base import Layer
from caffe.layer_types.factory import layer_types as layer_type_list
from caffe.log import init_log
from caffe.mode import set_device, set_mode_cpu, set_mode_gpu
from caffe.net import Net
from caffe.net_spec import NetSpec, layers, params, to_proto
from caffe.processes import (
    has_nccl,
    set_multiprocess,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
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
from caffe.timer import Timer

__version__ = "0.1.0"

__all__ = [
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Classifier",
    "Detector",
    "Error",
    "Layer",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "Timer",
    "__version__",
    "check_bounds",
    "get_solver",
    "has_nccl",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "num_threads",
    "params",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_num_threads",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
    "to_proto",
]
