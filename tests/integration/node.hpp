// A whole node for a test: a private containerd, topoletd in front of it, and clients to both.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "tests/integration/child.hpp"
#include "tests/integration/cri_client.hpp"
#include "tests/integration/state_db.hpp"

namespace topolet::integration {

inline constexpr char kImage[] = "topolet.io/story:1";

/// Asks again until it is so, or until the time is over. For what comes about by itself: exits, repairs.
bool wait_until(const std::function<bool()>& is_so, std::chrono::seconds deadline = std::chrono::seconds(120));

/// Returns true if topoletd is to hear of containers over NRI, and clients speak with the runtime itself: with
/// TOPOLET_FRONT=nri, as scripts/conformance sets it together with TOPOLET_NRI_RUNTIME (scripts/private-runtime).
bool is_nri_front();

/// Why no container can run here; empty when one can.
std::string why_no_containers();

/// A containerd of its own (scripts/private-runtime), ended with everything in it by the destructor.
class PrivateRuntime {
 public:
  static Result<std::unique_ptr<PrivateRuntime>> start();
  ~PrivateRuntime();  // NOLINT(bugprone-exception-escape)

  const std::filesystem::path& directory() const { return directory_; }
  /// A bundle for each container that was started.
  std::filesystem::path tasks() const { return directory_ / "state/io.containerd.runtime.v2.task/k8s.io"; }
  std::string endpoint() const { return "unix://" + (directory_ / "containerd.sock").string(); }
  /// Returns true if it has ended by itself.
  bool has_died() const;
  /// Starts it again, with its containers.
  Status start_again() const;
  /// Returns true if runc is changing the resources of a container, for whoever.
  bool is_updating() const;
  CgroupNaming cgroups() const { return {"/" + directory_.filename().string(), false}; }

 private:
  explicit PrivateRuntime(std::filesystem::path directory) : directory_(std::move(directory)) {}
  std::filesystem::path directory_;
};

/// topoletd with its socket and state in `directory`; can be killed and started again on the same state.
class Daemon {
 public:
  Daemon(std::filesystem::path directory, std::string runtime_endpoint);

  /// Other plugins than topolet's own, from the next start on; `config` enables them.
  void use_plugins(const std::filesystem::path& plugin_dir, const std::filesystem::path& config);

  /// Returns when it serves; the error carries the end of its log.
  Status start(const std::vector<std::string>& more_flags = {});
  /// Returns its exit code, or 128 + signal.
  int end(int signal);

  /// The socket of a kubelet.
  std::string endpoint() const;
  std::filesystem::path state_db() const { return directory_ / "state" / "state.db"; }
  std::filesystem::path log() const { return directory_ / "topoletd.log"; }
  pid_t pid() const { return child_ ? child_->pid() : 0; }
  std::string log_tail() const;

 private:
  std::vector<std::string> front_flags() const;

  std::filesystem::path directory_;
  std::string runtime_endpoint_;
  std::vector<std::string> plugin_flags_;
  std::optional<Child> child_;
};

}  // namespace topolet::integration
