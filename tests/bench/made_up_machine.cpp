#include "tests/bench/made_up_machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <vector>

namespace topolet::bench {
namespace {

constexpr char kOnline[] = "/sys/devices/system/cpu/online";
constexpr char kIsolated[] = "/sys/devices/system/cpu/isolated";

void require(bool fine, const std::string& what) {
  if (!fine) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

void map_to_root(uid_t uid, gid_t gid) {
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", uid);
  std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", gid);
}

void enter_mount_namespace() {
  const uid_t uid = ::getuid();
  const gid_t gid = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    require(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "cannot have a mount namespace");
    map_to_root(uid, gid);
  }
  require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "cannot make the mounts private");
}

void mount_text_over(const std::string& file, const std::string& text) {
  std::string name = (std::filesystem::temp_directory_path() / "topolet-bench-XXXXXX").string();
  const int fd = ::mkstemp(name.data());
  require(fd >= 0, name);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  const bool mounted = written && ::mount(name.c_str(), file.c_str(), nullptr, MS_BIND, nullptr) == 0;
  const int error = errno;
  ::unlink(name.c_str());
  errno = error;
  require(mounted, "cannot mount over " + file);
}

}  // namespace

int number_of_cpus(const std::string& synthetic) {
  static const std::regex kLevel("[a-z]+:([0-9]+)");
  int cpus = 1;
  for (std::sregex_iterator level(synthetic.begin(), synthetic.end(), kLevel), end; level != end; ++level) {
    cpus *= std::stoi((*level)[1]);
  }
  return cpus;
}

void enter_machine(const std::string& synthetic) {
  enter_mount_namespace();
  mount_text_over(kOnline, fmt::format("0-{}\n", number_of_cpus(synthetic) - 1));
  if (std::filesystem::exists(kIsolated)) mount_text_over(kIsolated, "\n");
  ::setenv("HWLOC_SYNTHETIC", synthetic.c_str(), 1);
}

bool can_enter_machine(const std::string& synthetic) {
  std::vector<std::string> arguments = {program_invocation_short_name, "role", "try-machine", synthetic};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  if (::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ) != 0) return false;
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace topolet::bench
