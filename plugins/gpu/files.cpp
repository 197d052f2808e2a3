#include "plugins/gpu/files.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {

namespace fs = std::filesystem;

std::optional<std::string> read_file(const fs::path& path) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  std::error_code error;
  // Opening a pipe would wait for its writer.
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::vector<char> part(std::size_t{64} << 10);
  while (file && text.size() <= kMaxBytes) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || !file.eof() || text.size() > kMaxBytes) return std::nullopt;
  return text;
}

std::string read_line(const fs::path& path) {
  const std::string text = read_file(path).value_or("");
  return std::string(trimmed(std::string_view(text).substr(0, text.find('\n'))));
}

std::vector<std::string> list_directory(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path canonical_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  return error ? fs::path() : real;
}

std::int64_t modified_ns(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace topolet::gpu
