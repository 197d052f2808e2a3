// A directory with a configuration, and the programs that check it and start with it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

/// How a program ended, and its output.
struct ProgramEnd {
  int code = 0;
  std::string text;
};

class NodeFiles {
 public:
  /// Makes programs that are started or checked from here on note there which runtime they use.
  NodeFiles() { ::setenv("TOPOLET_RUN_DIR", files_.file("run").c_str(), 1); }

  /// '@' stands for the directory.
  std::string expand(std::string text) const {
    for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos; at += directory().size())
      text.replace(at, 1, directory());
    return text;
  }
  std::string directory() const { return files_.file("node"); }
  std::string config() const { return files_.file("topolet.conf"); }

  /// `daemon` takes the place of, or adds to, keys of [daemon]; `more` are further lines.
  void configure(const std::map<std::string, std::string>& daemon, const std::string& more) const {
    std::map<std::string, std::string> keys = {{"listen", "@/topolet.sock"},
                                               {"control", "@/control.sock"},
                                               {"runtime", "@/runtime.sock"},
                                               {"state-dir", "@/state"},
                                               {"plugin-dir", TOPOLET_PLUGIN_BUILD_DIR}};
    for (const auto& [key, value] : daemon) keys[key] = value;
    std::string text = "[daemon]\n";
    for (const auto& [key, value] : keys) text += key + " = " + expand(value) + "\n";
    files_.write("topolet.conf", text + expand(more) + "\n");
    std::filesystem::create_directories(directory());
  }

  /// Every file with its type, size and times.
  std::string listing() const {
    std::ostringstream list;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory())) {
      const auto status = entry.symlink_status();
      list << entry.path() << ' ' << static_cast<int>(status.type()) << ' ';
      if (entry.is_regular_file()) list << entry.file_size() << ' ';
      if (!entry.is_symlink()) list << entry.last_write_time().time_since_epoch().count();
      list << '\n';
    }
    return list.str();
  }

  ProgramEnd check() const { return run({TOPOLET_DAEMON, "--check-config", "--config", config()}); }
  ProgramEnd check_with_command() const { return run({TOPOLET_COMMAND, "config", "check", config()}); }

  /// Starts topoletd until it serves or has ended. True if it serves.
  bool start() {
    log_ = "log" + std::to_string(++runs_);
    daemon_ =
        std::make_unique<Process>(std::vector<std::string>{TOPOLET_DAEMON, "--config", config()}, files_.file(log_));
    bool serves = false;
    for (int i = 0; i < 3000 && !serves && !daemon_->has_ended(); ++i) {
      serves = log().find("topoletd ready") != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return serves;
  }
  int stop() {
    daemon_->signal(SIGTERM);
    return daemon_->wait();
  }
  void kill() { daemon_.reset(); }
  /// Waits for the end of a topoletd that does not start, and returns its status.
  int end_of_start() { return daemon_->wait(); }
  std::string log() const { return read(files_.file(log_)); }

 private:
  static std::string read(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static ProgramEnd run(const std::vector<std::string>& command) {
    const TempDir output;
    ProgramEnd end;
    end.code = Process(command, output.file("out")).wait();
    end.text = read(output.file("out"));
    return end;
  }

  TempDir files_;
  std::string log_;
  int runs_ = 0;
  std::unique_ptr<Process> daemon_;
};

}  // namespace topolet::testing
