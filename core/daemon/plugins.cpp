#include "core/daemon/plugins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/plugin/crash_mark.hpp"

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
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&) override { return refusal(); }

 private:
  Error refusal() const { return {Code::kFailedPrecondition, name_ + ": was not started"}; }

  const std::string name_;
};

template <class Items, class IdOf>
auto find_by_id(Items& items, const std::string& id, IdOf id_of) {
  return std::find_if(items.begin(), items.end(), [&](const auto& item) { return id_of(item) == id; });
}

const std::string& library_id(const PluginLibrary& library) { return library.id(); }

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

void describe_options(Plugin& plugin, const PluginLibrary& library, const PluginOptions& options) {
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

Plugins::Plugins(PolicyThread::Options options, CrashLog& crashes, std::shared_ptr<StateStore> state)
    : log_(options.log), crashes_(crashes), state_(std::move(state)), thread_(std::move(options)) {}

Plugins::~Plugins() = default;

Status Plugins::replace(const Setup& setup, Past past) {
  MutexLock change(changing_);
  Result<Seats> made = make_seats(setup, past);
  if (!made) return made.error();
  for (const Seat& seat : *made) apply(seat.library.id(), past);
  Seats old = *std::move(made);
  {
    MutexLock lock(mutex_);
    old.swap(seats_);
    for (const PluginLibrary& library : setup.plugins.libraries) {
      if (find_by_id(libraries_, library.id(), library_id) == libraries_.end()) libraries_.push_back(library);
    }
  }
  // A decision that is under way, or a call that was given up on, keeps the old instances it needs.
  const CrashStack stack;
  for (Seat& seat : old) {
    const CrashMark mark(seat.library.id().c_str(), "destroy");
    seat.policy.reset();
  }
  return {};
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
    const auto library = find_by_id(setup.plugins.libraries, options.name, library_id);
    if (library == setup.plugins.libraries.end()) {
      return Error{Code::kNotFound, fmt::format("plugin {} is enabled but was not loaded", options.name)};
    }
    const auto others = options_of_others(setup.config.options.plugins, options.name);
    Result<Seat> seat = make_seat(*library, options, others, past);
    if (!seat) return seat.error();
    seats.push_back(*std::move(seat));
  }
  return seats;
}

Result<Plugins::Seat> Plugins::make_seat(const PluginLibrary& library, const PluginOptions& options,
                                         const std::map<std::string, std::string>& others, Past past) const {
  if (past == Past::kCounts && !crashes_.quarantine(library.id()).empty() && crashes_.crashed_at_start(library.id())) {
    log_->error("plugin {} is not started: it crashed when it was", library.id());
    return Seat{library, options, std::make_shared<NotStarted>(library.id()), {}, false};
  }
  auto policy = library.create({options.values.begin(), options.values.end()}, log_, state_, others);
  if (!policy) return policy.error();
  log_->info("plugin {} {} from {}", library.id(), library.version(), library.path().string());
  std::vector<std::string> capabilities = (*policy)->capabilities();
  return Seat{library, options, *std::move(policy), std::move(capabilities), true};
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
  const auto seat = find_by_id(all, id, [](const Seat& other) -> const std::string& { return other.library.id(); });
  if (seat != all.end()) {
    Status forgiven = forgive(id);
    if (!forgiven || seat->started) return forgiven;
    thread_.quarantine(id, "it crashed when it was started, and so was not; reload topoletd (SIGHUP) to start it");
    return Error{Code::kFailedPrecondition,
                 fmt::format("plugin {} crashed when it was started, and so was not; its crashes are forgotten now: "
                             "reload topoletd (SIGHUP) to start it",
                             id)};
  }
  std::string names;
  for (const Seat& other : all) names += (names.empty() ? "" : ", ") + other.library.id();
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
    const std::string& id = seat.library.id();
    plugin.set_id(id);
    plugin.set_version(seat.library.version());
    plugin.set_path(seat.library.path().string());
    plugin.set_abi_minor(seat.library.abi_minor());
    plugin.set_abi_draft(seat.library.abi_draft());
    for (const std::string& capability : seat.capabilities) plugin.add_capabilities(capability);
    plugin.set_weight(seat.options.weight);
    plugin.set_on_failure(seat.options.fail_closed ? "closed" : "open");
    plugin.set_required(seat.options.required);
    describe_options(plugin, seat.library, seat.options);
    const auto state = find_by_id(states, id, [](const PluginState& one) -> const std::string& { return one.name; });
    describe_state(plugin, state == states.end() ? PluginState() : *state);
  }
}

}  // namespace topolet
