#include "core/simulate/plugin_activity.hpp"

#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/utf8.hpp"

namespace topolet::simulate {
namespace {

/// By topolet_event_kind.
constexpr std::array<const char*, 9> kEventNames = {"placed", "started",     "moved",  "resized", "released",
                                                    "exited", "pod-removed", "denied", "unpinned"};

bool is_text(const std::string& value) {
  const auto is_control = [](char byte) { return (byte >= 0 && byte < ' ') || byte == '\x7f'; };
  return is_utf8(value) && std::none_of(value.begin(), value.end(), is_control);
}

}  // namespace

struct ActivityRecorder::Notes {
  Mutex mutex;
  PluginActivity activity TOPOLET_GUARDED_BY(mutex);

  void add(StateWrite write) {
    MutexLock lock(mutex);
    activity.state.push_back(std::move(write));
  }
  void add(LoggedLine line) {
    MutexLock lock(mutex);
    activity.log.push_back(std::move(line));
  }

  class Sink;
  class WatchedState;
};

class ActivityRecorder::Notes::Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Sink(std::shared_ptr<Notes> notes) : notes_(std::move(notes)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto level = spdlog::level::to_string_view(message.level);
    notes_->add(LoggedLine{std::string(level.data(), level.size()),
                           std::string(message.payload.data(), message.payload.size())});
  }
  void flush_() override {}

  const std::shared_ptr<Notes> notes_;
};

class ActivityRecorder::Notes::WatchedState final : public store::PluginStateStore {
 public:
  WatchedState(std::shared_ptr<store::PluginStateStore> state, std::shared_ptr<Notes> notes)
      : state_(std::move(state)), notes_(std::move(notes)) {}

  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override {
    return state_->get(plugin, key);
  }
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override {
    return state_->next(plugin, after);
  }
  Result<std::size_t> count(const std::string& plugin) override { return state_->count(plugin); }
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override {
    Status written = state_->set(plugin, key, value);
    if (!written) return written;
    const bool is_shown = value.size() <= StateWrite::kMostShownBytes && is_text(value);
    notes_->add(StateWrite{plugin, key, value.size(), is_shown ? std::optional(value) : std::nullopt});
    return written;
  }
  Status remove(const std::string& plugin, const std::string& key) override {
    Status removed = state_->remove(plugin, key);
    if (removed) notes_->add(StateWrite{plugin, key, std::nullopt, std::nullopt});
    return removed;
  }

 private:
  const std::shared_ptr<store::PluginStateStore> state_;
  const std::shared_ptr<Notes> notes_;
};

ActivityRecorder::ActivityRecorder()
    : notes_(std::make_shared<Notes>()), log_(std::make_shared<Log>("plugins", std::make_shared<Notes::Sink>(notes_))) {
  log_->set_level(spdlog::level::trace);
}

ActivityRecorder::~ActivityRecorder() = default;

std::shared_ptr<store::PluginStateStore> ActivityRecorder::watched(
    std::shared_ptr<store::PluginStateStore> state) const {
  return std::make_shared<Notes::WatchedState>(std::move(state), notes_);
}

void ActivityRecorder::add_decision(const placement::ContainerKey& key, const placement::AddedFields& fields) {
  MutexLock lock(notes_->mutex);
  std::vector<AddedByPlugins>& added = notes_->activity.added;
  added.erase(std::remove_if(added.begin(), added.end(), [&](const AddedByPlugins& one) { return one.key == key; }),
              added.end());
  if (fields != placement::AddedFields{}) added.push_back({key, fields});
}

void ActivityRecorder::add_event(const plugin::ContainerEvent& event, const std::vector<plugin::PluginVote>& votes) {
  ToldEvent told{
      kEventNames.at(static_cast<std::size_t>(event.kind)), event.workload.key.pod_uid, event.workload.key.name, {}};
  for (const plugin::PluginVote& vote : votes) {
    if (vote.plugin != nullptr && vote.plugin->handles_events()) told.plugins.push_back(vote.name);
  }
  if (told.plugins.empty()) return;
  MutexLock lock(notes_->mutex);
  notes_->activity.events.push_back(std::move(told));
}

PluginActivity ActivityRecorder::take() {
  MutexLock lock(notes_->mutex);
  return std::exchange(notes_->activity, {});
}

}  // namespace topolet::simulate
