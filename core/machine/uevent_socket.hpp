// Hears from the kernel that CPUs go off- and online.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::machine {

/// The CPU that a message of the kernel (a uevent) says has gone off- or online; none if it is about something else.
/// See Documentation/admin-guide/cputopology and lib/kobject_uevent.c: "ACTION@DEVPATH", then NAME=VALUE items, each
/// ended by a zero byte.
std::optional<std::uint32_t> cpu_of_uevent(std::string_view message);

/// The kernel's own messages (NETLINK_KOBJECT_UEVENT, group 1), which need no udevd. One thread.
class UeventSocket {
 public:
  /// An error where the kernel does not allow it, as in some containers.
  static Result<UeventSocket> open();

  int fd() const { return fd_.get(); }

  struct Heard {
    CpuSet cpus;             ///< that went off- or online, or both
    bool lost_some = false;  ///< messages came faster than they were read: any CPU may be concerned
  };
  /// All that has come since the last time; does not wait.
  Heard read();

 private:
  explicit UeventSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace topolet::machine
