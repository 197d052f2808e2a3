#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file_access.hpp"
#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"
#include "core/cri/socket/listener_socket.hpp"
#include "core/cri/socket/runtime_lock.hpp"
#include "core/preflight/findings.hpp"

namespace topolet::preflight {
namespace {

namespace fs = std::filesystem;

/// A file that topoletd makes or uses.
struct Place {
  std::string option;
  std::string what;  ///< with its path
  fs::path path;     ///< resolved
  bool is_ours = true;
};

bool is_same(const Place& a, const Place& b) {
  if (a.path == b.path || is_same_file(a.path, b.path)) return true;
  // The same directory may be mounted in two places.
  return a.path.filename() == b.path.filename() && is_same_file(a.path.parent_path(), b.path.parent_path());
}

/// That somebody has named a directory as a socket is told of by itself.
bool is_below(const fs::path& path, const fs::path& above) {
  std::error_code ignored;
  if (fs::is_directory(above, ignored)) return false;
  return path != above && std::mismatch(above.begin(), above.end(), path.begin(), path.end()).first == above.end();
}

std::vector<Place> places(const config::DaemonOptions& daemon) {
  std::vector<Place> all;
  const auto add_socket = [&all](const std::string& option, const std::string& path, bool is_ours) {
    all.push_back({option, fmt::format("{} ({})", option, path), resolve_links(path), is_ours});
    if (!is_ours) return;
    all.push_back({option, fmt::format("the lock file of {} ({}.lock)", option, path), resolve_links(path + ".lock")});
  };
  if (!daemon.listen.empty()) add_socket("daemon.listen", daemon.listen, true);
  add_socket("daemon.control", daemon.control, true);
  all.push_back({"daemon.control", fmt::format("the socket for a successor ({}.take-over)", daemon.control),
                 resolve_links(daemon.control + ".take-over")});
  if (!daemon.watch.empty()) add_socket("daemon.watch", daemon.watch, true);
  add_socket("daemon.runtime", daemon.runtime, false);
  if (daemon.image != daemon.runtime) add_socket("daemon.image", daemon.image, false);
  for (const char* name : {"state.db", "state.db-wal", "state.db-shm", "state.db.lock", "state.db.generation",
                           "state.db.damaged", "plugin-crashes"}) {
    const fs::path path = daemon.state_dir / name;
    all.push_back(
        {"daemon.state-dir", fmt::format("the file {} of daemon.state-dir", path.string()), resolve_links(path)});
  }
  return all;
}

/// False, and a mistake, if topoletd would need the same path twice.
bool check_apart(Report& report, const Place& a, const Place& b) {
  // The image service is most often the runtime's.
  if (a.option == b.option || (!a.is_ours && !b.is_ours)) return true;
  if (is_same(a, b)) {
    report.mistake(b.option, fmt::format("{} is the same as {}; each needs a path of its own", b.what, a.what));
  } else if (is_below(b.path, a.path)) {
    report.mistake(b.option, fmt::format("{} is below {}, which is no directory", b.what, a.what));
  } else if (is_below(a.path, b.path)) {
    report.mistake(a.option, fmt::format("{} is below {}, which is no directory", a.what, b.what));
  } else {
    return true;
  }
  return false;
}

/// The options whose paths are in each other's way.
std::vector<std::string> check_all_apart(Report& report) {
  std::vector<std::string> in_the_way;
  const std::vector<Place> all = places(report.options().daemon);
  for (auto a = all.begin(); a != all.end(); ++a) {
    for (auto b = a + 1; b != all.end(); ++b) {
      const std::array<std::string, 2> pair{a->option, b->option};
      const auto is_told = [&](const std::string& option) {
        return report.is_mistaken(option) ||
               std::find(in_the_way.begin(), in_the_way.end(), option) != in_the_way.end();
      };
      if (is_told(pair[0]) && is_told(pair[1])) continue;
      if (report.is_mistaken(pair[0]) || report.is_mistaken(pair[1]) || check_apart(report, *a, *b)) continue;
      in_the_way.insert(in_the_way.end(), pair.begin(), pair.end());
    }
  }
  return in_the_way;
}

/// Returns true if systemd has handed over sockets. It does so only to processes that it starts.
bool is_handed_over() { return std::getenv("LISTEN_FDS") != nullptr; }

void check_own(Report& report, const std::string& option, const std::string& path, const cri::SocketAccess& access) {
  const bool is_listen = option == "daemon.listen";
  if (report.is_take_over() || (is_listen && is_handed_over())) return;
  const auto use = cri::inspect_socket(path, access);
  if (!use) return report.mistake(option, use.error().message);
  if (*use != cri::SocketUse::kSystemds) return report.note_use(option, *use == cri::SocketUse::kTopoletds);
  if (is_listen) {
    return report.warning(option, fmt::format("systemd listens on {}, as a socket unit says; only systemd can start "
                                              "topoletd with it",
                                              path));
  }
  report.mistake(option,
                 fmt::format("systemd listens on {}; only daemon.listen can be the path of a socket unit", path));
}

/// Without it topoletd serves, and only its restart fails calls.
void check_take_over(Report& report, const std::string& control) {
  const std::string path = control + ".take-over";
  const auto warn = [&](const std::string& why) {
    report.warning(
        "daemon.control",
        fmt::format("no other topoletd could take this one's place, so that calls fail during a restart: {}", why));
  };
  struct stat file {};
  if (path.size() > kMaxSocketPath) {
    warn(fmt::format("the socket for that, {}, would have more than {} bytes; choose a path of at most {}", path,
                     kMaxSocketPath, kMaxSocketPath - (path.size() - control.size())));
  } else if (::lstat(path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode)) {
    warn(fmt::format("{} exists and is not a socket; remove it", path));
  }
}

/// It may be started later.
void check_runtime(Report& report, const std::string& option, const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode)) {
    return report.mistake(option, fmt::format("{} exists and is not a socket; name the socket that the runtime listens "
                                              "on",
                                              path));
  }
  const auto address = unix_address(path);
  if (!address) return report.mistake(option, address.error().message);
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), as_sockaddr(*address), sizeof(sockaddr_un)) == 0 || errno == EAGAIN) return;
  report.warning(option,
                 fmt::format("cannot connect to {}: {}; containers can be created once the runtime listens there", path,
                             std::strerror(errno)));
}

/// Checks that no other topoletd uses the runtime. One whose place this one is to take may.
void check_runtime_lock(Report& report, const config::DaemonOptions& daemon) {
  const auto user = cri::find_runtime_user(cri::RuntimeLock::directory(), daemon.runtime);
  if (!user) return;
  if (!report.is_take_over()) return report.note_use("daemon.runtime", true);
  if (user->control.empty() || user->control == daemon.control) return;
  report.mistake("daemon.runtime",
                 fmt::format("another topoletd{} uses the runtime at {}: two would undo each other's CPU sets",
                             describe(*user), daemon.runtime));
}

}  // namespace

void check_sockets(Report& report) {
  const config::DaemonOptions& daemon = report.options().daemon;
  const std::vector<std::string> in_the_way = check_all_apart(report);
  const auto is_told = [&](const std::string& option) {
    return report.is_mistaken(option) || std::find(in_the_way.begin(), in_the_way.end(), option) != in_the_way.end();
  };
  if (!daemon.listen.empty() && !is_told("daemon.listen"))
    check_own(report, "daemon.listen", daemon.listen, cri::access_like(daemon.runtime, {.mode = 0660}));
  if (!is_told("daemon.control")) {
    check_own(report, "daemon.control", daemon.control, {.mode = 0600});
    check_take_over(report, daemon.control);
  }
  if (!daemon.watch.empty() && !is_told("daemon.watch"))
    check_own(report, "daemon.watch", daemon.watch, {.mode = 0660});
  if (!daemon.watch_group.empty()) {
    if (const auto group = cri::find_group(daemon.watch_group); !group)
      report.warning("daemon.watch-group", "nobody could watch: " + group.error().message);
  }
  if (!is_told("daemon.runtime")) check_runtime_lock(report, daemon);
  if (!is_told("daemon.runtime")) check_runtime(report, "daemon.runtime", daemon.runtime);
  if (daemon.image != daemon.runtime && !is_told("daemon.image")) check_runtime(report, "daemon.image", daemon.image);
}

}  // namespace topolet::preflight
