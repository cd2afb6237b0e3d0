// caffe._core: what the memory tracker and the arena know.
#include "caffe/bindings/module.hpp"
#include "caffe/core/arena.hpp"

namespace py = pybind11;
using namespace caffe;  // NOLINT: bindings name nearly everything of it

namespace {

py::dict by_name(const BytesByKind& bytes) {
  py::dict names;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    names[memory_kind_name(static_cast<MemoryKind>(kind))] = bytes[kind];
  }
  return names;
}

}  // namespace

void bind_memory(py::module_& m) {
  py::enum_<MemoryKind> kinds(m, "MemoryKind");
  kinds.value("PARAMETERS", MemoryKind::Parameters)
      .value("PARAMETER_GRADIENTS", MemoryKind::ParameterGradients)
      .value("HISTORY", MemoryKind::History)
      .value("RAW_ACTIVATIONS", MemoryKind::RawActivations)
      .value("STORED_ACTIVATIONS", MemoryKind::StoredActivations)
      .value("GRADIENTS", MemoryKind::Gradients)
      .value("WORKSPACE", MemoryKind::Workspace)
      .value("DATA", MemoryKind::Data)
      .value("HELD_BY_PYTHON", MemoryKind::HeldByPython);

  py::module_ memory = m.def_submodule("memory", "Bytes by kind, as the arena hands them out.");
  memory.def("live", [] { return by_name(Arena::instance().tracker().live()); });
  memory.def("peak", [] {
    const MemoryPeak peak = Arena::instance().tracker().peak();
    py::dict result;
    result["total"] = peak.total;
    result["layer"] = peak.layer;
    result["by_kind"] = by_name(peak.by_kind);
    return result;
  });
  memory.def("reset_peak", [] { Arena::instance().tracker().reset_peak(); });
  memory.def("start_pass", [] { Arena::instance().tracker().start_pass(); });
  memory.def("room", [] { return Arena::instance().tracker().room(); });
  memory.def("set_scope",
             [](const std::string& layer) { Arena::instance().tracker().set_scope(layer); });
  memory.def("trim", [] { return Arena::instance().trim(); });
  memory.def("extent", [] { return Arena::instance().extent(); });
}
