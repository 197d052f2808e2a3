#include "core/daemon/daemon.hpp"

#include <fmt/format.h>
#include <topolet/events.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "core/cri/intercepted_methods.hpp"
#include "core/daemon/descriptors.hpp"
#include "core/daemon/machine.hpp"
#include "core/daemon/plugin_state.hpp"
#include "core/daemon/service_manager.hpp"
#include "core/topology/discover.hpp"
#include "core/topology/kubepods.hpp"

namespace topolet {
namespace {

/// How long a large answer may go unread while there is too much memory in use.
constexpr std::chrono::seconds kUnreadAge{1};
/// How long the operator waits for the engine.
constexpr std::chrono::seconds kPatience{5};
constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

std::string read_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
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

Status make_parent(const std::string& socket_path, const char* option) {
  const std::filesystem::path parent = std::filesystem::path(socket_path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (!error) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("cannot make the directory {} of {}: {}", parent.string(), option, error.message())};
}

/// The directory that plugins are loaded from changes with a restart only.
RawConfig with_plugin_dir(RawConfig raw, const std::filesystem::path& plugin_dir) {
  bool is_set = false;
  for (Setting& setting : raw.settings) {
    if (setting.section != "daemon" || setting.key != "plugin-dir") continue;
    setting.value = plugin_dir.string();
    is_set = true;
  }
  if (!is_set) raw.settings.push_back({"daemon", "plugin-dir", plugin_dir.string(), raw.file.string()});
  return raw;
}

}  // namespace

Daemon::Daemon(Surroundings surroundings) : around_(std::move(surroundings)), log_(around_.log) {}

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
  if (report.lost_after > 0) {
    log_->error(
        "the state database went back: it ends before generation {}, which was committed in this boot; what "
        "runs is taken from the runtime",
        report.lost_after);
  }
  if (report.ended_by_reboot > 0) {
    log_->info("{} placements ended with the reboot", report.ended_by_reboot);
  }
  return {};
}

Status Daemon::create_plugins(const Setup& setup) {
  auto values = PluginValues::open(setup.config.options.daemon.state_dir);
  if (!values) return values.error();
  plugins_ = std::make_unique<Plugins>(
      PolicyThread::Options{.deadline = setup.config.options.placement.deadline,
                            .clock = {},
                            .log = log_,
                            .on_quarantine = [audit = quarantine_audit_](
                                                 const auto& plugin, const auto& why) { audit->note(plugin, why); }},
      Plugins::Keepers{around_.crashes, around_.control}, std::make_shared<StateInDatabase>(*std::move(values)));
  return plugins_->replace(setup, Plugins::Past::kCounts);
}

Status Daemon::make_engine(const Options& options) {
  watch_ = std::make_unique<MachineWatch>(MachineWatch::Options{.placement = options.placement}, *log_);
  Result<std::shared_ptr<const Topology>> topology = discover({});
  if (!topology) return topology.error();
  const Result<std::optional<CpuSet>> pods = kubepods_cpus(kCgroupRoot);
  if (!pods) return pods.error();
  Result<engine::Engine::Machine> machine = make_machine(*topology, options.placement, *pods);
  if (!machine) return machine.error();
  const engine::LedgerRules& cpus = machine->cpus;
  const std::size_t pool = (cpus.allowed - cpus.reserved - cpus.isolated).size();
  if (options.placement.rules.min_shared_cpus >= pool) {
    log_->warn("placement.min-shared-cpus = {} keeps all {} CPUs of the pool: no container gets CPUs of its own",
               options.placement.rules.min_shared_cpus, pool);
  }
  log_->info("placing on CPUs {}, reserved {}, on {} NUMA node(s)", cpus.allowed.to_string(),
             cpus.reserved.empty() ? "none" : cpus.reserved.to_string(), (*topology)->nodes.size());

  const PlacementOptions& placement = options.placement;
  const auto decide_with_policies = [this](const std::shared_ptr<const PolicyRequest>& request,
                                           const DecideRules& rules) {
    // By value, as a call that is given up on outlives this one.
    Decision decision = plugins_->decide<Decision>(
        [request, rules](const std::vector<Voter>& voters) { return decide(*request, rules, voters); });
    for (const Decision::BadAnswer& bad : decision.bad_answers) plugins_->report_bad_answer(bad.policy, bad.what);
    return decision;
  };
  const auto hears = [this] { return plugins_->has(TOPOLET_EVENTS_ID); };
  const auto notify = [this](std::shared_ptr<const Happening> happening) { plugins_->notify(std::move(happening)); };
  const auto tick = [this](const auto& view) { return plugins_->tick(view); };
  engine::Engine::Options settings = engine_options(placement, **topology);
  settings.writing.patience = options.daemon.store_patience;
  engine_ = std::make_unique<engine::Engine>(
      std::move(settings), engine::Engine::Parts{.runtime = *proxy_,
                                                 .store = *store_,
                                                 .cpus = std::move(machine->cpus),
                                                 .placing = {.topology = *topology,
                                                             .candidates = std::move(machine->candidates),
                                                             .rules = placement.rules,
                                                             .decide = decide_with_policies},
                                                 .kernel = engine::Kernel(),
                                                 .clock = {},
                                                 .log = *log_,
                                                 .somebody_hears = hears,
                                                 .notify = notify,
                                                 .tick_plugins = tick});
  if (Status started = engine_->start(); !started) return started;
  watch_->start(*topology, [this](engine::Engine::Machine now) { engine_->change_machine(std::move(now)); });
  quarantine_audit_->open(
      [this](const std::string& event, const std::string& reason) { engine_->remark(event, reason); });
  return {};
}

Status Daemon::open_listener(const DaemonOptions& options) {
  if (Status apart = check_endpoints(options); !apart) return apart;
  if (Status ready = make_parent(options.listen, "daemon.listen"); !ready) return ready;
  const Result<int> inherited = take_inherited_socket(options.listen);
  if (!inherited) return inherited.error();
  auto listener = Listener::open({.path = options.listen,
                                  .like = options.runtime,
                                  .inherited_fd = *inherited,
                                  .max_connections = allow_connections(options.max_connections, *log_),
                                  .max_memory_bytes = options.max_memory_bytes},
                                 *log_);
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  return {};
}

void Daemon::make_proxy(const DaemonOptions& options) {
  ProxyHooks hooks;
  hooks.intercepted = intercepted_names();
  hooks.observed = observed_names();
  hooks.on_call = [this](std::shared_ptr<Call> call) { engine_->on_call(std::move(call)); };
  hooks.on_observed = [this](Observation seen) { engine_->on_observed(std::move(seen)); };
  hooks.on_connected = [this] { engine_->on_connected(); };
  proxy_ = std::make_unique<Proxy>(ProxyOptions{.runtime_endpoint = "unix://" + options.runtime,
                                                .image_endpoint = "unix://" + options.image,
                                                .max_message_bytes = options.max_message_bytes,
                                                .max_metadata_bytes = options.max_metadata_bytes},
                                   std::move(hooks), *log_);
}

void Daemon::serve() {
  proxy_->start();
  listener_->start([this](UniqueFd connection) { proxy_->accept(std::move(connection)); },
                   [this] {
                     const std::size_t count = proxy_->cancel_unread_for(kUnreadAge);
                     if (count > 0) log_->warn("cancelled {} call(s) whose clients do not read the answer", count);
                   });
}

Status Daemon::open_control(const DaemonOptions& options) {
  if (options.control == options.listen) {
    return Error{Code::kInvalidArgument,
                 fmt::format("daemon.control and daemon.listen are the same, {}; the kubelet's clients must not reach "
                             "the control socket",
                             options.listen)};
  }
  if (Status ready = make_parent(options.control, "daemon.control"); !ready) return ready;
  ControlAnswers answers;
  answers.status = [this, options](control::v1::StatusResponse& response) { return report(options, response); };
  answers.list_plugins = [this](control::v1::ListPluginsResponse& response) {
    plugins_->describe(response);
    return Status();
  };
  answers.reset_plugin = [this](const std::string& id) { return plugins_->reset(id); };
  answers.reload = [this](control::v1::ReloadResponse& response) {
    const Result<Reloaded> reloaded = reload();
    if (!reloaded) return Status(reloaded.error());
    for (const std::string& plugin : reloaded->plugins) response.add_plugins(plugin);
    for (const std::string& key : reloaded->restart_needed) response.add_restart_needed(key);
    return Status();
  };
  auto opened = ControlServer::open(options.control, std::move(answers), *log_);
  if (!opened) return opened.error();
  control_ = *std::move(opened);
  return {};
}

Status Daemon::report(const DaemonOptions& options, control::v1::StatusResponse& response) {
  const Result<engine::EngineSummary> engine = engine_->summary(kPatience);
  if (!engine) return engine.error();
  response.set_version(TOPOLET_VERSION);
  const auto uptime = std::chrono::steady_clock::now() - started_;
  response.set_uptime_s(std::chrono::duration_cast<std::chrono::seconds>(uptime).count());
  response.set_listen(options.listen);
  response.set_runtime(options.runtime);
  response.set_runtime_connected(proxy_->connected());
  response.set_state_dir(options.state_dir.string());
  response.set_store_degraded(engine->store_degraded);
  response.set_reconciled(engine->reconciled);
  for (const auto& [mode, count] : engine->containers) (*response.mutable_containers())[mode] = count;
  response.set_generation(engine->generation);
  response.set_allowed_cpus(engine->allowed.to_string());
  response.set_pool_cpus(engine->pool.to_string());
  response.set_reserved_cpus(engine->reserved.to_string());
  response.set_exclusive_cpus(engine->exclusive.to_string());
  response.set_withheld_cpus(engine->withheld.to_string());
  return {};
}

Result<Daemon::Reloaded> Daemon::reload() {
  MutexLock lock(reloading_);
  Result<Reloaded> reloaded = apply(around_.read_config());
  if (!reloaded) {
    log_->error("the configuration stays as it was: {}", reloaded.error().message);
    return reloaded;
  }
  log_->info("reloaded; plugins: {}",
             reloaded->plugins.empty() ? "none" : fmt::format("{}", fmt::join(reloaded->plugins, ", ")));
  for (const std::string& key : reloaded->restart_needed) log_->warn("{} has changed: restart needed", key);
  return reloaded;
}

Result<Daemon::Reloaded> Daemon::apply(const RawConfig& raw) {
  Reloaded reloaded;
  reloaded.restart_needed = changed_for_restart(raw_, raw);
  const Setup setup = make_setup(with_plugin_dir(raw, plugin_choice(raw_).plugin_dir), plugins_->libraries(),
                                 {.thread = &around_.control});
  plugins_->remember(setup.plugins.libraries);
  if (const std::vector<std::string> mistakes = setup.mistakes(); !mistakes.empty()) {
    return Error{Code::kInvalidArgument, fmt::format("{}", fmt::join(mistakes, "\n"))};
  }
  if (Status replaced = plugins_->replace(setup, Plugins::Past::kForgiven); !replaced) return replaced.error();
  // It was judged with the rest and cannot fail.
  static_cast<void>(set_level(*log_, setup.config.options.daemon.log_level));
  for (const PluginOptions& plugin : setup.config.options.plugins) reloaded.plugins.push_back(plugin.name);
  return reloaded;
}

Result<std::unique_ptr<Daemon>> Daemon::start(const Setup& setup, Surroundings surroundings) {
  const Options& options = setup.config.options;
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(surroundings)));
  {
    MutexLock lock(daemon->reloading_);
    daemon->raw_ = setup.raw;
  }
  if (Status opened = daemon->open_listener(options.daemon); !opened) return opened.error();
  if (Status opened = daemon->open_control(options.daemon); !opened) return opened.error();
  if (Status opened = daemon->open_store(options); !opened) return opened.error();
  // Not before the store has locked the directory.
  if (Status settled = daemon->around_.crashes.settle(); !settled) return settled.error();
  if (Status created = daemon->create_plugins(setup); !created) return created.error();
  daemon->make_proxy(options.daemon);
  if (Status made = daemon->make_engine(options); !made) return made.error();
  daemon->serve();
  daemon->control_->start();
  notify_ready();
  daemon->log_->info("topoletd ready on unix://{}", options.daemon.listen);
  return daemon;
}

void Daemon::stop() {
  notify_stopping();
  if (control_) control_->stop();
  if (listener_) listener_->stop();
  if (proxy_) proxy_->drain();
  if (listener_) listener_->hang_up();
  if (proxy_) proxy_->stop();
  quarantine_audit_->close();
  if (watch_) watch_->stop();
  if (engine_) engine_->stop();
  engine_.reset();
  proxy_.reset();
  control_.reset();
  store_.reset();
  listener_.reset();
}

}  // namespace topolet
