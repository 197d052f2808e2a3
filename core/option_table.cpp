#include "core/option_table.hpp"

#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/index_set.hpp"

namespace topolet {
namespace {

constexpr std::int64_t kMillisecondsPerDay = 24LL * 60 * 60 * 1000;

OptionSpec between(OptionSpec spec, std::int64_t least, std::int64_t most) {
  spec.least = least;
  spec.most = most;
  return spec;
}

std::vector<OptionSpec> daemon_options() {
  const auto option = [](std::string key, OptionType type, std::string value, std::string help,
                         std::vector<std::string> allowed = {}) {
    return OptionSpec{.section = "daemon",
                      .key = std::move(key),
                      .type = type,
                      .defaults = {std::move(value)},
                      .allowed = std::move(allowed),
                      .help = std::move(help)};
  };
  const auto number = [option](std::string key, std::string value, std::string help, std::int64_t least,
                               std::int64_t most) {
    return between(option(std::move(key), OptionType::kInt, std::move(value), std::move(help)), least, most);
  };
  return {
      option("listen", OptionType::kSocket, "unix:///run/topolet/topolet.sock",
             "The socket that the kubelet talks to (its --container-runtime-endpoint)."),
      option("control", OptionType::kSocket, "unix:///run/topolet/control.sock",
             "The socket that the command topolet talks to; only its owner may connect."),
      option("runtime", OptionType::kSocket, "unix:///run/containerd/containerd.sock",
             "The container runtime's CRI socket."),
      option("image", OptionType::kSocket, "", "The CRI socket of the image service; the runtime's if empty."),
      option("state-dir", OptionType::kPath, "/var/lib/topolet",
             "Where the state database lives; made with mode 0700 if absent."),
      option("plugin-dir", OptionType::kPath, TOPOLET_PLUGIN_DIR, "Where plugins are loaded from."),
      option("log-level", OptionType::kString, "info", "How much is logged.",
             {"trace", "debug", "info", "warn", "error", "off"}),
      option("durability", OptionType::kString, "normal",
             "What a decision survives once it is acted on: normal, a crash of the daemon; full, a loss of power too.",
             {"normal", "full"}),
      between(option("store-patience", OptionType::kDuration, {"50ms"},
                     "How long a decision waits for the state database before it is acted on unwritten."),
              1, 60000),
      number("max-connections", "1024",
             "How many clients may be connected at once. One too many ends the newest connection of the process that "
             "holds the most.",
             8, 1 << 20),
      number("max-memory-mib", "512",
             "With more memory than this in use, in MiB, connections that send without end or do not read what they "
             "get are ended.",
             128, 1 << 20),
      number("max-message-mib", "64", "The largest message that is passed on, in MiB. The kubelet takes 16.", 16, 1024),
      number("max-metadata-mib", "16", "The most metadata that one call may carry, in MiB; counts for each direction.",
             1, 64),
  };
}

std::vector<OptionSpec> placement_options() {
  const auto option = [](std::string key, OptionType type, std::vector<std::string> defaults, std::string help,
                         std::vector<std::string> allowed = {}) {
    return OptionSpec{.section = "placement",
                      .key = std::move(key),
                      .type = type,
                      .defaults = std::move(defaults),
                      .allowed = std::move(allowed),
                      .help = std::move(help)};
  };
  const auto repeatable = [](OptionSpec spec) {
    spec.repeatable = true;
    return spec;
  };
  return {
      option("reserved-cpus", OptionType::kCpus, {"none"},
             "CPUs kept for the system: never in the shared pool, never given exclusively.", {"none"}),
      option("allowed-cpus", OptionType::kCpus, {"all"}, "The only CPUs that containers are placed on.", {"all"}),
      between(option("min-shared-cpus", OptionType::kInt, {"1"},
                     "How many CPUs stay in the shared pool whatever is asked for exclusively."),
              0, kMaxOsIndex),
      option("exclusive", OptionType::kString, {"guaranteed-integer"},
             "Who gets CPUs of its own: Guaranteed containers that ask for whole CPUs and those with the annotation "
             "topolet.io/cpus: exclusive; the latter only; or nobody.",
             {"guaranteed-integer", "annotated", "never"}),
      repeatable(option("reserved-namespaces", OptionType::kString, {"kube-system"},
                        "Kubernetes namespaces whose containers run on reserved CPUs and the pool, without CPUs of "
                        "their own unless the annotation topolet.io/cpus: exclusive says so.")),
      repeatable(option("annotations", OptionType::kString, {"all"},
                        "The topolet.io annotations that pods may use, such as cpus, isolated, containers, or those of "
                        "a plugin; 'all' or 'none'. Others are ignored.")),
      option("when-full", OptionType::kString, {"deny"},
             "What becomes of a container that asks for CPUs of its own when they are not there.", {"deny", "share"}),
      between(option("crash-hold", OptionType::kDuration, {"5m"},
                     "How long the CPUs of a container that failed are kept for its next attempt, unless another "
                     "would be denied; 0 keeps none."),
              0, kMillisecondsPerDay),
      option("memory-migrate", OptionType::kBool, {"false"},
             "Whether the memory nodes of a running container may be changed, which moves its memory while it waits; "
             "otherwise nodes are only added."),
      between(option("pending-timeout", OptionType::kDuration, {"4m"},
                     "How long a placement is held for a create whose outcome is unknown."),
              1000, kMillisecondsPerDay),
      between(
          option("start-grace", OptionType::kDuration, {"10s"},
                 "How long a container may still be starting after a StartContainer whose outcome is unknown; until "
                 "it is seen running, the CPUs it should leave stay in use for so long."),
          100, kMillisecondsPerDay),
      between(option("deadline-ms", OptionType::kInt, {"50"},
                     "Milliseconds a plugin may take for one call before its vote is lost."),
              1, 60000),
      between(option("plugin-timeout", OptionType::kDuration, {"10s"},
                     "How long a plugin may take to be loaded, made or ended before it is given up on."),
              100, kMillisecondsPerDay),
      repeatable(option("handlers", OptionType::kString, {"default", "runc", "crun", "nvidia"},
                        "Runtime handlers whose containers are placed; 'default' is the runtime's own default. "
                        "Containers of others pass untouched.")),
  };
}

std::vector<OptionSpec> plugin_options(const std::vector<std::string>& plugins) {
  std::vector<OptionSpec> specs = {{.section = "plugins",
                                    .key = "enable",
                                    .type = OptionType::kName,
                                    .defaults = {},
                                    .help = "A plugin to load from plugin-dir, by its name.",
                                    .repeatable = true}};
  for (const std::string& plugin : plugins) {
    specs.push_back({.section = "plugins",
                     .key = "weight." + plugin,
                     .type = OptionType::kInt,
                     .defaults = {"1"},
                     .help = "What the plugin's scores are multiplied by.",
                     .least = 0,
                     .most = 1000});
    specs.push_back(
        {.section = "plugins",
         .key = "on-failure." + plugin,
         .type = OptionType::kString,
         .defaults = {"open"},
         .allowed = {"open", "closed"},
         .help = "When the plugin's vote is lost: decide without it (open) or deny the container (closed)."});
    specs.push_back({.section = "plugins",
                     .key = "required." + plugin,
                     .type = OptionType::kBool,
                     .defaults = {"false"},
                     .help = "Deny containers rather than place them without the plugin's vote, or otherwise than it "
                             "picks."});
  }
  return specs;
}

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

Error bad(const std::string& value, const std::string& expected) {
  return {Code::kInvalidArgument, "'" + value + "' is not " + expected};
}

std::optional<std::int64_t> parse_whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Status check_range(const OptionSpec& spec, const std::string& value, std::int64_t number, const char* unit) {
  if (number >= spec.least && number <= spec.most) return {};
  return Error{Code::kOutOfRange, "'" + value + "' is out of range; it must be between " + std::to_string(spec.least) +
                                      " and " + std::to_string(spec.most) + unit};
}

Status check_int(const OptionSpec& spec, const std::string& value) {
  const auto number = parse_whole_number(value);
  if (!number) return bad(value, "a whole number");
  return check_range(spec, value, *number, "");
}

Status check_duration(const OptionSpec& spec, const std::string& value) {
  const auto duration = parse_duration(value);
  if (!duration) return duration.error();
  return check_range(spec, value, duration->count(), " ms");
}

Status check_cpus(const OptionSpec& spec, const std::string& value) {
  const auto cpus = CpuSet::parse(value);
  if (cpus.ok() && !cpus->empty()) return {};
  const std::string words = spec.allowed.empty() ? "" : ", or " + joined(spec.allowed);
  return bad(value, "a CPU list such as 0-3,8" + words + (cpus.ok() ? "" : ": " + cpus.error().message));
}

Status check_socket(const OptionSpec& spec, const std::string& value) {
  if (value.empty() && spec.defaults.front().empty()) return {};
  const auto path = parse_socket(value);
  return path ? Status() : Status(path.error());
}

Status check_name(const std::string& value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
  });
  const bool taken = value == "daemon" || value == "placement" || value == "plugins";
  if (taken) return bad(value, "a plugin's name, as the core has a section of that name");
  if (plain && !value.empty() && value.front() >= 'a' && value.front() <= 'z') return {};
  return bad(value, "a name: lower-case letters, digits and dashes, beginning with a letter");
}

}  // namespace

std::vector<OptionSpec> core_options(const std::vector<std::string>& plugins) {
  std::vector<OptionSpec> specs = daemon_options();
  for (OptionSpec& spec : placement_options()) specs.push_back(std::move(spec));
  for (OptionSpec& spec : plugin_options(plugins)) specs.push_back(std::move(spec));
  return specs;
}

std::vector<OptionSpec> options_of(const PluginSection& section) {
  std::vector<OptionSpec> specs;
  for (const PluginOption& option : section.options) {
    specs.push_back({.section = section.plugin,
                     .key = option.name,
                     .type = option.type,
                     .defaults = {option.default_value},
                     .allowed = option.allowed,
                     .help = option.help,
                     .least = option.least,
                     .most = option.most});
  }
  return specs;
}

Status check_value(const OptionSpec& spec, const std::string& value) {
  const bool among_allowed = std::find(spec.allowed.begin(), spec.allowed.end(), value) != spec.allowed.end();
  if (among_allowed) return {};
  if (!spec.allowed.empty() && spec.type != OptionType::kCpus) return bad(value, joined(spec.allowed));
  switch (spec.type) {
    case OptionType::kBool:
      return value == "true" || value == "false" ? Status() : bad(value, "true or false");
    case OptionType::kInt:
      return check_int(spec, value);
    case OptionType::kDuration:
      return check_duration(spec, value);
    case OptionType::kCpus:
      return check_cpus(spec, value);
    case OptionType::kSocket:
      return check_socket(spec, value);
    case OptionType::kPath:
      return !value.empty() && value.front() == '/' ? Status() : bad(value, "an absolute path");
    case OptionType::kName:
      return check_name(value);
    case OptionType::kString:
      if (!spec.repeatable) return {};
      if (value.empty()) return bad(value, "a name; it is empty");
      return value.find_first_of(", \t") == std::string::npos ? Status()
                                                              : bad(value, "one name; write one line for each");
  }
  return {};
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
  const Error error = bad(std::string(text), "a duration such as 30s, 5m, 4m30s or 500ms");
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  std::string_view rest = text;
  if (rest.empty()) return error;
  if (rest == "0") return std::chrono::milliseconds(0);
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto number = parse_whole_number(rest.substr(0, digits));
    rest.remove_prefix(digits);
    const std::string_view unit = rest.substr(0, std::min(rest.find_first_of("0123456789"), rest.size()));
    rest.remove_prefix(unit.size());
    while (next_unit < std::size(kUnits) && kUnits[next_unit].first != unit) ++next_unit;
    // The bound keeps the sum far from an overflow.
    if (!number || *number > kMillisecondsPerDay * 365 || next_unit == std::size(kUnits)) return error;
    total += *number * kUnits[next_unit++].second;
  }
  return std::chrono::milliseconds(total);
}

Result<std::string> parse_socket(std::string_view text) {
  constexpr std::string_view kScheme = "unix://";
  const std::string_view path = text.substr(0, kScheme.size()) == kScheme ? text.substr(kScheme.size()) : text;
  if (path.empty() || path.front() != '/') {
    return bad(std::string(text), "the address of a unix socket; write unix:///absolute/path");
  }
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return bad(std::string(text), "usable: the kernel takes socket paths of at most 107 bytes");
  }
  return std::string(path);
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string suggestion(std::string_view wanted, const std::vector<std::string>& known, const std::string& prefix) {
  const auto key = [](std::string_view name) { return name.substr(name.find('.') + 1); };
  const auto distance = [&](const std::string& name) {
    // The right key in the wrong section is nearer than another key of the same section.
    return std::min(edit_distance(wanted, name), edit_distance(key(wanted), key(name)) + 1);
  };
  const auto nearest = std::min_element(
      known.begin(), known.end(), [&distance](const auto& a, const auto& b) { return distance(a) < distance(b); });
  const bool close = distance(*nearest) <= std::max<std::size_t>(2, key(wanted).size() / 3);
  return close ? "did you mean " + prefix + *nearest + "?" : "the nearest is " + prefix + *nearest;
}

}  // namespace topolet
