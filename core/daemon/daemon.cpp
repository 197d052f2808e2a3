#include "core/daemon/daemon.hpp"

#include <fmt/format.h>
#include <topolet/events.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/nri_decision_time.hpp"
#include "core/cri/messages/intercepted_methods.hpp"
#include "core/cri/messages/shown_status.hpp"
#include "core/cri/socket/descriptor_limit.hpp"
#include "core/daemon/describe_plugins.hpp"
#include "core/daemon/describe_setup.hpp"
#include "core/daemon/describe_status.hpp"
#include "core/daemon/service_manager.hpp"
#include "core/machine/cpu_manager_state.hpp"
#include "core/machine/kubepods.hpp"
#include "core/machine/machine.hpp"
#include "core/machine/memory_modes.hpp"
#include "core/machine/rdt_classes.hpp"
#include "core/placement/decide.hpp"
#include "core/topology/discover.hpp"
#include "store/inspect.hpp"
#include "store/plugin_state_table.hpp"

namespace topolet::daemon {
namespace {

/// Pods that start with topoletd read from the same disk.
constexpr std::chrono::seconds kCheckAfter{30};
/// The age that the line in `systemctl status` may have.
constexpr std::chrono::milliseconds kStatusAge{2000};
/// The time that the line waits for the engine, which has answered just before.
constexpr std::chrono::seconds kStatusPatience{1};
constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

std::string read_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

/// The directory that plugins are loaded from changes with a restart only.
config::RawConfig with_plugin_dir(config::RawConfig raw, const std::filesystem::path& plugin_dir) {
  bool is_set = false;
  for (config::ConfigEntry& entry : raw.entries) {
    if (entry.section != "daemon" || entry.key != "plugin-dir") continue;
    entry.value = plugin_dir.string();
    is_set = true;
  }
  if (!is_set) raw.entries.push_back({"daemon", "plugin-dir", plugin_dir.string(), raw.file.string()});
  return raw;
}

}  // namespace

Status make_parent(const std::string& socket_path, const char* option) {
  const std::filesystem::path parent = std::filesystem::path(socket_path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (!error) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("cannot create the directory {} for {}: {}", parent.string(), option, error.message())};
}

Daemon::Daemon(config::DaemonOptions options, Deps deps)
    : deps_(std::move(deps)), log_(deps_.log), options_(std::move(options)) {}

Daemon::~Daemon() { stop(); }

Result<std::unique_ptr<Daemon>> Daemon::start(const plugin::LoadedConfig& setup, Deps deps) {
  const config::Options& options = setup.config.options;
  std::unique_ptr<Daemon> daemon(new Daemon(options.daemon, std::move(deps)));
  {
    MutexLock lock(daemon->reloading_);
    daemon->raw_ = setup.raw;
  }
  if (Status opened = daemon->open_listener(options.daemon); !opened) return opened.error();
  if (Status opened = daemon->open_control(options.daemon); !opened) return opened.error();
  if (Status locked = daemon->lock_runtime(options.daemon, setup.raw.file); !locked) return locked.error();
  daemon->open_watch(options.daemon);
  notify_status(fmt::format("reading the state database in {}", options.daemon.state_dir.string()));
  if (Status opened = daemon->open_store(options); !opened) return opened.error();
  daemon->recall_denials();
  daemon->check_store();
  // Not before the store has locked the directory.
  if (Status settled = daemon->deps_.crashes.clear_new_marks(); !settled)
    daemon->log_->error("{}", settled.error().message);
  if (Status read = daemon->read_machine(options.placement); !read) return read.error();
  daemon->open_record(options.daemon);
  notify_status("starting the plugins");
  if (Status created = daemon->create_plugins(setup); !created) return created.error();
  daemon->make_proxy(options.daemon);
  if (Status made = daemon->make_engine(options, setup.raw); !made) return made.error();
  daemon->accept_clients();
  daemon->watch_health();
  if (daemon->deps_.on_serving) daemon->deps_.on_serving();
  notify_ready();
  if (is_notified()) daemon->start_watchdog(options.daemon);
  daemon->log_->info("topoletd ready {}",
                     options.daemon.listen.empty() ? "for the runtime's NRI" : "on unix://" + options.daemon.listen);
  return daemon;
}

Status Daemon::open_listener(const config::DaemonOptions& options) {
  if (options.listen.empty()) return {};
  if (Status ready = make_parent(options.listen, "daemon.listen"); !ready) return ready;
  Result<int> inherited = take_inherited_socket(options.listen);
  if (!inherited) return inherited.error();
  int lock = -1;
  if (deps_.sockets) {
    inherited = deps_.sockets->listen.socket.release();
    lock = deps_.sockets->listen.lock.release();
  }
  auto listener = cri::Listener::open({.path = options.listen,
                                       .copy_access_from = options.runtime,
                                       .inherited_fd = *inherited,
                                       .inherited_lock_fd = lock,
                                       .max_connections = cri::limit_connections(options.max_connections, *log_),
                                       .max_memory_bytes = options.max_memory_bytes,
                                       .memory_claims = memory_claims_},
                                      *log_);
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  return {};
}

Status Daemon::open_control(const config::DaemonOptions& options) {
  if (Status ready = make_parent(options.control, "daemon.control"); !ready) return ready;
  control::ControlHandlers handlers;
  handlers.status = [this, options](control::v1::StatusResponse& response) { return report(options, response); };
  handlers.list_plugins = [this](control::v1::ListPluginsResponse& response) {
    describe_plugins(plugins_->describe(), response);
    return Status();
  };
  handlers.reset_plugin = [this](const std::string& id) { return plugins_->reset(id); };
  handlers.reload = [this](control::v1::ReloadResponse& response) {
    const Result<ReloadResult> reloaded = reload();
    if (!reloaded) return Status(reloaded.error());
    for (const std::string& plugin : reloaded->plugins) response.add_plugins(plugin);
    for (const std::string& key : reloaded->restart_needed) response.add_restart_needed(key);
    return Status();
  };
  handlers.restart = [this](control::v1::RestartResponse& response) -> Status {
    const Result<pid_t> successor = deps_.start_successor();
    if (!successor) return successor.error();
    log_->info("process {} was started to take over", *successor);
    response.set_process(*successor);
    return {};
  };
  handlers.set_capacity = [this](const auto& request, auto& response) { return set_capacity(request, response); };
  handlers.heal = [this](const auto& request, auto& response) { return heal(request, response); };
  handlers.load = [this](const auto& request, auto& response) { return report_load(request, response); };
  handlers.release = [this](const auto& request, auto& response) { return release(request, response); };
  cri::Listener::Sockets sockets = deps_.sockets ? std::move(deps_.sockets->control) : cri::Listener::Sockets();
  auto opened = control::open_server(
      {.path = options.control, .max_memory_bytes = options.max_memory_bytes, .memory_claims = memory_claims_},
      std::move(sockets), std::move(handlers), *log_);
  if (!opened) return opened.error();
  control_ = *std::move(opened);
  return {};
}

/// Without the lock topoletd serves: only a second one would not notice.
Status Daemon::lock_runtime(const config::DaemonOptions& options, const std::filesystem::path& config_file) {
  std::vector<UniqueFd> handed_over = deps_.sockets ? std::move(deps_.sockets->runtime_locks) : std::vector<UniqueFd>();
  std::error_code ignored;
  const std::filesystem::path config = config_file.empty() ? "" : std::filesystem::absolute(config_file, ignored);
  auto lock = cri::RuntimeLock::acquire(cri::RuntimeLock::directory(), options.runtime,
                                        {::getpid(), options.control, config.string()}, std::move(handed_over));
  if (lock) {
    runtime_lock_.emplace(*std::move(lock));
  } else if (lock.error().code == Code::kUnavailable) {
    log_->warn("a second topoletd on {} would not be noticed: {}", options.runtime, lock.error().message);
  } else {
    return lock.error();
  }
  return {};
}

Status Daemon::open_store(const config::Options& options) {
  const Clock clock;
  const store::StoreOptions store_options{.directory = options.daemon.state_dir,
                                          .boot_id = read_boot_id(),
                                          .now_ms = clock.wall().count(),
                                          .durability = options.daemon.durability,
                                          .check_rows = engine::Engine::check_stored,
                                          .integrity_check_pace = {.delay = kCheckAfter},
                                          .retention = options.daemon.retention,
                                          .may_make_directory = deps_.sockets == nullptr};
  auto opened = store::Store::open(store_options);
  // Pods do not wait for a full disk. A misconfigured store is reported before any pod comes.
  if (!opened && !store::is_misconfigured(opened.error())) {
    log_->error("{}; topoletd goes on without the state database until it can write it", opened.error().message);
    opened = store::Store::open_detached(store_options, opened.error());
  }
  if (!opened) return opened.error();
  store_ = *std::move(opened);
  const store::OpenReport& report = store_->report();
  if (report.was_too_old) {
    log_->warn("the state database was moved to {} and a new one was created; what runs is read from the runtime: {}",
               report.set_aside.string(), report.set_aside_because);
  } else if (!report.set_aside.empty()) {
    log_->error("the state database was damaged; it was moved to {} and a new one was created: {}",
                report.set_aside.string(), report.set_aside_because);
  }
  if (report.newest_lost_generation > 0) {
    log_->error(
        "the state database lost its newest changes: it ends before generation {}, which topoletd acted on in this "
        "boot; which containers run is read from the runtime",
        report.newest_lost_generation);
  }
  if (report.ended_by_reboot > 0) {
    log_->info("{} placement{} ended with the reboot", report.ended_by_reboot, report.ended_by_reboot == 1 ? "" : "s");
  }
  return {};
}

Status Daemon::create_plugins(const plugin::LoadedConfig& setup) {
  const auto state = std::make_shared<store::PluginStateTable>(setup.config.options.daemon.state_dir);
  store_->on_reopened([state] { state->reopen(); });
  plugins_ = std::make_unique<plugin::RunningPlugins>(
      plugin::PolicyThread::Options{
          .deadline = setup.config.options.placement.deadline,
          .decision_time = is_nri_front()
                               ? std::min(setup.config.options.placement.decision_time, config::kNriDecisionTime)
                               : setup.config.options.placement.decision_time,
          .clock = recorder_ ? recorder_->clock() : Clock(),
          .log = log_,
          .on_quarantine = [audit = audit_outlet_](const auto& plugin,
                                                   const auto& why) { audit->note_quarantine(plugin, why); }},
      plugin::RunningPlugins::Deps{deps_.crashes, deps_.control, [this] { return machine_now(); }},
      replay::recorded_state(state, recorder_));
  const auto last_setup = store_->last_setup();
  if (!last_setup) return last_setup.error();
  setup_ = *last_setup + 1;
  if (recorder_) recorder_->announce_setup({setup_, shown_entries(setup, config::entries_in_force(setup.raw))});
  if (Status replaced = plugins_->replace(setup, plugin::RunningPlugins::CrashHistory::kApplied, setup_); !replaced)
    return replaced;
  if (recorder_) recorder_->use_setup(setup_, plugins_->names_read());
  if (feed_) feed_->set_plugins(list_plugins());
  return {};
}

void Daemon::make_proxy(const config::DaemonOptions& options) {
  cri::ProxyHooks hooks;
  if (!is_nri_front()) {
    hooks.intercepted = cri::intercepted_names();
    hooks.observed = cri::observed_names();
    hooks.on_call = [this](const std::shared_ptr<cri::Call>& call) { front_->on_call(call); };
    hooks.on_observed = [this](const cri::ObservedMessage& seen) { front_->on_observed(seen); };
    hooks.rewritten = cri::status_names();
    hooks.rewrite = [this](const cri::ObservedMessage& answer) { return front_->rewrite(answer); };
  }
  hooks.on_own_call = [this](std::shared_ptr<cri::OwnCall> call) {
    if (call->socket() == cri::OwnSocket::kWatch) {
      watch_server_->on_call(std::move(call));
    } else {
      control_->on_call(std::move(call));
    }
  };
  hooks.on_connected = [this] { engine_->on_connected(); };
  if (metrics_) hooks.on_finished = [this](const cri::FinishedCall& call) { metrics_->on_call(call); };
  proxy_ = std::make_unique<cri::Proxy>(cri::ProxyOptions{.runtime_endpoint = "unix://" + options.runtime,
                                                          .image_endpoint = "unix://" + options.image,
                                                          .max_message_bytes = options.max_message_bytes,
                                                          .max_metadata_bytes = options.max_metadata_bytes},
                                        std::move(hooks), *log_);
  runtime_probe_ = std::make_unique<RuntimeProbe>(*proxy_, RuntimeProbe::Options());
}

/// Reads the machine. Called before the plugins are loaded, which judge their options by it. Later changes are noticed.
Status Daemon::read_machine(const config::PlacementOptions& options) {
  watch_ = std::make_unique<machine::MachineWatch>(machine::MachineWatch::Options{.placement = options}, *log_);
  Result<std::shared_ptr<const topology::Topology>> topology = topology::discover({});
  if (!topology) return topology.error();
  first_topology_ = *std::move(topology);
  return {};
}

std::shared_ptr<const topology::Topology> Daemon::machine_now() const {
  if (first_topology_ != nullptr) return first_topology_;
  const Result<std::shared_ptr<const topology::Topology>> topology = topology::discover({});
  return topology ? *topology : nullptr;
}

Status Daemon::make_engine(const config::Options& options, const config::RawConfig& raw) {
  const std::shared_ptr<const topology::Topology> topology = std::move(first_topology_);
  const Result<std::optional<CpuSet>> pods = machine::kubepods_cpus(kCgroupRoot);
  if (!pods) return pods.error();
  if (Status fits = machine::check_machine(*topology, options.placement, *pods); !fits) return fits;
  engine::Engine::Machine machine = machine::make_machine(topology, options.placement, *pods);
  const engine::CpuInventory& cpus = machine.cpus;
  log_->info("placing containers on CPUs {} (reserved: {}) of {}", cpus.allowed.to_string(),
             cpus.reserved.empty() ? "none" : cpus.reserved.to_string(), counted(topology->nodes.size(), "NUMA node"));

  engine::Engine::Options settings = machine::engine_options(options.placement, *topology);
  settings.writer_options.patience = options.daemon.store_patience;
  settings.kubelet_cpus = machine::read_cpu_manager_state(options.daemon.cpu_manager_state, *log_);
  settings.setup = describe_setup(setup_, raw, plugins_->describe());
  placement::PlacementRules rules = machine::placement_rules(options.placement);
  if (rules.drop_exclusive_quota && !engine::ProcessCgroups().quota_hierarchy()) {
    log_->warn(
        "placement.exclusive-quota = drop is taken as keep: no cgroup hierarchy with CFS quotas can be seen from here, "
        "and those of pods would stay");
    rules.drop_exclusive_quota = false;
  }
  const operations::DemandRules demand_rules = settings.demand_rules;
  runtime_client_ = std::make_unique<cri::RuntimeClient>(*proxy_, demand_rules);
  if (is_nri_front()) {
    own_updates_ = std::make_unique<nri::OwnUpdates>(*runtime_client_);
    settable_ = std::make_shared<nri::SettableNow>(machine::memory_modes());
  }
  make_sampler(options.daemon);
  engine_ = std::make_unique<engine::Engine>(std::move(settings), engine_deps(topology, std::move(machine), rules));
  if (!is_nri_front()) front_ = std::make_unique<cri::CriFront>(cri::CriFront::Deps{*engine_, demand_rules, *log_});
  if (Status started = engine_->start(); !started) return started;
  plugins_->wake_by([engine = engine_.get()](std::chrono::milliseconds until) { engine->tick_plugins_in(until); });
  watch_->start(topology,
                {.on_change = [this](engine::Engine::Machine now) { engine_->change_machine(std::move(now)); },
                 .on_flicker = [this] { engine_->verify_cpusets(); }});
  open_nri(options.nri, demand_rules);
  sampler_->start();
  audit_outlet_->open(
      [this](engine::AuditEvent event, const std::string& reason) { engine_->record_event(event, reason); });
  return {};
}

/// Connects the engine with the plugins.
engine::Engine::Deps Daemon::engine_deps(const std::shared_ptr<const topology::Topology>& topology,
                                         engine::Engine::Machine machine,
                                         const placement::PlacementRules& configured_rules) {
  std::vector<engine::Observer*> observers{&denials_};
  if (feed_) observers.insert(observers.end(), {feed_.get(), metrics_.get()});
  if (operations_) observers.push_back(operations_.get());
  operations::ContainerRuntime& runtime = *runtime_client_;
  return {.runtime = own_updates_ ? *own_updates_ : runtime,
          .store = *store_,
          .cpus = std::move(machine.cpus),
          .placer = {.topology = topology,
                     .candidates = std::move(machine.candidates),
                     .rules = configured_rules,
                     .decide = [this](const auto& request, const auto& rules) { return decide(request, rules); },
                     .annotations = [this] { return plugins_->annotations(); },
                     .rdt_classes = std::make_shared<engine::RdtClasses>([] { return machine::rdt_classes(); }),
                     .settable = [now = settable_] { return now ? now->get() : placement::Settable{.through = "CRI"}; },
                     .load = [this] { return sampler_->load(); }},
          .kernel = engine::ProcessCgroups(),
          .clock = {},
          .log = *log_,
          .any_plugin_handles_events = [this] { return plugins_->has(TOPOLET_EVENTS_ID); },
          .publish_event = [this](auto event) { publish(std::move(event)); },
          .tick_plugins = [this](const auto& view) { return tick(view); },
          .besteffort_share = [this] { return plugins_->besteffort_share(); },
          .observers = std::move(observers)};
}

void Daemon::accept_clients() {
  proxy_->start();
  if (listener_) {
    listener_->start([this](UniqueFd connection) { return proxy_->accept(std::move(connection)); },
                     [this](bool is_short) { proxy_->set_memory_short(is_short); });
  }
  control_->start(
      [this](UniqueFd connection) { return proxy_->accept_own(std::move(connection), cri::OwnSocket::kControl); });
  if (watch_server_) {
    watch_server_->start(
        [this](UniqueFd connection) { return proxy_->accept_own(std::move(connection), cri::OwnSocket::kWatch); });
  }
  is_serving_ = true;
}

/// Tells the service manager every so often that the loops turn, and how things are.
void Daemon::start_watchdog(const config::DaemonOptions& options) {
  std::vector<Watchdog::Loop> loops;
  loops.push_back({"the engine's loop", "no container can be created", [this](std::function<void()> work) {
                     engine_->read_ledger([work = std::move(work)](const engine::Ledger&) { work(); });
                   }});
  loops.push_back(
      {"the proxy's loop", "no call goes on", [this](std::function<void()> work) { proxy_->post(std::move(work)); }});
  if (listener_) {
    loops.push_back({"the listener's loop", "nobody can connect",
                     [this](std::function<void()> work) { listener_->post(std::move(work)); }});
  }
  const auto period = watchdog_period();
  watchdog_ = std::make_unique<Watchdog>(
      Watchdog::Options{.every = period ? std::min(kStatusAge, *period / 3) : kStatusAge,
                        .warn_after = period ? *period / 3 : Watchdog::Options().warn_after},
      std::move(loops),
      [this, listen = options.listen, runtime = options.runtime, told = std::string()]() mutable {
        notify_alive();
        const Result<engine::EngineSummary> engine = engine_->summary(kStatusPatience);
        if (!engine) return;
        std::string status = describe_status({.listen = listen,
                                              .runtime = runtime,
                                              .store_damage = store_damage_->get(),
                                              .reload_error = reload_error_.get(),
                                              .runtime_connected = proxy_->connected() && runtime_probe_->answers()},
                                             *engine);
        if (status != told) notify_status(status);
        told = std::move(status);
      },
      *log_);
}

/// Beside all else: with a million decisions it takes about a minute.
void Daemon::check_store() {
  store_->check_integrity([audit = audit_outlet_, log = log_,
                           damage = store_damage_](const store::IntegrityReport& found) {
    if (found.damage.empty()) {
      const std::string read =
          fmt::format("the whole state database was read without an error: {} in {} tables and indexes, in {} s",
                      counted(found.entries, "row"), found.trees,
                      std::chrono::duration_cast<std::chrono::seconds>(found.duration).count());
      return audit->note(engine::AuditEvent::kStoreChecked, read);
    }
    const std::string damaged = fmt::format(
        "the state database is damaged: {}; topoletd goes on with what it has in memory, and sets the file aside when "
        "it is started next",
        found.damage);
    log->error("{}", damaged);
    damage->set(found.damage);
    audit->note(engine::AuditEvent::kStoreDamaged, damaged);
  });
}

Result<Daemon::ReloadResult> Daemon::reload() {
  MutexLock lock(reloading_);
  notify_reloading();
  Result<ReloadResult> reloaded = apply_config(deps_.read_config());
  reload_error_.set(reloaded ? "" : reloaded.error().message);
  if (metrics_) metrics_->on_reload(static_cast<bool>(reloaded));
  notify_ready();
  if (!reloaded) {
    log_->error("the configuration was not changed: {}", reloaded.error().message);
    return reloaded;
  }
  log_->info("reloaded; plugins: {}",
             reloaded->plugins.empty() ? "none" : fmt::format("{}", fmt::join(reloaded->plugins, ", ")));
  for (const std::string& key : reloaded->restart_needed) {
    log_->warn("{} has changed; restart topoletd to apply it", key);
  }
  return reloaded;
}

Result<Daemon::ReloadResult> Daemon::apply_config(const config::RawConfig& raw) {
  ReloadResult reloaded;
  reloaded.restart_needed = keys_needing_restart(raw_, raw);
  const plugin::LoadedConfig setup = load_config(with_plugin_dir(raw, enabled_plugins(raw_).plugin_dir),
                                                 plugins_->libraries(), {.thread = &deps_.control});
  plugins_->add_libraries(setup.plugins.libraries);
  if (const std::vector<std::string> mistakes = setup.mistakes(); !mistakes.empty()) {
    return Error{Code::kInvalidArgument, fmt::format("{}", fmt::join(mistakes, "; "))};
  }
  // A number that no row tells of, where this fails, is of no decision.
  ++setup_;
  if (recorder_) recorder_->announce_setup({setup_, shown_entries(setup, in_force_after_reload(raw_, raw).entries)});
  if (Status replaced = plugins_->replace(setup, plugin::RunningPlugins::CrashHistory::kForgotten, setup_); !replaced)
    return replaced.error();
  if (recorder_) recorder_->use_setup(setup_, plugins_->names_read());
  engine_->change_setup(describe_setup(setup_, in_force_after_reload(raw_, raw), plugins_->describe()));
  if (feed_) feed_->set_plugins(list_plugins());
  // It was judged with the rest and cannot fail.
  static_cast<void>(set_level(*log_, setup.config.options.daemon.log_level));
  for (const config::PluginOptions& plugin : setup.config.options.plugins) reloaded.plugins.push_back(plugin.name);
  restart_needed_.set(reloaded.restart_needed);
  return reloaded;
}

}  // namespace topolet::daemon
