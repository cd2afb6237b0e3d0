"""Solvers: the training loop. Caffe's order of a step, its log lines, tests, snapshots, resuming.

The update rules' arithmetic is C++ (caffe/solvers); formulas of the learning rate are
lr_policy.py's; when bounds are refreshed is decided here, how is error_bound.py's.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from caffe import compression_log, log, solver_memory, solver_snapshot
from caffe._core import MemoryKind, Tensor, memory
from caffe._core.solvers import Regularization, UpdateOptions, gradient_sum_squares
from caffe.debug_info import DebugInfo, UpdateInfo, log_totals
from caffe.error_bound import ErrorBounds, Momentum, RefreshSchedule
from caffe.learning import LearnedBlob
from caffe.lr_policy import learning_rate
from caffe.memory_estimate import MemoryEstimate
from caffe.memory_plan import SavedValue
from caffe.mode import set_mode_gpu
from caffe.names import suggestion
from caffe.net import Net, Settings
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_solver
from caffe.solver_check import check_solver
from caffe.solver_compression import SolverCompression
from caffe.solver_nets import solver_nets

Compression = pb.CompressionParameter

_REGULARIZATIONS = {"L2": Regularization.L2, "L1": Regularization.L1}


class Solver:
    """Trains a net. Derived classes (solver_types.py) give the update rule."""

    #: The name in the solver's field `type`.
    type = ""
    #: History blobs for each parameter.
    histories = 1
    #: Whether a history sums gradients times the learning rate of their time.
    history_holds_rate = False

    def __init__(self, solver: str | Path | pb.SolverParameter) -> None:
        """Make a solver from a prototxt file or a message, with its train net and test nets.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the solver or one of its nets makes no sense.
        """
        param = solver if isinstance(solver, pb.SolverParameter) else read_solver(solver)
        self.param = pb.SolverParameter()
        self.param.CopyFrom(param)
        self.iter = 0
        self._rate = 0.0  # learning rate of the iteration under way
        self.compression_log: str | Path | None = None
        self._check()
        self.seed = param.random_seed if param.random_seed >= 0 else secrets.randbits(32)
        self.bounds = ErrorBounds(iter_size=param.iter_size)
        self.schedule = RefreshSchedule(param.compression_param.interval)
        self.net = self._make_train_net()
        self.bounds.watch(self._saved_values())
        self.test_nets = [
            self._make_test_net(*described) for described in solver_nets(self.param, pb.TEST)
        ]
        for net in self.test_nets:
            net.share_with(self.net)
            net.executor.debug = DebugInfo() if param.debug_info else None
        # As BVLC Caffe orders it: the first kind of every parameter, then the second.
        self.history = [
            self._zeros(blob) for _ in range(self.histories) for blob in self.net.learned
        ]
        solver_memory.fit_limit(self)
        for weights in param.weights:
            for path in filter(None, map(str.strip, weights.split(","))):
                self.net.copy_from(path)
        if param.solver_mode == pb.SolverParameter.GPU:
            set_mode_gpu()
        self.loss_window: deque[float] = deque(maxlen=self.param.average_loss)
        self._warn_of_the_useless()
        self.peak_bytes = 0  # the train net's, over all steps; see memory.peak()
        self.test_peak_bytes = 0
        self._stop = self._snapshot_wanted = False
        self._callbacks: list[tuple[Callable[[], None] | None, Callable[[], None] | None]] = []
        self._json: compression_log.JsonLines | None = None

    @property
    def lr(self) -> float:
        """Learning rate of the next iteration, before any lr_mult."""
        return learning_rate(self.param, self.iter)

    # -- making ------------------------------------------------------------------------------------

    def _check(self) -> None:
        kind = self.param.regularization_type
        if kind not in _REGULARIZATIONS:
            raise ValueError(
                f"unknown regularization_type '{kind}'{suggestion(kind, _REGULARIZATIONS)}"
            )
        check_solver(self.param)
        self.check_rule(self.param)
        if self.param.HasField("type") and self.param.type != self.type:
            log.warning(
                f"the solver's type is '{self.param.type}', but {type(self).__name__} trains it "
                f"with {self.type}; caffe.get_solver() takes the type from the file"
            )

    def _warn_of_the_useless(self) -> None:
        """Say what would train nothing, or never happen."""
        if not any(any(node.loss_weights) for node in self.net.graph.nodes):
            log.warning("the net has no loss: nothing will be learned (see loss_weight)")
        written = {field.name for field, _ in self.param.compression_param.ListFields()}
        if not self.uses_plan and written - {"mode", "display", "keep"}:
            log.warning(
                "compression_param has no mode, or NONE: nothing is compressed, and its other "
                "fields do nothing; write mode: ADAPTIVE"
            )
        if self.param.test_interval and not self.test_nets:
            log.warning("test_interval is set, but there is no test_iter: nothing will be tested")

    def _make_train_net(self) -> Net:
        nets = solver_nets(self.param, pb.TRAIN)
        if len(nets) != 1:
            raise ValueError(
                f"the solver names {len(nets)} nets to train, needs one of net, net_param, "
                "train_net and train_net_param"
            )
        net, state = nets[0]
        settings = Settings(self.param.compression_param, self.seed, bounds=self.bounds)
        return Net.from_param(net, state, settings)

    def _make_test_net(self, net: pb.NetParameter, state: pb.NetState) -> Net:
        # In mode NONE every blob stays readable, as in Caffe; else it is let go after its last use.
        compression = self.param.compression_param
        forward_only = compression.mode != Compression.NONE
        keep = compression.keep if forward_only else ()
        settings = Settings(
            Compression(keep=keep), self.seed, saves=False, forward_only=forward_only
        )
        return Net.from_param(net, state, settings)

    @staticmethod
    def _zeros(blob: LearnedBlob) -> Tensor:
        tensor = Tensor(list(blob.parameter.data.shape), MemoryKind.HISTORY)
        tensor.zero()
        return tensor

    def _saved_values(self) -> list[SavedValue]:
        return list(self.net.executor.plan.saved.values())

    @property
    def uses_plan(self) -> bool:
        """Whether activations are released, kept and worked out again; not in mode NONE."""
        return not self.net.executor.plan.retains_all

    def memory_estimate(self) -> MemoryEstimate:
        """Return what an iteration of training is expected to take, before or after the first."""
        return solver_memory.expected(self)

    # -- training ----------------------------------------------------------------------------------

    def solve(self, resume_file: str | Path | None = None) -> None:
        """Train up to max_iter, from a .solverstate if one is given; test and snapshot as asked.

        Raises what a layer raises, ValueError without a max_iter, and OSError where a snapshot
        cannot be written.
        """
        if not self.param.HasField("max_iter"):
            raise ValueError("the solver has no max_iter: the number of iterations to train for")
        log.info(f"Solving {self.net.name}")
        log.info(f"Learning Rate Policy: {self.param.lr_policy}")
        if resume_file is not None:
            log.info(f"Restoring previous solver status from {resume_file}")
            self.restore(resume_file)
        expected = self.memory_estimate() if self.uses_plan else None
        if expected:
            solver_memory.log_expected(expected)
        stopped = self._run_steps(self.param.max_iter - self.iter)
        if expected and self.iter:
            solver_memory.log_real(self, expected)
        interval = self.param.snapshot
        if self.param.snapshot_after_train and not (interval and self.iter % interval == 0):
            self.snapshot()
        if stopped:
            log.info("Optimization stopped early.")
            return
        if self._is_display_due():
            self.net.forward()
            log.info(f"Iteration {self.iter}, loss = {_number(self._smoothed(self.net.loss()))}")
        if self.param.test_interval and self.iter % self.param.test_interval == 0:
            self.test_all()
        log.info("Optimization Done.")

    def step(self, iterations: int) -> None:
        """Train for so many iterations, or until request_stop(); the next step() goes on."""
        self._run_steps(iterations)

    def _run_steps(self, iterations: int) -> bool:
        """As step(); returns whether a request to stop ended it, which is then dealt with."""
        first = self.iter
        last = first + iterations
        shown_at, shown_time = first, time.perf_counter()
        if self.compression_log is not None and self._json is None:
            self._json = compression_log.JsonLines(self.compression_log)
            if not self.uses_plan:
                log.warning("mode NONE compresses nothing: the compression log stays empty")
        while self.iter < last and not self._stop:
            if self._is_test_due():
                self.test_all()
                if self._stop:
                    break
            for start, _ in self._callbacks:
                if start:
                    start()
            smoothed = self._smoothed(self._accumulate_gradients())
            display = self._is_display_due()
            if display:
                now = time.perf_counter()
                done = self.iter - shown_at
                rate = done / (now - shown_time) if done else 0.0
                log.info(
                    f"Iteration {self.iter} ({rate:g} iter/s, {now - shown_time:g}s/{done} iters), "
                    f"loss = {_number(smoothed)}"
                )
                shown_at, shown_time = self.iter, now
                self._log_outputs(self.net, "Train")
            for _, gradients_ready in self._callbacks:
                if gradients_ready:
                    gradients_ready()
            self.apply_update()
            self._show_compression(display, smoothed)
            self.iter += 1
            self._snapshot_if_due()
        stopped, self._stop = self._stop, False
        return stopped

    def _is_display_due(self) -> bool:
        return self.param.display > 0 and self.iter % self.param.display == 0

    def _is_test_due(self) -> bool:
        interval = self.param.test_interval
        if not interval or self.iter % interval:
            return False
        return self.iter > 0 or self.param.test_initialization

    def _accumulate_gradients(self) -> float:
        """Run forward and backward iter_size times; returns the mean loss."""
        self._rate = learning_rate(self.param, self.iter)
        memory_of_rates = self.param.momentum if self.history_holds_rate else 0.0
        self.schedule.rate_is(self.iter + 1, self._rate, memory_of_rates)
        self.bounds.collecting = self.uses_plan and self.schedule.due(self.iter + 1)
        debugs = self.param.debug_info and self._is_display_due()
        self.net.executor.debug = DebugInfo() if debugs else None
        self.net.executor.counts_values = (
            self.bounds.collecting or self._json is not None or self._is_display_due()
        )
        for net in self.test_nets:
            net.executor.release_all()
        memory.reset_peak()
        self.net.clear_param_diffs()
        executor, last = self.net.executor, len(self.net.graph.nodes) - 1
        loss, passes = 0.0, executor.forward_count
        try:
            for _ in range(self.param.iter_size):
                executor.forward(0, last)
                loss += self.net.loss()
                executor.seed_losses()
                executor.backward(last, 0)
                if executor.debug:
                    log_totals(self.net.learned)
        except BaseException:
            executor.forward_count = passes  # what is tried again draws the same random numbers
            raise
        self.peak_bytes = max(self.peak_bytes, memory.peak()["total"])
        return loss / self.param.iter_size

    def _smoothed(self, loss: float) -> float:
        """Mean of the last average_loss losses, this one included."""
        if not math.isfinite(loss) and all(map(math.isfinite, self.loss_window)):
            log.warning(f"Iteration {self.iter}: the loss is {loss}; a lower base_lr may help")
        self.loss_window.append(loss)
        return sum(self.loss_window) / len(self.loss_window)

    def apply_update(self) -> None:
        """Change the parameters by their gradients, as the learning rate of this iteration says."""
        self._rate = learning_rate(self.param, self.iter)
        if self._is_display_due():
            log.info(f"Iteration {self.iter}, lr = {self._rate:g}")
        scale = self._clip_scale() / self.param.iter_size
        regularization = _REGULARIZATIONS[self.param.regularization_type]
        debug = UpdateInfo(self.net) if self.net.executor.debug else None
        for index, blob in enumerate(self.net.learned):
            if blob.spec.lr_mult == 0:
                continue
            options = UpdateOptions(
                rate=self.rate_of(index),
                gradient_scale=scale,
                decay=self.param.weight_decay * blob.spec.decay_mult,
                regularization=regularization,
            )
            self.update(blob, index, options)
        if debug:
            debug.log()
        if self.bounds.collecting:
            self.bounds.refresh(
                self._saved_values(), self._momentum_of, self.net.executor.error_factor
            )
            self.schedule.done(self.iter + 1)
            self.bounds.collecting = False

    @classmethod
    def check_rule(cls, param: pb.SolverParameter) -> None:
        """Raise ValueError for settings that this update rule cannot do with."""

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Change one parameter and its history; `index` counts the net's learnable blobs."""
        raise NotImplementedError

    def second_history(self, index: int) -> Tensor:
        """Return the second history of a parameter, for rules that keep two."""
        return self.history[len(self.net.learned) + index]

    def rate_of(self, index: int) -> float:
        """Return the learning rate of a parameter in this iteration: lr * lr_mult."""
        return self._rate * self.net.learned[index].spec.lr_mult

    def mean_momentum(self, index: int) -> float:
        """Mean momentum of a parameter in units of its gradient, after an update at a rate not 0.

        Rules without momentum have the mean |gradient|.
        """
        return self.net.learned[index].parameter.gradient.mean_abs() / self.param.iter_size

    def _clip_scale(self) -> float:
        """Return the factor that brings the gradients' common L2 norm down to clip_gradients."""
        limit = self.param.clip_gradients
        if limit < 0:
            return 1.0
        squares = sum(
            gradient_sum_squares(blob.parameter)
            for blob in self.net.learned
            if blob.spec.lr_mult != 0
        )
        norm = math.sqrt(squares)
        if norm <= limit:
            return 1.0
        log.info(
            f"Gradient clipping: scaling down gradients (L2 norm {norm:g} > {limit:g}) "
            f"by scale factor {limit / norm:g}"
        )
        return limit / norm

    def _momentum_of(self, layer: int) -> Momentum:
        """Of a layer's weights, its first parameter."""
        weights = self.net.executor.layers[layer].layer.parameters[0]
        for index, blob in enumerate(self.net.learned):
            if blob.parameter.data.shares_buffer(weights.data):
                mean = self.mean_momentum(index) if self.rate_of(index) else 0.0
                return Momentum(mean, blob.sharers)
        raise AssertionError("a layer's parameter is not among the net's")

    # -- testing -----------------------------------------------------------------------------------

    def test_all(self) -> None:
        """Run every test net for its test_iter batches and log the means of its outputs."""
        for index in range(len(self.test_nets)):
            self.test(index)
        memory.trim()  # what testing took more than training does not stay with the process

    def test(self, index: int) -> dict[str, np.ndarray]:
        """Run one test net for its test_iter batches; returns and logs the means of its outputs."""
        net = self.test_nets[index]
        log.info(f"Iteration {self.iter}, Testing net (#{index})")
        memory.reset_peak()
        sums: dict[str, np.ndarray] = {}
        loss = 0.0
        for _ in range(self.param.test_iter[index]):
            outputs = net.forward()
            loss += net.loss() if self.param.test_compute_loss else 0.0
            for name, values in outputs.items():
                sums[name] = sums.get(name, 0) + values.astype(np.float64)
            if self._stop:
                break
        self.test_peak_bytes = max(self.test_peak_bytes, memory.peak()["total"])
        means = {name: total / self.param.test_iter[index] for name, total in sums.items()}
        if not self._stop:
            if self.param.test_compute_loss:
                log.info(f"Test loss: {_number(loss / self.param.test_iter[index])}")
            _log_values(net, "Test", means)
        net.executor.release_all()
        return means

    def _log_outputs(self, net: Net, kind: str) -> None:
        _log_values(net, kind, {name: net.blobs[name].data for name in net.outputs})

    # -- compression -------------------------------------------------------------------------------

    def _show_compression(self, display: bool, loss: float) -> None:
        every = self.param.compression_param.display
        if not self.uses_plan or not (self._json or every > 0):
            return
        summary = compression_log.summarise(self.net.executor)
        if every > 0 and self.iter % every == 0:
            log.info(f"Iteration {self.iter}, {compression_log.iteration_line(summary)}")
        if every > 0 and display:
            for line in compression_log.table(summary):
                log.info(line)
        if self._json is not None:
            self._json.write(self.iter, loss, self._rate, summary)

    # -- snapshots ---------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Stop after the current iteration; safe to call from a signal handler."""
        self._stop = True

    def request_snapshot(self) -> None:
        """Snapshot after the current iteration; safe to call from a signal handler."""
        self._snapshot_wanted = True

    def _snapshot_if_due(self) -> None:
        interval = self.param.snapshot
        if (interval and self.iter % interval == 0) or self._snapshot_wanted:
            self._snapshot_wanted = False
            self.snapshot()

    def snapshot(self) -> tuple[Path, Path]:
        """Write <prefix>_iter_<N>.caffemodel and .solverstate (.h5); returns their paths.

        Raises OSError where they cannot be written; files written before stay whole.
        """
        return solver_snapshot.write(self)

    def restore(self, path: str | Path) -> None:
        """Go on from a .solverstate (.h5), BVLC Caffe's or our own, and the weights that it names.

        Raises:
            FileNotFoundError: the state, or the weights it names, are not there.
            ImportError: h5py is needed and missing.
            ValueError: a file of another kind, or history that does not fit the net.
        """
        solver_snapshot.restore(self, path)

    def close(self) -> None:
        """Stop the background threads of data layers and close files; the solver is done with."""
        for net in [self.net, *self.test_nets]:
            net.close()
        if self._json is not None:
            self._json.close()
            self._json = None

    @property
    def compression(self) -> SolverCompression:
        """What the last iteration kept for backward, by layer; set() changes it."""
        return SolverCompression(self)

    # -- pycaffe -----------------------------------------------------------------------------------

    def add_callback(
        self, on_start: Callable[[], None] | None, on_gradients_ready: Callable[[], None] | None
    ) -> None:
        """Call on_start before, and on_gradients_ready after, the gradients of each iteration."""
        self._callbacks.append((on_start, on_gradients_ready))

    def share_weights(self, net: Net) -> None:
        """Make `net` use this solver's parameters."""
        net.share_with(self.net)


def _log_values(net: Net, kind: str, outputs: dict[str, np.ndarray]) -> None:
    number = 0
    for name, values in outputs.items():
        weight = net.blob_loss_weights[name]
        for value in np.ravel(values):
            tail = f" (* {weight:g} = {_number(weight * value)} loss)" if weight else ""
            log.info(f"    {kind} net output #{number}: {name} = {_number(value)}{tail}")
            number += 1


def _number(value: float) -> str:
    return f"{value:.6g}"
