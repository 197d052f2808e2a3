// Keeps containers that request nothing out of the way of others, and spreads the memory of containers with CPUs of
// several nodes over these: settings that only an NRI plugin of the runtime can make.
#include <topolet/policy.hpp>

#include <charconv>

namespace {

using namespace topolet::sdk;

class Background {
 public:
  // It reads no topolet.io annotation.
  static constexpr std::array<topolet_str, 0> kAnnotations = {};

  explicit Background(const Options& options) {
    const std::string_view nice = options["nice"];
    std::from_chars(nice.data(), nice.data() + nice.size(), nice_);
  }

  void adjust(const topolet_adjust_request& request, Adjustments& adjustments) const {
    if (request.asks != TOPOLET_ASKS_CREATE) return;
    const bool requests_nothing = request.request->workload->qos == TOPOLET_QOS_BESTEFFORT;
    const Set nodes = memory_nodes(request);
    if (requests_nothing) adjustments.reason(give_way(adjustments));
    if (request.mode == TOPOLET_MODE_EXCLUSIVE && nodes.size() > 1) adjustments.reason(interleave(nodes, adjustments));
  }

 private:
  // The nodes of its CPUs that it may have memory of.
  static Set memory_nodes(const topolet_adjust_request& request) {
    Set own;
    for (const topolet_node& node : nodes(*request.request->topology)) {
      if (size_of_both(node.cpus, request.cpus) > 0) own.insert(node.os_index);
    }
    return own & Set(request.memory);
  }

  // NRI 0.10 has one of the two and not the other.
  std::string give_way(Adjustments& adjustments) const {
    const bool is_batch = adjustments.scheduler(TOPOLET_SCHEDULER_BATCH, nice_) == TOPOLET_OK;
    const bool is_idle = adjustments.io_priority(TOPOLET_IO_IDLE, 0) == TOPOLET_OK;
    if (!is_batch && !is_idle) return "cannot run in the background through this front end and runtime";
    return std::string("gives way") + (is_batch ? " to others on its CPUs" : "") + (is_batch && is_idle ? " and" : "") +
           (is_idle ? " to all I/O of others" : "");
  }

  // Kernels before 6.9 do not weigh nodes by their bandwidth.
  static std::string interleave(const Set& nodes, Adjustments& adjustments) {
    for (const topolet_memory_mode mode : {TOPOLET_MEMORY_WEIGHTED_INTERLEAVE, TOPOLET_MEMORY_INTERLEAVE}) {
      if (adjustments.memory_policy(mode, nodes.view()) == TOPOLET_OK)
        return "spreads its memory over " + node_names(nodes.view());
    }
    return "cannot spread its memory through this front end and runtime";
  }

  std::int32_t nice_ = 0;
};

constexpr std::array<topolet_option, 1> kOptions = {{
    integer_option("nice", "10", 0, TOPOLET_NICE_MAX, "The nice value of containers that request nothing."),
}};

}  // namespace

TOPOLET_PLUGIN(Background, "background", "1.0", kOptions);
