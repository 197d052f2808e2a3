// Keeps containers off the CPUs that a file lists. When the file changes, those that are there leave at once: a thread
// waits for the change, and wakes topoletd for it.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <topolet/policy.hpp>
#include <topolet/policy/lists.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using namespace topolet::sdk;

/// Calls `on_change` from a thread of its own whenever something in the directory of the file has changed.
class FileWatch {
 public:
  FileWatch(const std::filesystem::path& file, std::function<void()> on_change)
      : on_change_(std::move(on_change)), inotify_(::inotify_init1(IN_CLOEXEC)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    constexpr std::uint32_t kChanges = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
    const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
    if (inotify_ < 0 || stop_ < 0 || ::inotify_add_watch(inotify_, directory.c_str(), kChanges) < 0) {
      close_all();
      throw std::runtime_error("cannot watch " + directory.string() + ", the directory of avoid.file; create it");
    }
    thread_ = std::thread([this] { watch(); });
  }
  ~FileWatch() {
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(::write(stop_, &kOne, sizeof(kOne)) == sizeof(kOne));
    thread_.join();
    close_all();
  }
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  void watch() const {
    alignas(inotify_event) std::array<char, 4096> events{};
    std::array<pollfd, 2> waited = {{{inotify_, POLLIN, 0}, {stop_, POLLIN, 0}}};
    while (true) {
      if (::poll(waited.data(), waited.size(), -1) < 0) continue;
      if (waited[1].revents != 0) return;
      if (::read(inotify_, events.data(), events.size()) > 0) on_change_();
    }
  }
  void close_all() const {
    if (inotify_ >= 0) ::close(inotify_);
    if (stop_ >= 0) ::close(stop_);
  }

  const std::function<void()> on_change_;
  const int inotify_;
  const int stop_;
  std::thread thread_;
};

class Avoid {
 public:
  // It reads no topolet.io annotation.
  static constexpr std::array<topolet_str, 0> kAnnotations = {};
  static constexpr std::array<topolet_kv, 1> kCodes = {
      {{TOPOLET_STR("too-few-others"), TOPOLET_STR("Without the CPUs in avoid.file, the candidate has too few.")}}};

  Avoid(const Options& options, const Host& host)
      : file_(options["file"]),
        interval_ms_(static_cast<std::uint32_t>(options.milliseconds("every").count())),
        host_(host) {
    note_listed();
    watch_.emplace(file_, [this] { host_.tick_soon(); });
  }

  void score(const topolet_request& request, Scores& scores) const {
    const Set avoided = saved();
    if (avoided.empty()) return;
    const std::size_t needed = request.exclusive != 0 ? request.exclusive_cpus : 1;
    for (std::size_t i = 0; i < candidates(request).size(); ++i) {
      const Set others = Set(candidates(request)[i].usable) - avoided;
      if (others.size() >= needed) continue;
      scores.score(i, TOPOLET_SCORE_MIN, "has " + counted(others.size(), "CPU") + " besides " + cpu_names(avoided));
      scores.code(i, "too-few-others");
    }
  }

  void pick(const topolet_pick_request& asked, Picks& picks) const {
    const Set avoided = saved();
    const Set others = Set(asked.usable) - avoided;
    const std::size_t needed = asked.count > 0 ? asked.count : 1;
    if (asked.stage != TOPOLET_PICK_CHOOSE || size_of_both(asked.usable, avoided.view()) == 0 || others.size() < needed)
      return;
    picks.narrow(others.view());
    picks.reason("keeps off " + cpu_names(avoided));
  }

  std::uint32_t interval_ms() const { return interval_ms_; }

  // What is decided depends on the saved state alone, never on the file, so that it can be repeated.
  void tick(const topolet_tick_request& request, Wishes& wishes) const {
    if (!note_listed()) return;
    const Set avoided = saved();
    for (std::size_t i = 0; i < entries(*request.ledger).size(); ++i) {
      const topolet_ledger_entry& entry = entries(*request.ledger)[i];
      const bool may_move = entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_EXCLUSIVE;
      if (may_move && size_of_both(entry.cpus, avoided.view()) > 0)
        wishes.replace(i, 0, cpu_names(avoided) + " are to be kept free");
    }
  }

 private:
  static constexpr std::string_view kKey = "cpus";

  Set saved() const { return parse_list(host_.get(kKey).value_or("")).value_or(Set()); }

  /// Saves which CPUs the file lists. Returns true if they are others than before. Without the file there are none.
  bool note_listed() const {
    std::ifstream stream(file_);
    std::string words{std::istreambuf_iterator<char>(stream), {}};
    words.erase(std::find_if(words.begin(), words.end(), [](char c) { return c == '\n' || c == ' '; }), words.end());
    const std::optional<Set> listed = parse_list(words);
    if (!listed) {
      host_.log(TOPOLET_LOG_WARN, file_.string() + " is not a list of CPUs such as 0-3,8; it counts as before");
      return false;
    }
    if (*listed == saved()) return false;
    host_.set(kKey, listed->empty() ? "" : listed->to_string());
    return true;
  }

  const std::filesystem::path file_;
  const std::uint32_t interval_ms_;
  const Host host_;
  std::optional<FileWatch> watch_;
};

constexpr std::array<topolet_option, 2> kOptions = {{
    string_option("file", "/run/topolet-avoid", "The file with the CPUs, such as 0-3,8."),
    duration_option("every", "60s", TOPOLET_TICK_MIN_MS, 3600000,
                    "How often the file is read without a change that was noticed."),
}};

}  // namespace

TOPOLET_PLUGIN(Avoid, "avoid", "1.0", kOptions);
