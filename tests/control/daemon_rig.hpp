// topoletd as a process of its own between a client and a runtime in memory, with a configuration file to change.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/control/control.grpc.pb.h"
#include "tests/integration/cri_client.hpp"
#include "tests/support/process.hpp"
#include "tests/support/served_runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

using integration::as_grpc;

/// Sets how plugin at-load behaves while it is loaded, for daemons started in the meantime.
class AtLoad {
 public:
  explicit AtLoad(const char* what) { ::setenv("TOPOLET_TEST_AT_LOAD", what, 1); }
  ~AtLoad() { ::unsetenv("TOPOLET_TEST_AT_LOAD"); }
  AtLoad(const AtLoad&) = delete;
  AtLoad& operator=(const AtLoad&) = delete;
};

class DaemonRig {
 public:
  DaemonRig();
  ~DaemonRig();

  std::string file(const std::string& name) const { return directory_.file(name); }
  std::string control_socket() const { return file("control.sock"); }
  std::string state_dir() const { return file("state"); }
  std::string config() const { return file("topolet.conf"); }
  ServedRuntime& runtime() { return *runtime_; }
  Process& process() { return *process_; }

  std::string program = TOPOLET_DAEMON;
  std::string plugin_dir = TOPOLET_BROKEN_DIR;
  /// A command that runs the one that follows it; empty: none.
  std::vector<std::string> launcher;
  /// Writes the configuration: the sockets, lines below [plugins] and further sections.
  void configure(const std::string& plugins, const std::string& placement = "", const std::string& daemon = "");

  /// Starts topoletd and waits until it serves, or has ended. False in that case.
  bool start(const std::vector<std::string>& more_flags = {});
  /// Waits for the end: exit code, or 128 + signal.
  int wait_for_end() { return process_->wait(); }
  int stop();

  control::v1::Control::Stub& control() { return *control_; }
  integration::CriClient& kubelet() { return *kubelet_; }
  control::v1::Plugin plugin(const std::string& id);
  grpc::Status reset(const std::string& id);
  grpc::Status reload(control::v1::ReloadResponse* response = nullptr);

  /// Creates a container of a new pod; it asks for `cpus` CPUs of its own, or none.
  grpc::Status create(const std::string& pod, int cpus = 0);
  /// Creates and starts one.
  grpc::Status run(const std::string& pod, int cpus = 0);

  std::string log() const;
  /// Waits for `text` in the log, which topoletd writes on a thread of its own.
  bool logs(const std::string& text) const;
  /// The first column of all rows of a query on the state database.
  std::vector<std::string> query(const std::string& sql) const;
  /// The audited events that are of no container, as "event: reason", oldest first; without those of the check of the
  /// database, which is half a minute after the start.
  std::vector<std::string> audited() const;
  /// Waits up to 20 s.
  static bool eventually(const std::function<bool()>& condition);

 private:
  Result<std::string> create_container(const std::string& pod, int cpus);

  TempDir directory_;
  std::unique_ptr<ServedRuntime> runtime_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<control::v1::Control::Stub> control_;
  std::unique_ptr<integration::CriClient> kubelet_;
};

}  // namespace topolet::testing
