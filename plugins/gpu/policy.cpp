#include "plugins/gpu/policy.hpp"

#include <chrono>
#include <utility>

#include "plugins/gpu/division.hpp"
#include "plugins/gpu/local_cpus.hpp"
#include "plugins/gpu/proposals.hpp"
#include "plugins/gpu/text.hpp"
#include "plugins/gpu/topology_names.hpp"

namespace topolet::gpu {
namespace {

constexpr std::string_view kUsualNvml = "libnvidia-ml.so.1";

}  // namespace

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["affinity"] == "require") read.rules.affinity = Affinity::kRequire;
  read.keep_free = options["keep-free"] == "true";
  read.kinds = read_kinds(options["devices"]);
  read.roots.sysfs = options["sysfs-root"];
  read.roots.proc = options["proc-root"];
  read.roots.dev = options["dev-root"];
  read.roots.cdi.clear();
  for (const std::string& directory : split(options["cdi-dirs"], ' ')) read.roots.cdi.emplace_back(directory);
  read.nvml_library = trimmed(options["nvml-library"]);
  read.rules.whole_cores = options.of_other("numa.full-pcpus-only") == "true";
  return read;
}

Policy::Policy(const sdk::Options& options, const sdk::Host& host) : options_(read_options(options)), host_(host) {
  take(look(true));
  inventory_.nvml = ask_nvml(options_.nvml_library);
  host_.log(TOPOLET_LOG_INFO, "knows " + std::to_string(inventory_.devices.places.size()) + " device nodes, " +
                                  std::to_string(inventory_.cdi.devices.size()) + " CDI devices and " +
                                  std::to_string(inventory_.devices.nvidia.size()) +
                                  " NVIDIA GPUs of this machine beside what the topology names");
}

void Policy::propose(const topolet_request& request, sdk::Proposals& proposals) const {
  for (const sdk::Set& nodes : nodes_beside(request, sought_by(request))) proposals.nodes(nodes.view());
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const { scores.give(verdicts(request)); }

void Policy::pick(const topolet_pick_request& picking, sdk::Picks& picks) const {
  const auto want = [&picks](const std::vector<Share>& shares) {
    for (const Share& share : shares) picks.at_least(share.cpus.view(), share.count);
  };
  const Sought sought = sought_by(*picking.request);
  const bool chooses = has_choice(picking);
  if (sought.devices.empty()) {
    if (options_.keep_free && sought.unknown.empty() && chooses) want(divide_keeping_free(picking, options_.rules));
    return;
  }
  want(share_by_cpus(picking, sought, options_.rules));
  std::string lacking = shortcoming_by_cpus(picking, sought);
  if (chooses) {
    want(divide(picking, sought, options_.rules));
    if (std::string more = shortcoming(picking, sought, options_.rules); !more.empty()) lacking = std::move(more);
  }
  if (lacking.empty()) return;
  if (options_.rules.affinity == Affinity::kRequire) {
    picks.reject("affinity require: " + lacking);
  } else {
    picks.unmet(lacking);
  }
}

/// Why the machine's files are not used.
std::string Policy::strangeness(const topolet_topology& topology) const {
  constexpr std::size_t kLongest = 256;
  return "NVML and the files below " + shown(options_.roots.sysfs.string(), kLongest) + " and " +
         shown(options_.roots.proc.string(), kLongest) + ": they are of another machine, with CPUs " +
         shown(inventory_.devices.online) + " online, and this one has " +
         (inventory_.cpus | sdk::Set(topology.online)).to_string();
}

Sought Policy::sought_by(const topolet_request& request) const {
  const TopologyNames names(*request.topology, inventory_);
  Sought sought = devices_of(*request.workload, names, options_.kinds);
  sought.cpu_nodes = inventory_.cpu_nodes;
  // Those that somebody chose should be of use. That this machine's own say nothing of another one goes without
  // saying.
  const Roots usual;
  const bool are_chosen = options_.roots.sysfs != usual.sysfs || options_.roots.proc != usual.proc ||
                          (options_.nvml_library != kUsualNvml && !inventory_.nvml.gpus.empty());
  const bool has_some = !sought.devices.empty() || !sought.unknown.empty();
  if (are_chosen && has_some && names.files() == nullptr) sought.unknown.push_back(strangeness(*request.topology));
  return sought;
}

std::vector<Verdict> Policy::verdicts(const topolet_request& request) const {
  const Sought sought = sought_by(request);
  if (std::vector<Verdict> by_cpus = judge_by_cpus(request, sought, options_.rules); !by_cpus.empty()) return by_cpus;
  if (!sought.devices.empty() || !sought.unknown.empty()) return judge(request, sought, options_.rules);
  return options_.keep_free ? judge_keeping_free(request, options_.rules) : std::vector<Verdict>();
}

void Policy::tick(const topolet_tick_request& request, sdk::Wishes& /*wishes*/) {
  inventory_.see(*request.topology);
  if (!inventory_.has_met_files && !std::exchange(has_said_strange_, true)) {
    host_.log(TOPOLET_LOG_WARN, "not used: " + strangeness(*request.topology));
  }
  // Files are there in no time as a rule, and what is slow comes with a later tick.
  constexpr std::chrono::milliseconds kPatience{10};
  if (!looking_.valid()) {
    const std::uint64_t generation = request.topology->generation;
    const bool is_other_machine = generation != std::exchange(generation_, generation);
    looking_ = std::async(std::launch::async, [this, is_other_machine] { return look(is_other_machine); });
  }
  if (looking_.wait_for(kPatience) == std::future_status::ready) take(looking_.get());
}

Policy::News Policy::look(bool for_devices) const {
  News news;
  // Before the specs, so that one written meanwhile is read the next time.
  news.cdi_stamp = cdi_stamp(options_.roots);
  if (news.cdi_stamp != cdi_stamp_) news.cdi = read_cdi(options_.roots);
  if (for_devices || has_changed(inventory_.devices)) news.devices = read_devices(options_.roots, options_.kinds);
  return news;
}

void Policy::take(News news) {
  if (news.devices) inventory_.devices = *std::move(news.devices);
  if (!news.cdi) return;
  cdi_stamp_ = std::move(news.cdi_stamp);
  inventory_.cdi = *std::move(news.cdi);
  for (const std::string& fault : inventory_.cdi.faults) host_.log(TOPOLET_LOG_WARN, fault);
}

}  // namespace topolet::gpu
