#include "tests/vm/service.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/integration/child.hpp"

namespace topolet::integration {
namespace {

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

CommandResult run_command(const std::string& command) {
  const auto finished = run_to_end({"sh", "-c", "exec 2>&1; " + command});
  if (!finished) return {.status = -1, .text = finished.error().message};
  return {.status = finished->exit_code, .text = without_last_newline(finished->out)};
}

std::string property_of_service(const std::string& name) {
  return run_command("systemctl show --value -p " + name + " topoletd.service").text;
}

pid_t service_pid() { return std::atoi(property_of_service("MainPID").c_str()); }

bool service_is_up() { return property_of_service("ActiveState") == "active"; }

std::string service_journal() {
  return run_command("journalctl --sync; journalctl --no-pager -o cat -u topoletd.service").text;
}

FrozenFileSystem::FrozenFileSystem(const std::string& mount_point)
    : directory_(::open(mount_point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      frozen_(::ioctl(directory_, FIFREEZE, 0) == 0) {}

FrozenFileSystem::~FrozenFileSystem() {
  if (frozen_) ::ioctl(directory_, FITHAW, 0);
  ::close(directory_);
}

}  // namespace topolet::integration
