#include "tests/bench/daemon_under_test.hpp"

#include <filesystem>
#include <fstream>
#include <utility>

namespace topolet::bench {

DaemonUnderTest::DaemonUnderTest(const Topoletd& topoletd, const RuntimeOptions& runtime,
                                 std::vector<std::string> flags)
    : options_({.topoletd = topoletd,
                .directory = directory_.file("daemon"),
                .runtime = directory_.file("runtime.sock"),
                .more_flags = std::move(flags)}),
      runtime_(runtime_role(options_.runtime, runtime), options_.runtime),
      to_runtime_(std::make_unique<LoadClient>(options_.runtime)) {
  start_daemon();
}

std::size_t DaemonUnderTest::database_bytes() const {
  std::size_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(options_.state_db() + suffix, missing);
    if (!missing) bytes += size;
  }
  return bytes;
}

std::chrono::steady_clock::time_point DaemonUnderTest::exec_time() const {
  std::chrono::steady_clock::rep count = 0;
  std::ifstream(exec_time_file(options_.log())) >> count;
  return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(count));
}

void DaemonUnderTest::stop_daemon() {
  client_.reset();
  daemon_->stop();
}

void DaemonUnderTest::start_daemon() {
  daemon_ = start_topoletd(options_);
  client_ = std::make_unique<LoadClient>(options_.socket());
}

}  // namespace topolet::bench
