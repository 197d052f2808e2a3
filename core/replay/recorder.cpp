#include "core/replay/recorder.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"

namespace topolet::replay {
namespace {

constexpr std::chrono::seconds kLongestEnd{2};
/// How long the thread lets lines gather before it writes them: to wake it costs whoever does more than a line.
constexpr std::chrono::milliseconds kGather{20};

constexpr std::size_t kBytesOfLine = 512;
/// Estimates the bytes of a decision with few candidates, all that its verdicts say included.
constexpr std::size_t kBytesOfDecision = 6144;
/// Ledgers that wait share what they have in common; these are the pointers.
std::size_t bytes_of(const placement::LedgerSnapshot& ledger) {
  return ledger.entries.size() * sizeof(placement::LedgerEntries::Shared);
}

Moment now(const Clock& clock) {
  return {clock.wall(), std::chrono::duration_cast<std::chrono::milliseconds>(clock.steady().time_since_epoch())};
}

}  // namespace

/// Shared with the thread, which is left behind if the file system does not return.
struct Recorder::Queue {
  using Write = std::function<Status(RecordWriter& writer)>;
  struct Item {
    Write write;
    std::size_t bytes = 0;
  };

  Queue(Options its_options, RecordFile file, std::shared_ptr<Log> its_log)
      : options(std::move(its_options)),
        writer(std::move(file), {options.max_bytes, options.version}),
        log(std::move(its_log)) {}

  void push(std::size_t bytes, Write write) TOPOLET_EXCLUDES(mutex) {
    if (ended) return;
    bool is_full = false;
    bool is_due = false;
    {
      MutexLock lock(mutex);
      if (stopping) return;
      is_full = queued_bytes + bytes > options.max_queued_bytes;
      if (!is_full) {
        items.push_back({std::move(write), bytes});
        queued_bytes += bytes;
        is_due = items.size() == 1 || is_half_full();
      }
    }
    if (is_due) wake_up.notify_all();
    if (is_full) end("more was to be recorded than could be written at that time");
  }

  /// Drops the lines that are queued.
  void end(const std::string& why) {
    if (ended.exchange(true)) return;
    log->warn(
        "the record in {} ends here: {}; nothing else depends on it, and topoletd records again once it is "
        "restarted",
        options.file.string(), why);
  }

  void run() TOPOLET_EXCLUDES(mutex) {
    for (std::vector<Item> group = wait_for_items(); !group.empty(); group = wait_for_items()) {
      for (const Item& item : group) {
        if (ended) break;
        if (const Status written = item.write(writer); !written) end(written.error().message);
      }
      MutexLock lock(mutex);
      for (const Item& item : group) queued_bytes -= item.bytes;
    }
    MutexLock lock(mutex);
    is_done = true;
    wake_up.notify_all();
  }

  /// All that there are; none at the end.
  std::vector<Item> wait_for_items() TOPOLET_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    while (items.empty() && !stopping) wake_up.wait(mutex);
    const auto until = std::chrono::steady_clock::now() + kGather;
    while (!stopping && !is_half_full() && wake_up.wait_until(mutex, until)) {
    }
    return std::exchange(items, {});
  }

  bool is_half_full() const TOPOLET_REQUIRES(mutex) { return queued_bytes > options.max_queued_bytes / 2; }

  /// False if the thread is stuck in the file.
  bool stop() TOPOLET_EXCLUDES(mutex) {
    const auto until = std::chrono::steady_clock::now() + kLongestEnd;
    MutexLock lock(mutex);
    stopping = true;
    wake_up.notify_all();
    while (!is_done && wake_up.wait_until(mutex, until)) {
    }
    return is_done;
  }

  const Options options;
  RecordWriter writer;  ///< of the thread
  const std::shared_ptr<Log> log;
  std::thread thread;
  std::atomic<bool> ended = false;
  std::atomic<std::thread::id> decides_on = {};

  Mutex mutex;
  CondVar wake_up;
  std::vector<Item> items TOPOLET_GUARDED_BY(mutex);
  std::size_t queued_bytes TOPOLET_GUARDED_BY(mutex) = 0;
  bool stopping TOPOLET_GUARDED_BY(mutex) = false;
  bool is_done TOPOLET_GUARDED_BY(mutex) = false;
  std::map<std::int64_t, std::shared_ptr<const RecordedSetup>> announced TOPOLET_GUARDED_BY(mutex);
  std::optional<Moment> stands_at TOPOLET_GUARDED_BY(mutex);
};

Recorder::Recorder(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}

Result<std::shared_ptr<Recorder>> Recorder::open(Options options, std::shared_ptr<const topology::Topology> machine,
                                                 std::shared_ptr<Log> log) {
  auto file = RecordFile::open(options.file);
  if (!file) return file.error();
  auto queue = std::make_shared<Queue>(std::move(options), *std::move(file), std::move(log));
  try {
    queue->thread = std::thread([queue] { queue->run(); });
  } catch (const std::system_error& error) {
    return Error{Code::kResourceExhausted, std::string("cannot start a thread for the record: ") + error.what()};
  }
  ::pthread_setname_np(queue->thread.native_handle(), "topolet-record");
  queue->push(kBytesOfLine, [machine = std::move(machine), at = now(queue->options.clock)](RecordWriter& writer) {
    return writer.begin(at, machine);
  });
  return std::shared_ptr<Recorder>(new Recorder(std::move(queue)));
}

Recorder::~Recorder() { finish(); }

void Recorder::finish() {
  if (!queue_->thread.joinable()) return;
  if (queue_->stop()) {
    queue_->thread.join();
  } else {
    queue_->thread.detach();
  }
}

void Recorder::announce_setup(RecordedSetup setup) {
  MutexLock lock(queue_->mutex);
  const std::int64_t number = setup.number;
  queue_->announced[number] = std::make_shared<const RecordedSetup>(std::move(setup));
}

void Recorder::use_setup(std::int64_t number, RecordedNames names) {
  std::shared_ptr<const RecordedSetup> setup;
  {
    MutexLock lock(queue_->mutex);
    const auto found = queue_->announced.find(number);
    if (found == queue_->announced.end()) return;
    RecordedSetup in_use = *found->second;
    in_use.names = std::move(names);
    setup = found->second = std::make_shared<const RecordedSetup>(std::move(in_use));
    // Nobody decides with an older one any more.
    queue_->announced.erase(queue_->announced.begin(), found);
  }
  queue_->push(kBytesOfLine, [at = now(queue_->options.clock), setup = std::move(setup)](RecordWriter& writer) {
    return writer.use_setup(at, setup);
  });
}

void Recorder::add_ledger(placement::LedgerSnapshot ledger) {
  queue_->decides_on = std::this_thread::get_id();
  const std::size_t bytes = kBytesOfLine + bytes_of(ledger);
  queue_->push(bytes, [at = now(queue_->options.clock), ledger = std::move(ledger)](RecordWriter& writer) {
    return writer.add_ledger(at, ledger);
  });
}

void Recorder::add_decision(std::shared_ptr<const placement::PolicyRequest> request,
                            const placement::PlacementRules& rules, NotedDecision made) {
  if (queue_->ended || queue_->decides_on.load() != std::this_thread::get_id()) return;
  const std::size_t bytes =
      kBytesOfDecision + bytes_of(request->ledger) + request->candidates.size() * sizeof(placement::Candidate);
  std::shared_ptr<const RecordedSetup> setup;
  if (made.decision.setup != 0) {
    MutexLock lock(queue_->mutex);
    const auto found = queue_->announced.find(made.decision.setup);
    if (found != queue_->announced.end()) setup = found->second;
  }
  queue_->push(bytes, [at = now(queue_->options.clock), request = std::move(request), rules, made = std::move(made),
                       setup = std::move(setup)](RecordWriter& writer) {
    if (setup) {
      if (Status used = writer.use_setup(at, setup); !used) return used;
    }
    return writer.add_decision(at, *request, rules, made);
  });
}

void Recorder::add_event(std::shared_ptr<const plugin::ContainerEvent> container_event) {
  queue_->push(kBytesOfLine, [at = now(queue_->options.clock), container_event = std::move(container_event)](
                                 RecordWriter& writer) { return writer.add_event(at, *container_event); });
}

void Recorder::add_state(StateAccess access) {
  std::size_t bytes = kBytesOfLine + access.key.size() + access.value.value_or("").size();
  for (const auto& [key, value] : access.all) bytes += key.size() + value.size();
  queue_->push(bytes, [at = now(queue_->options.clock), access = std::move(access)](RecordWriter& writer) {
    return writer.add_state(at, access);
  });
}

void Recorder::add_operation(placement::ContainerKey key, std::function<Json()> make_line) {
  queue_->push(kBytesOfLine, [at = now(queue_->options.clock), key = std::move(key), make_line = std::move(make_line)](
                                 RecordWriter& writer) { return writer.add_operation(at, key, make_line()); });
}

std::vector<plugin::MoveRequest> Recorder::run_tick(const MakeView& view, const Tick& tick,
                                                    const std::vector<std::string>* woken) {
  const Moment at = now(queue_->options.clock);
  const auto stand = [this](const std::optional<Moment>& stands_at) {
    MutexLock lock(queue_->mutex);
    queue_->stands_at = stands_at;
  };
  stand(at);
  std::shared_ptr<const plugin::TickSnapshot> seen;
  std::vector<plugin::MoveRequest> moves = tick([&] { return seen = view(); });
  stand(std::nullopt);
  if (seen != nullptr) {
    queue_->push(kBytesOfLine + bytes_of(seen->ledger),
                 [at, seen, moves, names = woken == nullptr ? std::vector<std::string>() : *woken](
                     RecordWriter& writer) { return writer.add_tick(at, *seen, moves, names); });
  }
  return moves;
}

Clock Recorder::clock() const {
  const auto standing = [queue = queue_] {
    MutexLock lock(queue->mutex);
    return queue->stands_at;
  };
  Clock clock;
  clock.wall = [standing, queue = queue_] {
    const std::optional<Moment> at = standing();
    return at ? at->wall : queue->options.clock.wall();
  };
  clock.steady = [standing, queue = queue_] {
    const std::optional<Moment> at = standing();
    return at ? std::chrono::steady_clock::time_point(at->steady) : queue->options.clock.steady();
  };
  return clock;
}

bool Recorder::has_ended() const { return queue_->ended; }

namespace {

class RecordedState final : public store::PluginStateStore {
 public:
  RecordedState(std::shared_ptr<store::PluginStateStore> state, std::shared_ptr<Recorder> recorder)
      : state_(std::move(state)), recorder_(std::move(recorder)) {}

  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override {
    return read(StateAccess::Kind::kGet, plugin, key, [&] { return state_->get(plugin, key); });
  }
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override {
    return read(StateAccess::Kind::kNext, plugin, after, [&] { return state_->next(plugin, after); });
  }
  Result<std::size_t> count(const std::string& plugin) override {
    begin(plugin);
    Result<std::size_t> counted = state_->count(plugin);
    StateAccess access{.kind = StateAccess::Kind::kCount, .plugin = plugin, .key = {}, .value = {}};
    if (counted) access.value = std::to_string(*counted);
    note(std::move(access), counted ? std::nullopt : std::optional(counted.error()));
    return counted;
  }
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override {
    begin(plugin);
    Status written = state_->set(plugin, key, value);
    note({.kind = StateAccess::Kind::kSet, .plugin = plugin, .key = key, .value = value},
         written ? std::nullopt : std::optional(written.error()));
    return written;
  }
  Status remove(const std::string& plugin, const std::string& key) override {
    begin(plugin);
    Status removed = state_->remove(plugin, key);
    note({.kind = StateAccess::Kind::kRemove, .plugin = plugin, .key = key, .value = {}},
         removed ? std::nullopt : std::optional(removed.error()));
    return removed;
  }

 private:
  template <class Read>
  Result<std::optional<std::string>> read(StateAccess::Kind kind, const std::string& plugin, const std::string& key,
                                          Read read) {
    begin(plugin);
    Result<std::optional<std::string>> found = read();
    note({.kind = kind, .plugin = plugin, .key = key, .value = found.value_or(std::nullopt)},
         found ? std::nullopt : std::optional(found.error()));
    return found;
  }

  void note(StateAccess access, std::optional<Error> error) {
    access.error = std::move(error);
    recorder_->add_state(std::move(access));
  }

  /// Records the state that a plugin has kept so far before its first call. Where that cannot be read, each value is
  /// when it is read for the first time.
  void begin(const std::string& plugin) TOPOLET_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!begun_.insert(plugin).second) return;
    }
    StateAccess access{.kind = StateAccess::Kind::kAll, .plugin = plugin, .key = {}, .value = {}};
    std::string after;
    while (true) {
      const auto key = state_->next(plugin, after);
      if (!key || !*key) break;
      const auto value = state_->get(plugin, **key);
      if (value && *value) access.all[**key] = **value;
      after = **key;
    }
    recorder_->add_state(std::move(access));
  }

  const std::shared_ptr<store::PluginStateStore> state_;
  const std::shared_ptr<Recorder> recorder_;
  Mutex mutex_;
  std::set<std::string> begun_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<store::PluginStateStore> recorded_state(std::shared_ptr<store::PluginStateStore> state,
                                                        std::shared_ptr<Recorder> recorder) {
  if (recorder == nullptr) return state;
  return std::make_shared<RecordedState>(std::move(state), std::move(recorder));
}

}  // namespace topolet::replay
