// The one way out: whoever learns that a container is over says so here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// How a container ended, as far as whoever learned of it knows.
struct Exit {
  enum class Kind : std::uint8_t {
    kExited,   ///< by itself, or nobody knows why
    kStopped,  ///< the kubelet stopped it
    kRemoved,  ///< the kubelet removed it
    kGone,     ///< the runtime does not have it any more
  };
  Kind kind = Kind::kExited;
  std::optional<std::int32_t> code = {};
};

/// Lives on the loop's thread.
class Exits {
 public:
  Exits(Committer& committer, CpusetWriter& cpusets) : committer_(committer), cpusets_(cpusets) {}

  /// What becomes of its CPUs is the transition's to say. Where the exit code counts and is not known, the runtime is
  /// asked. `then` runs once that is committed, or there is nothing to be done.
  void report(const std::string& container_id, const Exit& exit, std::function<void()> then = {});
  /// All containers of the sandbox are over.
  void pod_stopped(const std::string& sandbox_id, std::function<void()> then);
  void pod_removed(const std::string& sandbox_id, std::function<void()> then);

 private:
  void ask_exit_code(const std::string& container_id, std::function<void()> then);

  Committer& committer_;
  CpusetWriter& cpusets_;
};

}  // namespace topolet::engine
