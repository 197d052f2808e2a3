#include "core/plugin_checker/footprint.hpp"

#include <malloc.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/resident_memory.hpp"

namespace topolet::plugin_checker {
namespace {

std::size_t count_files(const char* directory) {
  const auto files = std::filesystem::directory_iterator(directory);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::size_t growth(std::size_t from, std::size_t to) { return to > from ? to - from : 0; }

}  // namespace

Footprint Footprint::grown_since(const Footprint& before) const {
  return {growth(before.descriptors, descriptors), growth(before.threads, threads),
          growth(before.kept_bytes, kept_bytes), growth(before.resident_bytes, resident_bytes)};
}

Footprint measure_footprint() {
  const struct mallinfo2 heap = ::mallinfo2();
  const std::size_t kept = heap.uordblks + heap.hblkhd;
  return {count_files("/proc/self/fd"), count_files("/proc/self/task"), kept, kept > 0 ? resident_bytes() : 0};
}

bool another_thread_is_running() {
  const std::string own = std::to_string(::gettid());
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == own) continue;
    std::string text;
    std::getline(std::ifstream(thread.path() / "stat"), text);
    // Behind the name, which may have any characters.
    const std::size_t name_end = text.rfind(") ");
    if (name_end != std::string::npos && text.compare(name_end + 2, 1, "R") == 0) return true;
  }
  return false;
}

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace topolet::plugin_checker
