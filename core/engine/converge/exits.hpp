// Where every end of a container is reported, whoever learns of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// The end of a container, as far as whoever learned of it knows.
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
  /// `wants_exit_codes` says whether somebody is told the exit code of each container, whatever becomes of its CPUs.
  Exits(Committer& committer, CpusetWriter& cpusets, std::function<bool()> wants_exit_codes = {})
      : committer_(committer), cpusets_(cpusets), wants_exit_codes_(std::move(wants_exit_codes)) {}

  /// Commits the end of a container; the transition decides what happens to its CPUs. Asks the runtime for an exit code
  /// that matters, or is wanted, and is not known. `then` runs after the commit, or at once if there is nothing to
  /// commit. Without it nobody waits, and the commit is written soon.
  void report(const std::string& container_id, const Exit& exit, std::function<void()> then = {});
  /// All containers of the sandbox are over.
  void pod_stopped(const std::string& sandbox_id, std::function<void()> then);
  void pod_removed(const std::string& sandbox_id, std::function<void()> then);

 private:
  void commit(const std::string& container_id, const Exit& exit, std::function<void()> then);
  void ask_exit_code(const std::string& container_id, bool matters, std::function<void()> then);

  Committer& committer_;
  CpusetWriter& cpusets_;
  const std::function<bool()> wants_exit_codes_;
};

}  // namespace topolet::engine
