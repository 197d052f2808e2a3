#include "core/daemon/daemon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "core/placement/candidates.hpp"
#include "core/topology/discover.hpp"
#include "core/topology/kubepods.hpp"

namespace topolet {
namespace {

constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

std::string read_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

std::string_view short_name(const std::string& path) { return std::string_view(path).substr(path.rfind('/') + 1); }

std::int64_t memory_total(const Topology& topology) {
  return std::accumulate(topology.nodes.begin(), topology.nodes.end(), std::int64_t{0},
                         [](std::int64_t sum, const Node& node) { return sum + node.memory_bytes; });
}

/// Allowed CPUs = online ∩ the pods' cgroup ∩ allowed-cpus. Never cut by the daemon's own cgroup.
Result<LedgerRules> ledger_rules(const Topology& topology, const PlacementOptions& options) {
  LedgerRules rules{topology.allowed, {}, topology.isolated};
  const Result<std::optional<CpuSet>> pods = kubepods_cpus(kCgroupRoot);
  if (!pods) return pods.error();
  if (*pods) rules.allowed &= **pods;
  if (options.allowed_cpus) rules.allowed &= *options.allowed_cpus;
  if (rules.allowed.empty()) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("no CPU is left to place containers on: online are {}, placement.allowed-cpus is {}",
                    topology.online.to_string(), options.allowed_cpus ? options.allowed_cpus->to_string() : "all")};
  }
  rules.reserved = options.reserved_cpus;
  if (!rules.reserved.is_subset_of(topology.online)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("placement.reserved-cpus names CPUs that are not online: {}; online are {}",
                             (rules.reserved - topology.online).to_string(), topology.online.to_string())};
  }
  rules.reserved &= rules.allowed;
  if ((rules.allowed - rules.reserved - rules.isolated).empty()) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("no CPU is left for the shared pool: containers may use {}, of which {} are reserved "
                             "(placement.reserved-cpus) and {} isolated by the kernel",
                             rules.allowed.to_string(), rules.reserved.empty() ? "none" : rules.reserved.to_string(),
                             rules.isolated.empty() ? "none" : rules.isolated.to_string())};
  }
  return rules;
}

/// A daemon in front of itself would call itself without end.
Status check_endpoints(const DaemonOptions& options) {
  for (const std::string& endpoint : {options.runtime, options.image}) {
    std::error_code ignored;
    if (endpoint != options.listen && !std::filesystem::equivalent(endpoint, options.listen, ignored)) continue;
    return Error{Code::kInvalidArgument,
                 fmt::format("daemon.listen and the runtime's socket are the same, {}; topoletd "
                             "needs a socket of its own",
                             options.listen)};
  }
  return {};
}

Status make_parent(const std::string& socket_path) {
  const std::filesystem::path parent = std::filesystem::path(socket_path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (!error) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("cannot make the directory {} of daemon.listen: {}", parent.string(), error.message())};
}

}  // namespace

Daemon::~Daemon() { stop(); }

Status Daemon::open_store(const Options& options) {
  const Clock clock;
  auto opened = Store::open({.directory = options.daemon.state_dir,
                             .boot_id = read_boot_id(),
                             .now_ms = clock.wall().count(),
                             .durability = options.daemon.durability});
  if (!opened) return opened.error();
  store_ = *std::move(opened);
  const OpenReport& report = store_->report();
  if (!report.set_aside.empty()) {
    log_->error("the state database was damaged; it was set aside as {} and begun anew", report.set_aside.string());
  }
  if (report.ended_by_reboot > 0) {
    log_->info("{} placements ended with the reboot", report.ended_by_reboot);
  }
  return {};
}

Status Daemon::create_policies(const Options& options, const std::vector<PluginLibrary>& libraries) {
  for (const PluginOptions& plugin : options.plugins) {
    const auto library = std::find_if(libraries.begin(), libraries.end(),
                                      [&](const PluginLibrary& candidate) { return candidate.id() == plugin.name; });
    if (library == libraries.end()) {
      return Error{Code::kNotFound, fmt::format("plugin {} is enabled but was not loaded", plugin.name)};
    }
    auto policy = library->create({plugin.values.begin(), plugin.values.end()}, log_);
    if (!policy) return policy.error();
    voters_.push_back({*std::move(policy), plugin.weight, plugin.fail_closed});
    log_->info("plugin {} {} from {}", library->id(), library->version(), library->path().string());
  }
  policies_ = std::make_unique<PolicyThread>(
      PolicyThread::Options{.deadline = options.placement.deadline, .clock = {}, .log = log_});
  return {};
}

Status Daemon::make_engine(const Options& options) {
  Result<std::shared_ptr<const Topology>> topology = discover({});
  if (!topology) return topology.error();
  Result<LedgerRules> cpus = ledger_rules(**topology, options.placement);
  if (!cpus) return cpus.error();
  const std::size_t pool = (cpus->allowed - cpus->reserved - cpus->isolated).size();
  if (options.placement.rules.min_shared_cpus >= pool) {
    log_->warn("placement.min-shared-cpus = {} keeps all {} CPUs of the pool: no container gets CPUs of its own",
               options.placement.rules.min_shared_cpus, pool);
  }
  log_->info("placing on CPUs {}, reserved {}, on {} NUMA node(s)", cpus->allowed.to_string(),
             cpus->reserved.empty() ? "none" : cpus->reserved.to_string(), (*topology)->nodes.size());

  const PlacementOptions& placement = options.placement;
  const auto decide_with_policies = [this,
                                     rules = placement.rules](const std::shared_ptr<const PolicyRequest>& request) {
    return policies_->run_as<Decision>(
        voters_, [request, rules](const std::vector<Voter>& voters) { return decide(*request, rules, voters); });
  };
  Engine::Options engine;
  engine.handlers = placement.handlers;
  engine.pending_timeout = placement.pending_timeout;
  engine.demand_rules.memory_total_bytes = memory_total(**topology);
  std::vector<Candidate> candidates = make_candidates(**topology, cpus->allowed);
  engine_ = std::make_unique<Engine>(std::move(engine), Engine::Parts{.runtime = *proxy_,
                                                                      .store = *store_,
                                                                      .cpus = *std::move(cpus),
                                                                      .placing = {.topology = *topology,
                                                                                  .candidates = std::move(candidates),
                                                                                  .rules = placement.rules,
                                                                                  .decide = decide_with_policies},
                                                                      .kernel = Kernel(),
                                                                      .clock = {},
                                                                      .log = *log_});
  return engine_->start();
}

Result<std::unique_ptr<Daemon>> Daemon::start(const Options& options, const std::vector<PluginLibrary>& libraries,
                                              const std::shared_ptr<Log>& log) {
  std::unique_ptr<Daemon> daemon(new Daemon());
  daemon->log_ = log;
  if (Status apart = check_endpoints(options.daemon); !apart) return apart.error();
  if (Status ready = make_parent(options.daemon.listen); !ready) return ready.error();
  auto listener = Listener::open({.path = options.daemon.listen, .like = options.daemon.runtime}, *log);
  if (!listener) return listener.error();
  daemon->listener_ = *std::move(listener);
  if (Status opened = daemon->open_store(options); !opened) return opened.error();
  if (Status created = daemon->create_policies(options, libraries); !created) return created.error();

  ProxyHooks hooks;
  for (const char* method : kInterceptedMethods) hooks.intercepted.insert(method);
  for (const char* method : kObservedMethods) hooks.observed.insert(method);
  Daemon* self = daemon.get();
  hooks.on_call = [self](std::shared_ptr<Call> call) { self->engine_->on_call(std::move(call)); };
  hooks.on_observed = [self](const std::string& path, const std::string& request, const std::string& response) {
    self->engine_->on_observed(short_name(path), request, response);
  };
  hooks.on_connected = [self] { self->engine_->on_connected(); };
  daemon->proxy_ = std::make_unique<Proxy>(ProxyOptions{.runtime_endpoint = "unix://" + options.daemon.runtime,
                                                        .image_endpoint = "unix://" + options.daemon.image},
                                           std::move(hooks), *log);
  if (Status made = daemon->make_engine(options); !made) return made.error();
  daemon->proxy_->start();
  daemon->listener_->start([self](UniqueFd connection) { self->proxy_->accept(std::move(connection)); });
  log->info("topoletd ready on unix://{}", options.daemon.listen);
  return daemon;
}

void Daemon::stop() {
  if (listener_) listener_->stop();
  if (proxy_) proxy_->stop();
  if (engine_) engine_->stop();
  engine_.reset();
  proxy_.reset();
  store_.reset();
  listener_.reset();
}

}  // namespace topolet
