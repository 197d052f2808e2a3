// The command `topolet`, run as people run it, and a state database for it to read.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "store/store.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

struct Said {
  int code = 0;
  std::string text;  ///< stdout and stderr
};

inline Said run_to_its_end(const std::vector<std::string>& words) {
  const TempDir directory;
  Said said;
  said.code = Process(words, directory.file("out")).wait();
  std::ostringstream text;
  text << std::ifstream(directory.file("out")).rdbuf();
  said.text = text.str();
  return said;
}

/// Runs the command to its end, its words as they are.
inline Said topolet(std::vector<std::string> words) {
  words.insert(words.begin(), TOPOLET_COMMAND);
  return run_to_its_end(words);
}

/// `topolet simulate`, where no vote is lost because this machine is busy.
inline Said simulate(std::vector<std::string> words) {
  words.insert(words.begin(), {"simulate", "--placement.deadline-ms=60000"});
  return topolet(std::move(words));
}

/// The same as topolet() in a line of the shell, in which it is called $topolet.
inline Said shell(const std::string& line) {
  return run_to_its_end({"/bin/sh", "-c", "topolet='" TOPOLET_COMMAND "'; " + line});
}

/// A state directory that a store has written.
class StateDir {
 public:
  /// The store in it, which only one may have open at a time.
  std::unique_ptr<store::Store> open() const {
    auto opened = store::Store::open({.directory = path(), .boot_id = "boot", .now_ms = 1});
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return *std::move(opened);
  }

  std::string path() const { return directory_.file("state"); }
  std::string database() const { return path() + "/state.db"; }
  std::string file(const std::string& name) const { return directory_.file(name); }
  const TempDir& directory() const { return directory_; }

  /// The command on this directory.
  Said topolet(std::vector<std::string> words) const {
    words.insert(words.end(), {"--state-dir", path()});
    return testing::topolet(std::move(words));
  }
  Said query(const std::string& sql, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"query", sql});
    return topolet(std::move(more));
  }

 private:
  TempDir directory_;
};

}  // namespace topolet::testing
