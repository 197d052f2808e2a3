#include "plugins/gpu/options.hpp"

#include <charconv>
#include <stdexcept>
#include <system_error>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr const char* kDefaultSysfs = "/sys";

}  // namespace

Headroom parse_headroom(std::string_view text) {
  if (text.empty() || text == "auto") return {};
  std::size_t cpus = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpus);
  constexpr std::size_t kMost = 4096;
  if (error != std::errc() || end != text.data() + text.size() || cpus > kMost) {
    throw std::invalid_argument("headroom: '" + std::string(text) +
                                "' is neither auto nor a number of CPUs from 0 to 4096");
  }
  return {cpus};
}

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["affinity"] == "require") read.rules.affinity = Affinity::kRequire;
  if (options["split"] == "cpus") read.rules.split = Split::kCpus;
  read.keep_free = options["keep-free"] == "true";
  read.headroom = parse_headroom(trimmed(options["headroom"]));
  read.kinds = parse_device_kinds(options["devices"]);
  read.roots.sysfs = options["sysfs-root"];
  read.roots.proc = options["proc-root"];
  read.roots.dev = options["dev-root"];
  // Where it is not, no device would ever be found, without a word. Without any sysfs it is enough to say so.
  if (const std::string why = why_missing("sysfs-root", read.roots.sysfs);
      !why.empty() && read.roots.sysfs != kDefaultSysfs)
    throw std::invalid_argument(why);
  read.roots.cdi.clear();
  for (const std::string& directory : split(options["cdi-dirs"], ' ')) read.roots.cdi.emplace_back(directory);
  read.nvml_library = trimmed(options["nvml-library"]);
  return read;
}

std::string why_missing(const char* option, const std::filesystem::path& directory) {
  constexpr std::size_t kMaxLength = 256;
  std::error_code ignored;
  if (std::filesystem::is_directory(directory, ignored)) return {};
  return std::string(option) + ": there is no directory '" + printable(directory.string(), kMaxLength) +
         "'; write where it is mounted";
}

}  // namespace topolet::gpu
