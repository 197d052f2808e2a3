// The cases about what a plugin must leave alone besides its answers: the process, its output, others' secrets.
#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "core/plugin_checker/case_steps.hpp"
#include "core/plugin_checker/cases.hpp"
#include "core/plugin_checker/footprint.hpp"
#include "core/plugin_checker/life.hpp"
#include "core/plugin_checker/process_state.hpp"
#include "core/plugin_checker/watched_host.hpp"

namespace topolet::plugin_checker {
namespace {

using std::chrono::milliseconds;

/// A thread that was joined may be seen for a moment longer.
constexpr milliseconds kStillSeen{500};

/// topoletd's threads have them blocked when they call a plugin.
void block_daemon_signals() {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&blocked, number);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

std::optional<std::string> change_since(const Readings& before, const StatePart& part, LifeStage stage) {
  const bool may_grow = part.may_grow_while_it_lives && stage == LifeStage::kAlive;
  const auto until = std::chrono::steady_clock::now() + kStillSeen;
  while (true) {
    auto change = find_change(before, part.read(), may_grow);
    if (!change || stage == LifeStage::kAlive || std::chrono::steady_clock::now() > until) return change;
    std::this_thread::sleep_for(milliseconds(5));
  }
}

Outcome leaves_as_it_was(const StatePart& part, const CaseInput& input) {
  block_daemon_signals();
  const Readings before = part.read();
  return live(input, [&](LifeStage stage, const std::string& step) -> MaybeMismatch {
    if (auto change = change_since(before, part, stage)) {
      return Mismatch{part.promise, fmt::format("{}, after {}", *change, step)};
    }
    return std::nullopt;
  });
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

constexpr int kWarmUpRounds = 100;
constexpr int kRounds = 1000;
constexpr std::size_t kHeapBytesAllowed = 512 << 10;
constexpr std::size_t kResidentBytesAllowed = 16 << 20;

/// Containers that come and go on one machine, each of another pod.
void play_rounds(plugin::PluginPolicy& plugin, TestRequest& test_request, int first, int rounds,
                 const Progress& progress) {
  for (int i = first; i < first + rounds; ++i) {
    test_request.request.workload.key.pod_uid = fmt::format("uid-{:06}", i);
    (void)exercise_decision(plugin, test_request, progress);
    (void)exercise_events(plugin, test_request, progress);
  }
}

std::size_t count_saved(store::PluginStateStore& state, const std::string& plugin) {
  const auto count = state.count(plugin);
  return count ? *count : 0;
}

Outcome keeps_no_memory(const CaseInput& input) {
  return with_instance(input, [&](const PluginUnderTest& plugin_under_test, plugin::PluginPolicy&) {
    const auto state = std::make_shared<plugin::InMemoryPluginState>();
    const auto created = plugin_under_test.create_with(make_silent_log(), state);
    if (!created) return Outcome::failed({"an instance", created.error().message});
    plugin::PluginPolicy& plugin = **created;
    const std::vector<Testbed> testbeds = make_testbeds();
    const auto smallest = std::min_element(
        testbeds.begin(), testbeds.end(),
        [](const Testbed& left, const Testbed& right) { return left.candidates.size() < right.candidates.size(); });
    TestRequest test_request = test_requests_on(*smallest, input.seed).front();
    play_rounds(plugin, test_request, 0, kWarmUpRounds, input.progress);
    const Footprint before = measure_footprint();
    const std::size_t saved_before = count_saved(*state, plugin.name());
    play_rounds(plugin, test_request, kWarmUpRounds, kRounds, input.progress);
    const Footprint grown = measure_footprint().grown_since(before);
    const std::string what = fmt::format("{} containers that came and went", kRounds);
    if (grown.descriptors > 0) {
      return Outcome::failed({"no file left open by " + what, fmt::format("{} more than before", grown.descriptors)});
    }
    if (grown.threads > 0) {
      return Outcome::failed({"no thread left by " + what, fmt::format("{} more than before", grown.threads)});
    }
    if (const std::size_t saved = count_saved(*state, plugin.name()); saved > saved_before + kRounds / 2) {
      return Outcome::failed({"what it saves of a container to be removed when the container is released",
                              fmt::format("{} values more in its state after {}", saved - saved_before, what)});
    }
    if (grown.kept_bytes > kHeapBytesAllowed || grown.resident_bytes > kResidentBytesAllowed) {
      return Outcome::failed({fmt::format("at most {} KiB of heap and {} MiB resident more after {}",
                                          kHeapBytesAllowed >> 10, kResidentBytesAllowed >> 20, what),
                              fmt::format("it leaks: {} KiB of heap and {} KiB resident more than before",
                                          grown.kept_bytes >> 10, grown.resident_bytes >> 10)});
    }
    return Outcome::passed(fmt::format("{} KiB of heap more after {}", grown.kept_bytes >> 10, what));
  });
}

// ---- Standard output ------------------------------------------------------------------------------------------------

/// A file in memory in the place of standard output.
class CaughtOutput {
 public:
  CaughtOutput() : file_(::memfd_create("stdout", MFD_CLOEXEC)) { ::dup2(file_, STDOUT_FILENO); }
  ~CaughtOutput() { ::close(file_); }
  CaughtOutput(const CaughtOutput&) = delete;
  CaughtOutput& operator=(const CaughtOutput&) = delete;

  /// The beginning of what was written so far.
  std::string text() const {
    std::fflush(stdout);
    std::string text(256, '\0');
    const ssize_t size = ::pread(file_, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }

 private:
  int file_;
};

Outcome prints_nothing(const CaseInput& input) {
  const CaughtOutput output;
  const Outcome outcome = live(input, [&](LifeStage, const std::string& step) -> MaybeMismatch {
    const std::string text = output.text();
    if (text.empty()) return std::nullopt;
    return Mismatch{"nothing written to standard output, which belongs to topolet",
                    fmt::format("it writes to standard output in {}: '{}'", step, printable(text, 80))};
  });
  if (outcome.kind != Outcome::Kind::kPassed) return outcome;
  end_without_output(input.progress);
}

// ---- The end --------------------------------------------------------------------------------------------------------

/// What a thread that calls the plugin does in between, in order to end when the instance is gone.
constexpr milliseconds kForLeftThreads{100};

/// Calls on a thread of its own, which ends after destroy(): so do thread-locals that the plugin made there.
Outcome is_quiet_after_destroy(const CaseInput& input) {
  input.progress("load");
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  WatchedHost* watched = nullptr;
  std::string after = "destroy";
  const auto on_late_call = [&](const std::string& function) {
    fail_at_once(input.progress,
                 {"no call of the host after destroy", fmt::format("it called {} of the host in {}", function, after)});
  };
  input.progress("create");
  RawCreation created =
      plugin_under_test->create_raw(plugin_under_test->default_options(), [&](const topolet_host* real) {
        watched = new WatchedHost(real, on_late_call);  // for ever
        return watched->view();
      });
  if (created.instance == nullptr) return Outcome::failed({"an instance", created.error});
  auto plugin =
      plugin::PluginPolicy::wrap(plugin_under_test->library().id(), std::move(created.host), created.instance);
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  std::mutex mutex;
  std::unique_lock<std::mutex> destroying(mutex);
  std::atomic<bool> has_called = false;
  std::thread caller([&] {
    for (const Testbed& testbed : make_testbeds()) {
      const TestRequest test_request = test_requests_on(testbed, input.seed).front();
      (void)exercise_decision(**plugin, test_request, input.progress);
      (void)exercise_events(**plugin, test_request, input.progress);
    }
    has_called = true;
    has_called.notify_one();
    const std::lock_guard<std::mutex> until_destroyed(mutex);
  });
  has_called.wait(false);
  input.progress("destroy");
  plugin->reset();
  watched->end();
  after = "the end of a thread that had called it";
  input.progress(after);
  destroying.unlock();
  caller.join();
  after = "a thread that it left, or an exit handler";
  input.progress("a thread that it left");
  std::this_thread::sleep_for(kForLeftThreads);
  end_as_a_program(input.progress, "its exit handlers");
}

// ---- Secrets --------------------------------------------------------------------------------------------------------

/// So much of a value is told apart from a text that is there by chance.
constexpr std::size_t kTellingBytes = 8;

/// Gathers all that a plugin logs.
class LogCatcher : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(message.payload.data(), message.payload.size()).append("\n");
  }
  void flush_() override {}

  std::string text_;
};

/// Gathers all that a plugin saves, besides.
class StateCatcher final : public store::PluginStateStore {
 public:
  Result<std::optional<std::string>> get(const std::string& plugin, const std::string& key) override {
    return state_.get(plugin, key);
  }
  Result<std::optional<std::string>> next(const std::string& plugin, const std::string& after) override {
    return state_.next(plugin, after);
  }
  Result<std::size_t> count(const std::string& plugin) override { return state_.count(plugin); }
  Status set(const std::string& plugin, const std::string& key, const std::string& value) override {
    saved_ += key + '\n' + value + '\n';
    return state_.set(plugin, key, value);
  }
  Status remove(const std::string& plugin, const std::string& key) override { return state_.remove(plugin, key); }

  std::string take() { return std::exchange(saved_, {}); }

 private:
  plugin::InMemoryPluginState state_;
  std::string saved_;
};

/// A text or a number that no plugin can know from elsewhere.
std::string random_value(RandomSource& rng, bool is_number) {
  static constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string value;
  for (int i = 0; i < (is_number ? 14 : 24); ++i) value += kDigits[rng.below(is_number ? 10 : kDigits.size())];
  if (is_number && value.front() == '0') value.front() = '7';
  return value;
}

/// Variables that plugins read, or may: those that it names, and common ones.
std::vector<std::string> names_of_variables(const plugin::PluginPolicy& plugin) {
  std::vector<std::string> names = {
      "DB_PASSWORD",     "API_TOKEN", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
      "LD_LIBRARY_PATH", "GOMAXPROCS"};
  for (std::string name : plugin.names_read().env) {
    std::replace(name.begin(), name.end(), '*', 'X');
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

/// Variables with random values, every other one with a number.
std::vector<std::pair<std::string, std::string>> make_secrets(const plugin::PluginPolicy& plugin, std::uint64_t seed) {
  RandomSource rng(seed);
  std::vector<std::pair<std::string, std::string>> secrets;
  for (std::string& name : names_of_variables(plugin)) {
    std::string value = random_value(rng, secrets.size() % 2 == 1);
    secrets.emplace_back(std::move(name), std::move(value));
  }
  return secrets;
}

/// The name of a variable whose value is in the text.
std::optional<std::string> leaked_variable(const std::vector<std::pair<std::string, std::string>>& env,
                                           const std::string& text) {
  for (const auto& [name, value] : env) {
    for (std::size_t at = 0; at + kTellingBytes <= value.size(); ++at) {
      if (text.find(value.substr(at, kTellingBytes)) != std::string::npos) return name;
    }
  }
  return std::nullopt;
}

Outcome keeps_env_secret(const CaseInput& input) {
  input.progress("load");
  const auto plugin_under_test = PluginUnderTest::load(input.file);
  if (!plugin_under_test) return Outcome::failed({"a loadable file", plugin_under_test.error().message});
  const auto log = std::make_shared<LogCatcher>();
  const auto state = std::make_shared<StateCatcher>();
  const auto logger = std::make_shared<Log>("topolet", log);
  logger->set_level(spdlog::level::trace);
  input.progress("create");
  const auto plugin = plugin_under_test->create_with(logger, state);
  if (!plugin) return Outcome::failed({"an instance", plugin.error().message});
  const std::vector<std::pair<std::string, std::string>> secrets = make_secrets(**plugin, input.seed);
  for (const Testbed& testbed : make_testbeds()) {
    for (TestRequest& test_request : test_requests_on(testbed, input.seed)) {
      test_request.request.workload.env = secrets;
      std::string answers = exercise_decision(**plugin, test_request, input.progress).answers;
      answers += exercise_events(**plugin, test_request, input.progress).answers;
      for (const auto& [where, text] : {std::pair<const char*, std::string>{"an answer", answers},
                                        {"a line of its log", log->take()},
                                        {"its state", state->take()}}) {
        const auto leaked = leaked_variable(secrets, text);
        if (!leaked) continue;
        return Outcome::failed(
            {"no value of an environment variable in what it says, logs or saves: it may be a secret",
             fmt::format("the value of {} is in {} ({})", *leaked, where, test_request.name)});
      }
    }
  }
  return Outcome::passed(fmt::format("{} variables", secrets.size()));
}

}  // namespace

std::vector<Case> neighbourhood_cases() {
  constexpr auto kNeeds = Case::Needs::kCreated;
  std::vector<Case> cases;
  for (const StatePart& part : state_parts()) {
    cases.push_back({part.case_name, part.promise, kNeeds,
                     [&part](const CaseInput& input) { return leaves_as_it_was(part, input); }});
  }
  cases.push_back(
      {"calls-1000", "1,000 containers that come and go keep no memory, files or threads", kNeeds, keeps_no_memory});
  cases.push_back({"stdout", "it writes nothing to standard output, also at the end", kNeeds, prints_nothing});
  cases.push_back({"after-destroy", "nothing of it calls the host after destroy, and its exit handlers return soon",
                   kNeeds, is_quiet_after_destroy});
  cases.push_back({"env-secrets", "no value of an environment variable is in what it says, logs or saves", kNeeds,
                   keeps_env_secret});
  return cases;
}

}  // namespace topolet::plugin_checker
