#include "core/plugin/host/running_plugins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/plugin/host/check_annotations.hpp"
#include "core/plugin/host/common_options.hpp"

namespace topolet::plugin {
namespace {

template <class Items, class IdOf>
auto find_by_id(Items& items, const std::string& id, IdOf id_of) {
  return std::find_if(items.begin(), items.end(), [&](const auto& item) { return id_of(item) == id; });
}

const std::string& library_id(const PluginLibrary& library) { return library.id(); }

std::string stuck_message(const std::string& call) {
  return fmt::format("restart needed: {} was abandoned and has not returned", call);
}

}  // namespace

RunningPlugins::RunningPlugins(PolicyThread::Options options, Deps deps, std::shared_ptr<store::PluginStateStore> state)
    : log_(options.log),
      crashes_(deps.crashes),
      control_(deps.control),
      machine_(std::move(deps.machine)),
      state_(std::move(state)),
      policy_thread_([&] {
        options.turns = deps.control.turns();
        return std::move(options);
      }()) {}

RunningPlugins::~RunningPlugins() = default;

Status RunningPlugins::replace(const LoadedConfig& setup, CrashHistory history, std::int64_t number) {
  MutexLock change(reload_mutex_);
  add_libraries(setup.plugins.libraries);
  Result<LoadedPlugins> made = make_plugins(setup, history);
  if (made) {
    if (Status read = check_annotations(setup, annotations_of(*made)); !read) made = read.error();
  }
  if (made) {
    for (const LoadedPlugin& loaded_plugin : *made) {
      const std::string& id = loaded_plugin.id();
      if (history == CrashHistory::kApplied) {
        quarantine_if_it_crashed(id);
      } else if (const Status forgotten = forget_crashes(id); !forgotten) {
        log_->warn("{}", forgotten.error().message);
      }
    }
    MutexLock lock(mutex_);
    made->swap(loaded_plugins_);
    setup_ = number;
  }
  Status replaced = made ? Status() : Status(made.error());
  // A decision that is under way, or an abandoned call, keeps the old instances it needs.
  made = LoadedPlugins();
  control_.drain();
  return replaced;
}

Status RunningPlugins::check_annotations(const LoadedConfig& setup, const placement::KnownAnnotations& known) const {
  const AnnotationFindings found = check_permitted_annotations(setup.raw, setup.config.options, known);
  for (const config::ConfigMistake& warning : found.warnings) log_->warn("{}", warning.to_string());
  return found.status();
}

placement::KnownAnnotations RunningPlugins::annotations_of(const LoadedPlugins& plugins) {
  placement::KnownAnnotations known = placement::core_annotations();
  for (const LoadedPlugin& plugin : plugins) {
    if (plugin.policy == nullptr) {
      known.add_plugin(plugin.id(), std::nullopt);
    } else {
      known.add_plugin(plugin.id(), plugin.policy->annotations(), plugin.policy->taking_annotations());
    }
  }
  return known;
}

placement::KnownAnnotations RunningPlugins::annotations() const {
  MutexLock lock(mutex_);
  return annotations_of(loaded_plugins_);
}

NamesRead RunningPlugins::names_read() const {
  MutexLock lock(mutex_);
  NamesRead all;
  for (const LoadedPlugin& plugin : loaded_plugins_) {
    if (plugin.policy == nullptr) continue;
    const NamesRead& names = plugin.policy->names_read();
    all.env.insert(all.env.end(), names.env.begin(), names.env.end());
    all.annotations.insert(all.annotations.end(), names.annotations.begin(), names.annotations.end());
  }
  return all;
}

bool RunningPlugins::reads_load() const {
  MutexLock lock(mutex_);
  return std::any_of(loaded_plugins_.begin(), loaded_plugins_.end(), [](const LoadedPlugin& plugin) {
    return plugin.policy != nullptr && plugin.policy->names_read().load;
  });
}

void RunningPlugins::add_libraries(const std::vector<PluginLibrary>& libraries) {
  MutexLock lock(mutex_);
  for (const PluginLibrary& library : libraries) {
    if (find_by_id(libraries_, library.id(), library_id) == libraries_.end()) libraries_.push_back(library);
  }
}

void RunningPlugins::quarantine_if_it_crashed(const std::string& id) {
  if (const std::string why = crashes_.why_quarantined(id); !why.empty()) policy_thread_.quarantine(id, why);
}

Result<RunningPlugins::LoadedPlugins> RunningPlugins::make_plugins(const LoadedConfig& setup,
                                                                   CrashHistory history) const {
  LoadedPlugins loaded_plugins;
  for (const config::PluginOptions& options : setup.config.options.plugins) {
    if (std::find(setup.not_loaded.begin(), setup.not_loaded.end(), options.name) != setup.not_loaded.end()) {
      loaded_plugins.push_back(make_unstarted_plugin(std::nullopt, options));
      continue;
    }
    const auto library = find_by_id(setup.plugins.libraries, options.name, library_id);
    if (library == setup.plugins.libraries.end()) {
      return Error{Code::kNotFound, fmt::format("plugin {} is enabled but was not loaded", options.name)};
    }
    Result<LoadedPlugin> loaded_plugin = make_plugin(*library, options, setup.config.options, history);
    if (!loaded_plugin) return loaded_plugin.error();
    loaded_plugins.push_back(*std::move(loaded_plugin));
  }
  return loaded_plugins;
}

Result<RunningPlugins::LoadedPlugin> RunningPlugins::make_plugin(const PluginLibrary& library,
                                                                 const config::PluginOptions& options,
                                                                 const config::Options& all,
                                                                 CrashHistory history) const {
  if (history == CrashHistory::kApplied && !crashes_.why_quarantined(library.id()).empty() &&
      crashes_.crashed_at_start(library.id())) {
    return make_unstarted_plugin(library, options);
  }
  auto policy = make_policy(library, options, all);
  if (!policy) return policy.error();
  log_->info("plugin {} {} from {}", library.id(), library.version(), library.path().string());
  std::vector<std::string> capabilities = (*policy)->capabilities();
  return LoadedPlugin{options, library, *std::move(policy), std::move(capabilities), true};
}

RunningPlugins::LoadedPlugin RunningPlugins::make_unstarted_plugin(std::optional<PluginLibrary> library,
                                                                   const config::PluginOptions& options) const {
  log_->error("plugin {} is not started, because it crashed when it was started before", options.name);
  return LoadedPlugin{options, std::move(library), nullptr, {}, false};
}

Result<std::shared_ptr<PluginPolicy>> RunningPlugins::make_policy(const PluginLibrary& library,
                                                                  const config::PluginOptions& options,
                                                                  const config::Options& all) const {
  const std::string& id = library.id();
  if (const auto stuck = control_.stuck_call_of(id)) {
    return Error{Code::kFailedPrecondition, fmt::format("plugin {}: {}", id, stuck_message(*stuck))};
  }
  const auto created = std::make_shared<std::optional<Result<std::shared_ptr<PluginPolicy>>>>();
  CreateContext context{.state = state_,
                        .configuration = all.configuration,
                        .machine = machine_ ? machine_() : nullptr,
                        .deadline = all.placement.plugin_timeout};
  const auto create = [created, library, options, log = log_, context = std::move(context)] {
    created->emplace(library.create({options.values.begin(), options.values.end()}, log, context));
  };
  const Status back = control_.run(id, "create", create);
  if (!back) return back.error();
  if (!created->has_value()) return Error{Code::kInternal, fmt::format("plugin {}: create failed; see the log", id)};
  if (!**created) return (*created)->error();
  // Whoever is the last to let go of an instance must not have to wait for its end.
  std::shared_ptr<PluginPolicy> owner = std::move(***created);
  PluginPolicy* const policy = owner.get();
  policy->wake_by([waker = waker_](std::chrono::milliseconds until) { waker->call(until); });
  return std::shared_ptr<PluginPolicy>(policy,
                                       [send = control_.send(), owner = std::move(owner), id](PluginPolicy*) mutable {
                                         send(id, "destroy", [owner = std::move(owner)]() mutable { owner.reset(); });
                                       });
}

bool RunningPlugins::has(std::string_view capability) const {
  MutexLock lock(mutex_);
  return std::any_of(loaded_plugins_.begin(), loaded_plugins_.end(), [&](const LoadedPlugin& loaded_plugin) {
    return std::find(loaded_plugin.capabilities.begin(), loaded_plugin.capabilities.end(), capability) !=
           loaded_plugin.capabilities.end();
  });
}

RunningPlugins::LoadedPlugins RunningPlugins::loaded_plugins() const {
  MutexLock lock(mutex_);
  return loaded_plugins_;
}

std::vector<PluginVote> RunningPlugins::votes(std::int64_t* setup) const {
  MutexLock lock(mutex_);
  if (setup != nullptr) *setup = setup_;
  std::vector<PluginVote> votes;
  for (const LoadedPlugin& loaded_plugin : loaded_plugins_) {
    const config::PluginOptions& options = loaded_plugin.options;
    votes.push_back({loaded_plugin.id(), loaded_plugin.policy, options.weight, options.fail_closed, options.required,
                     common_options_of(options), besteffort_share_of(options)});
  }
  return in_order_of_votes(std::move(votes));
}

std::vector<PluginLibrary> RunningPlugins::libraries() const {
  MutexLock lock(mutex_);
  return libraries_;
}

Status RunningPlugins::reset(const std::string& id) {
  MutexLock change(reload_mutex_);
  const LoadedPlugins all = loaded_plugins();
  const auto loaded_plugin =
      find_by_id(all, id, [](const LoadedPlugin& other) -> const std::string& { return other.id(); });
  if (loaded_plugin != all.end()) {
    if (const auto stuck = control_.stuck_call_of(id)) {
      return Error{Code::kFailedPrecondition, fmt::format("plugin {}: {}", id, stuck_message(*stuck))};
    }
    Status forgotten = forget_crashes(id);
    if (!forgotten || loaded_plugin->started) return forgotten;
    policy_thread_.quarantine(
        id, "it is not running, because it crashed when it was started; reload topoletd (SIGHUP) to start it");
    return Error{
        Code::kFailedPrecondition,
        fmt::format("plugin {} is not running, because it crashed when it was started; its crashes are forgotten now: "
                    "reload topoletd (SIGHUP) to start it",
                    id)};
  }
  std::string names;
  for (const LoadedPlugin& other : all) names += (names.empty() ? "" : ", ") + other.id();
  return Error{Code::kNotFound, fmt::format("no plugin '{}' is enabled; {}", id,
                                            names.empty() ? "there is none" : "there are: " + names)};
}

Status RunningPlugins::forget_crashes(const std::string& id) {
  const Status reset = policy_thread_.reset(id);
  // One that was never asked is as good as reset.
  if (!reset && reset.error().code != Code::kNotFound) return reset;
  return crashes_.remove_crashes_of(id);
}

std::vector<PluginDescription> RunningPlugins::describe() const {
  const std::vector<PluginStatistics> statistics = policy_thread_.states();
  std::vector<PluginDescription> all;
  for (LoadedPlugin& loaded_plugin : loaded_plugins()) {
    const std::string id = loaded_plugin.id();
    PluginDescription& described = all.emplace_back();
    described.options = std::move(loaded_plugin.options);
    described.library = std::move(loaded_plugin.library);
    described.capabilities = std::move(loaded_plugin.capabilities);
    const auto its =
        find_by_id(statistics, id, [](const PluginStatistics& one) -> const std::string& { return one.name; });
    if (its != statistics.end()) described.statistics = *its;
    if (const auto stuck = control_.stuck_call_of(id)) described.stuck = stuck_message(*stuck);
  }
  return all;
}

}  // namespace topolet::plugin
