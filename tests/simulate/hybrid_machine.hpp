// A machine whose cores are not alike, for tests.
#pragma once

#include <filesystem>
#include <string>

namespace topolet::simulate {

/// Two cores of two threads, CPUs 0-3, and four of one, 4-7, which are slower. A file of hwloc's while it lives.
class HybridMachine {
 public:
  struct Shape {
    bool tells_kinds = true;  ///< which CPUs are faster
    bool two_nodes = false;   ///< the slow cores are a package and a node of their own
  };
  explicit HybridMachine(Shape shape);
  ~HybridMachine() { std::filesystem::remove(file_); }
  HybridMachine(const HybridMachine&) = delete;
  HybridMachine& operator=(const HybridMachine&) = delete;

  std::string file() const { return file_.string(); }

 private:
  const std::filesystem::path file_;
};

}  // namespace topolet::simulate
