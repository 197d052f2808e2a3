#include "core/daemon/plugins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace topolet {
namespace {

using control::v1::ListPluginsResponse;
using control::v1::Plugin;

/// Stands in for a plugin that is not made, as making it would end the daemon.
class NotStarted final : public Policy {
 public:
  explicit NotStarted(std::string name) : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest&) override { return refusal(); }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return refusal(); }

 private:
  Error refusal() const { return {Code::kFailedPrecondition, name_ + ": was not started"}; }

  const std::string name_;
};

template <class Items, class IdOf>
auto find_by_id(Items& items, const std::string& id, IdOf id_of) {
  return std::find_if(items.begin(), items.end(), [&](const auto& item) { return id_of(item) == id; });
}

const std::string& library_id(const PluginLibrary& library) { return library.id(); }

std::string stuck_words(const std::string& call) {
  return fmt::format("restart needed: {} was given up on and has not come back", call);
}

void describe_state(Plugin& plugin, const PluginState& state) {
  plugin.set_state(Plugin::ACTIVE);
  if (!state.quarantine.empty()) {
    plugin.set_state(Plugin::QUARANTINED);
    plugin.set_reason(state.quarantine);
  }
  if (state.call_inside) {
    plugin.set_state(Plugin::CALL_INSIDE);
    plugin.set_reason("restart needed: a call that was given up on has not come back" +
                      (state.quarantine.empty() ? std::string() : "; " + state.quarantine));
  }
  plugin.set_calls(state.calls);
  plugin.set_p99_us(state.p99_us);
  Plugin::LostVotes& lost = *plugin.mutable_lost_votes();
  lost.set_late(state.lost.late);
  lost.set_failed(state.lost.failed);
  lost.set_declined(state.lost.declined);
  lost.set_not_asked(state.lost.not_asked);
}

void describe_library(Plugin& plugin, const PluginLibrary& library, const PluginOptions& options) {
  plugin.set_version(library.version());
  plugin.set_path(library.path().string());
  plugin.set_abi_minor(library.abi_minor());
  plugin.set_abi_draft(library.abi_draft());
  for (const DeclaredOption& declared : library.options()) {
    Plugin::Option& option = *plugin.add_options();
    const auto value = options.values.find(declared.name);
    option.set_name(declared.name);
    option.set_value(value == options.values.end() ? declared.default_value : value->second);
    option.set_default_value(declared.default_value);
    option.set_help(declared.help);
  }
}

}  // namespace

Plugins::Plugins(PolicyThread::Options options, Keepers keepers, std::shared_ptr<StateStore> state)
    : log_(options.log),
      crashes_(keepers.crashes),
      control_(keepers.control),
      state_(std::move(state)),
      thread_(std::move(options)) {}

Plugins::~Plugins() = default;

Status Plugins::replace(const Setup& setup, Past past) {
  MutexLock change(changing_);
  remember(setup.plugins.libraries);
  Result<Seats> made = make_seats(setup, past);
  if (made) {
    for (const Seat& seat : *made) apply(seat.id(), past);
    MutexLock lock(mutex_);
    made->swap(seats_);
  }
  Status replaced = made ? Status() : Status(made.error());
  // A decision that is under way, or a call that was given up on, keeps the old instances it needs.
  made = Seats();
  control_.drain();
  return replaced;
}

void Plugins::remember(const std::vector<PluginLibrary>& libraries) {
  MutexLock lock(mutex_);
  for (const PluginLibrary& library : libraries) {
    if (find_by_id(libraries_, library.id(), library_id) == libraries_.end()) libraries_.push_back(library);
  }
}

void Plugins::apply(const std::string& id, Past past) {
  if (past == Past::kForgiven) {
    if (const Status forgiven = forgive(id); !forgiven) log_->warn("{}", forgiven.error().message);
  } else if (const std::string why = crashes_.quarantine(id); !why.empty()) {
    thread_.quarantine(id, why);
  }
}

Result<Plugins::Seats> Plugins::make_seats(const Setup& setup, Past past) const {
  Seats seats;
  for (const PluginOptions& options : setup.config.options.plugins) {
    if (std::find(setup.not_loaded.begin(), setup.not_loaded.end(), options.name) != setup.not_loaded.end()) {
      seats.push_back(make_empty_seat(std::nullopt, options));
      continue;
    }
    const auto library = find_by_id(setup.plugins.libraries, options.name, library_id);
    if (library == setup.plugins.libraries.end()) {
      return Error{Code::kNotFound, fmt::format("plugin {} is enabled but was not loaded", options.name)};
    }
    const auto others = options_of_others(setup.config.options, options.name);
    Result<Seat> seat = make_seat(*library, options, others, past);
    if (!seat) return seat.error();
    seats.push_back(*std::move(seat));
  }
  return seats;
}

Result<Plugins::Seat> Plugins::make_seat(const PluginLibrary& library, const PluginOptions& options,
                                         const std::map<std::string, std::string>& others, Past past) const {
  if (past == Past::kCounts && !crashes_.quarantine(library.id()).empty() && crashes_.crashed_at_start(library.id())) {
    return make_empty_seat(library, options);
  }
  auto policy = make_policy(library, options, others);
  if (!policy) return policy.error();
  log_->info("plugin {} {} from {}", library.id(), library.version(), library.path().string());
  std::vector<std::string> capabilities = (*policy)->capabilities();
  return Seat{options, library, *std::move(policy), std::move(capabilities), true};
}

Plugins::Seat Plugins::make_empty_seat(std::optional<PluginLibrary> library, const PluginOptions& options) const {
  log_->error("plugin {} is not started: it crashed when it was", options.name);
  return Seat{options, std::move(library), std::make_shared<NotStarted>(options.name), {}, false};
}

Result<std::shared_ptr<PluginPolicy>> Plugins::make_policy(const PluginLibrary& library, const PluginOptions& options,
                                                           const std::map<std::string, std::string>& others) const {
  const std::string& id = library.id();
  if (const auto stuck = control_.stuck_in(id)) {
    return Error{Code::kFailedPrecondition, fmt::format("plugin {}: {}", id, stuck_words(*stuck))};
  }
  const auto created = std::make_shared<std::optional<Result<std::shared_ptr<PluginPolicy>>>>();
  const Status back = control_.run(id, "create", [created, library, options, others, log = log_, state = state_] {
    created->emplace(library.create({options.values.begin(), options.values.end()}, log, state, others));
  });
  if (!back) return back.error();
  if (!created->has_value()) return Error{Code::kInternal, fmt::format("plugin {}: create failed; see the log", id)};
  if (!**created) return (*created)->error();
  // Whoever is the last to let go of an instance must not have to wait for its end.
  std::shared_ptr<PluginPolicy> owner = std::move(***created);
  PluginPolicy* const policy = owner.get();
  return std::shared_ptr<PluginPolicy>(policy,
                                       [send = control_.send(), owner = std::move(owner), id](PluginPolicy*) mutable {
                                         send(id, "destroy", [owner = std::move(owner)]() mutable { owner.reset(); });
                                       });
}

bool Plugins::has(std::string_view capability) const {
  MutexLock lock(mutex_);
  return std::any_of(seats_.begin(), seats_.end(), [&](const Seat& seat) {
    return std::find(seat.capabilities.begin(), seat.capabilities.end(), capability) != seat.capabilities.end();
  });
}

Plugins::Seats Plugins::seats() const {
  MutexLock lock(mutex_);
  return seats_;
}

std::vector<Voter> Plugins::voters() const {
  MutexLock lock(mutex_);
  std::vector<Voter> voters;
  for (const Seat& seat : seats_)
    voters.push_back({seat.policy, seat.options.weight, seat.options.fail_closed, seat.options.required});
  return voters;
}

std::vector<PluginLibrary> Plugins::libraries() const {
  MutexLock lock(mutex_);
  return libraries_;
}

Status Plugins::reset(const std::string& id) {
  MutexLock change(changing_);
  const Seats all = seats();
  const auto seat = find_by_id(all, id, [](const Seat& other) -> const std::string& { return other.id(); });
  if (seat != all.end()) {
    if (const auto stuck = control_.stuck_in(id)) {
      return Error{Code::kFailedPrecondition, fmt::format("plugin {}: {}", id, stuck_words(*stuck))};
    }
    Status forgiven = forgive(id);
    if (!forgiven || seat->started) return forgiven;
    thread_.quarantine(id, "it crashed when it was started, and so was not; reload topoletd (SIGHUP) to start it");
    return Error{Code::kFailedPrecondition,
                 fmt::format("plugin {} crashed when it was started, and so was not; its crashes are forgotten now: "
                             "reload topoletd (SIGHUP) to start it",
                             id)};
  }
  std::string names;
  for (const Seat& other : all) names += (names.empty() ? "" : ", ") + other.id();
  return Error{Code::kNotFound, fmt::format("no plugin '{}' is enabled; {}", id,
                                            names.empty() ? "there is none" : "there are: " + names)};
}

Status Plugins::forgive(const std::string& id) {
  const Status reset = thread_.reset(id);
  // One that was never asked is as good as reset.
  if (!reset && reset.error().code != Code::kNotFound) return reset;
  return crashes_.forgive(id);
}

void Plugins::describe(ListPluginsResponse& response) const {
  const std::vector<PluginState> states = thread_.states();
  for (const Seat& seat : seats()) {
    Plugin& plugin = *response.add_plugins();
    const std::string& id = seat.id();
    plugin.set_id(id);
    if (seat.library) describe_library(plugin, *seat.library, seat.options);
    for (const std::string& capability : seat.capabilities) plugin.add_capabilities(capability);
    plugin.set_weight(seat.options.weight);
    plugin.set_on_failure(seat.options.fail_closed ? "closed" : "open");
    plugin.set_required(seat.options.required);
    const auto state = find_by_id(states, id, [](const PluginState& one) -> const std::string& { return one.name; });
    describe_state(plugin, state == states.end() ? PluginState() : *state);
    if (const auto stuck = control_.stuck_in(id)) {
      plugin.set_state(Plugin::CALL_INSIDE);
      plugin.set_reason(stuck_words(*stuck));
    }
  }
}

}  // namespace topolet
