// topoletd alone, in front of an in-memory runtime: for the sections that look at nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/child.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/ways.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::bench {

class DaemonUnderTest {
 public:
  /// Runtime, topoletd and client are started in this order.
  explicit DaemonUnderTest(const Topoletd& topoletd, const RuntimeOptions& runtime = {},
                           std::vector<std::string> flags = {});

  LoadClient& client() { return *client_; }
  LoadClient& runtime() { return *to_runtime_; }
  std::string socket() const { return options_.socket(); }
  std::string log() const { return options_.log(); }
  std::string state_db() const { return options_.state_db(); }
  Process process() const { return daemon_->process(); }
  /// Returns the size of the database with its write-ahead log.
  std::size_t database_bytes() const;

  /// Returns the time of the last start.
  std::chrono::steady_clock::time_point exec_time() const;

  void stop_daemon();
  /// As soon as it takes connections.
  void start_daemon();

 private:
  TempDir directory_;
  DaemonOptions options_;
  Child runtime_;
  std::unique_ptr<LoadClient> to_runtime_;
  std::unique_ptr<Child> daemon_;
  std::unique_ptr<LoadClient> client_;
};

}  // namespace topolet::bench
