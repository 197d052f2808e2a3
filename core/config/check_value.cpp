#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <regex>
#include <utility>

#include "core/base/index_set.hpp"
#include "core/base/suggestion.hpp"
#include "core/base/text.hpp"
#include "core/base/unix_address.hpp"
#include "core/config/option_table.hpp"

namespace topolet::config {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxLabelBytes = 63;
constexpr std::int64_t kMillisecondsPerDay = 24LL * 60 * 60 * 1000;
constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
    {"d", kMillisecondsPerDay}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
constexpr std::pair<std::string_view, std::int64_t> kBinaryUnits[] = {
    {"Ki", 1LL << 10}, {"Mi", 1LL << 20}, {"Gi", 1LL << 30}, {"Ti", 1LL << 40}, {"Pi", 1LL << 50}, {"Ei", 1LL << 60}};
constexpr std::pair<std::string_view, std::int64_t> kDecimalUnits[] = {{"", 1},
                                                                       {"k", 1000LL},
                                                                       {"M", 1000000LL},
                                                                       {"G", 1000000000LL},
                                                                       {"T", 1000000000000LL},
                                                                       {"P", 1000000000000000LL},
                                                                       {"E", 1000000000000000000LL}};

/// No plugin ever has one of these names: later sections of the core's own come from this list alone.
constexpr std::string_view kReservedNames[] = {"agent",  "audit",   "capacity", "cluster",  "daemon",    "dra",
                                               "heal",   "kubelet", "metrics",  "nri",      "placement", "plugins",
                                               "record", "replay",  "runtime",  "simulate", "store",     "watch"};

constexpr const char* kWholeNumber = "a whole number";
constexpr const char* kNumber = "a number such as 2 or 0.25";
constexpr const char* kDuration = "a duration such as 30s, 5m, 4m30s, 30d or 500ms";
constexpr const char* kSize = "an amount of bytes such as 4096, 512Ki, 64Mi or 1Gi";
constexpr const char* kCpuList = "a CPU list such as 0-3,8";

Error bad(const std::string& value, const std::string& expected) {
  return {Code::kInvalidArgument, "'" + value + "' is not " + expected};
}

std::optional<std::int64_t> parse_whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// As it would be written in the file.
std::string duration_text(std::int64_t milliseconds) {
  std::string text;
  for (const auto& [unit, length] : kUnits) {
    if (milliseconds >= length) text += std::to_string(milliseconds / length) + std::string(unit);
    milliseconds %= length;
  }
  return text.empty() ? "0" : text;
}

/// As it would be written in the file.
std::string size_text(std::int64_t bytes) {
  for (auto unit = std::rbegin(kBinaryUnits); unit != std::rend(kBinaryUnits); ++unit) {
    if (bytes != 0 && bytes % unit->second == 0) return std::to_string(bytes / unit->second) + std::string(unit->first);
  }
  return std::to_string(bytes);
}

/// Returns the bounds of `spec` as the end of a sentence: "between 1 and 9". Empty if it has none.
template <class Text>
std::string range_of(const OptionSpec& spec, Text text_of) {
  const bool has_minimum = spec.minimum != INT64_MIN;
  const bool has_maximum = spec.maximum != INT64_MAX;
  if (has_minimum && has_maximum) return "between " + text_of(spec.minimum) + " and " + text_of(spec.maximum);
  if (has_minimum) return "at least " + text_of(spec.minimum);
  return has_maximum ? "at most " + text_of(spec.maximum) : "";
}

std::string range_of(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::kInt:
    case OptionType::kFloat:
      return range_of(spec, [](std::int64_t bound) { return std::to_string(bound); });
    case OptionType::kDuration:
      return range_of(spec, duration_text);
    case OptionType::kSize:
      return range_of(spec, size_text);
    default:
      return {};
  }
}

template <class Number>
Status check_range(const OptionSpec& spec, const std::string& value, Number number) {
  // A bound that is not set is beyond every number, also of those that a double can be.
  const bool fits = (spec.minimum == INT64_MIN || number >= static_cast<Number>(spec.minimum)) &&
                    (spec.maximum == INT64_MAX || number <= static_cast<Number>(spec.maximum));
  if (fits) return {};
  return Error{Code::kOutOfRange, "'" + value + "' is out of range; it must be " + range_of(spec)};
}

Status check_int(const OptionSpec& spec, const std::string& value) {
  const auto number = parse_whole_number(value);
  return number ? check_range(spec, value, *number) : Status(bad(value, kWholeNumber));
}

Status check_float(const OptionSpec& spec, const std::string& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number)) return bad(value, kNumber);
  return check_range(spec, value, number);
}

Status check_duration(const OptionSpec& spec, const std::string& value) {
  const auto duration = parse_duration(value);
  return duration ? check_range(spec, value, duration->count()) : Status(duration.error());
}

Status check_size(const OptionSpec& spec, const std::string& value) {
  const auto bytes = parse_size(value);
  return bytes ? check_range(spec, value, *bytes) : Status(bytes.error());
}

bool is_among(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Returns the items without the white space around them. No items are a list, too.
std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  if (trimmed(list).empty()) return items;
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    items.emplace_back(trimmed(list.substr(0, comma)));
    if (comma == list.size()) return items;
    list.remove_prefix(comma + 1);
  }
}

Status check_list(const OptionSpec& spec, const std::string& value) {
  for (const std::string& item : items_of(value)) {
    if (item.empty()) return bad(value, "a list of items separated by commas: one of them is empty");
    if (item.find_first_of("\"'") != std::string::npos) return bad(item, "to be quoted; write it without quotes");
    if (!spec.allowed.empty() && !is_among(spec.allowed, item)) return bad(item, or_list(spec.allowed));
  }
  return {};
}

Status check_word(const std::string& value) {
  if (value.empty()) return bad(value, "a name; it is empty");
  return value.find_first_of(", \t") == std::string::npos ? Status() : bad(value, "one name; write one line for each");
}

bool has_empty_default(const OptionSpec& spec) { return spec.defaults.empty() || spec.defaults.front().empty(); }

Status check_cpus(const OptionSpec& spec, const std::string& value) {
  if (value.empty() && has_empty_default(spec)) return {};
  const auto cpus = CpuSet::parse(value);
  if (cpus && !cpus->empty()) return {};
  const std::string words = spec.allowed.empty() ? "" : ", or " + or_list(spec.allowed);
  return bad(value, kCpuList + words + (cpus.has_value() ? "" : ": " + cpus.error().message));
}

/// Another name would never be any pod's, whatever pattern or list was meant.
Status check_namespace(const OptionSpec& spec, const std::string& value) {
  const bool has_patterns = spec.type == OptionType::kNamespaces;
  const auto fits = [has_patterns](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (has_patterns && c == '*');
  };
  const bool is_label = !value.empty() && value.size() <= kMaxLabelBytes && value.front() != '-' &&
                        value.back() != '-' && std::all_of(value.begin(), value.end(), fits);
  if (is_label) return {};
  return bad(value, fmt::format("the name of a namespace, which has lower-case letters, digits and dashes{}; write one "
                                "line for each",
                                has_patterns ? ", and in which * is any text" : ""));
}

/// No node has another name, so that no zone would ever be for this one.
Status check_node_name(const std::string& value) {
  constexpr std::size_t kMaxSubdomainBytes = 253;
  static const std::regex kSubdomain("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  if (value.empty() || (value.size() <= kMaxSubdomainBytes && std::regex_match(value, kSubdomain))) return {};
  return bad(value,
             "the name of a node, which has lower-case letters, digits, dashes and dots, and a letter or digit at "
             "both ends, without quotes; kubectl get nodes lists them");
}

/// No handler has another name, so that nobody's containers would ever match it.
Status check_handler(const OptionSpec& spec, const std::string& value) {
  const bool has_patterns = spec.type == OptionType::kHandlers;
  const auto fits = [has_patterns](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || (has_patterns && c == '*');
  };
  if (value.empty() || !std::all_of(value.begin(), value.end(), fits)) {
    return bad(value, has_patterns ? "the name of a runtime handler, in which * is any text; write one line for each, "
                                     "without quotes"
                                   : "the name of a runtime handler; write one line for each, without quotes");
  }
  if (!has_patterns && value == "none")
    return bad(value, "the name of a runtime handler; to place nobody's containers, write foreign-handlers = *");
  return {};
}

Status check_socket(const OptionSpec& spec, const std::string& value) {
  if (value.empty() && has_empty_default(spec)) return {};
  const auto path = parse_socket(value);
  return path ? Status() : Status(path.error());
}

/// "1Gi", or "0:1Gi,1:512Mi": amounts, each for a number.
bool is_list_of_amounts(const std::string& value) {
  static const std::regex kAmounts("([0-9]{1,4}:)?[0-9]{1,15}([KMGTPE]i?|k)?(,[0-9]{1,4}:[0-9]{1,15}([KMGTPE]i?|k)?)*");
  return value.size() < 1000 && std::regex_match(value, kAmounts);
}

bool cannot_hold_a_secret(const OptionSpec& option, const std::string& value) {
  if (option.secret) return false;
  switch (option.type) {
    case OptionType::kBool:
    case OptionType::kInt:
    case OptionType::kFloat:
    case OptionType::kDuration:
    case OptionType::kSize:
    case OptionType::kCpus:
      return true;
    default:
      return !option.allowed.empty() || is_list_of_amounts(value);
  }
}

/// Returns true if the allowed values are words besides others of the type.
bool has_words_besides(OptionType type) {
  return type == OptionType::kCpus || type == OptionType::kSocket || type == OptionType::kPath ||
         type == OptionType::kList;
}

/// Returns what a value must be, without any value: "a whole number between 1 and 9".
std::string expectation_of(const OptionSpec& spec) {
  const auto of_type = [&spec]() -> std::string {
    if (!spec.allowed.empty() && !has_words_besides(spec.type)) return or_list(spec.allowed);
    switch (spec.type) {
      case OptionType::kBool:
        return "true or false";
      case OptionType::kInt:
        return kWholeNumber;
      case OptionType::kFloat:
        return kNumber;
      case OptionType::kDuration:
        return kDuration;
      case OptionType::kSize:
        return kSize;
      case OptionType::kList:
        return "a list of items separated by commas" +
               (spec.allowed.empty() ? "" : ", each of them " + or_list(spec.allowed));
      case OptionType::kCpus:
        return kCpuList;
      default:
        return "a text without quotes";
    }
  };
  const std::string range = range_of(spec);
  return of_type() + (range.empty() ? "" : " " + range);
}

Status check_shown_value(const OptionSpec& spec, const std::string& value) {
  if (is_among(spec.allowed, value)) return {};
  if (!spec.allowed.empty() && !has_words_besides(spec.type)) return bad(value, or_list(spec.allowed));
  switch (spec.type) {
    case OptionType::kBool:
      return value == "true" || value == "false" ? Status() : bad(value, "true or false");
    case OptionType::kInt:
      return check_int(spec, value);
    case OptionType::kFloat:
      return check_float(spec, value);
    case OptionType::kDuration:
      return check_duration(spec, value);
    case OptionType::kSize:
      return check_size(spec, value);
    case OptionType::kList:
      return check_list(spec, value);
    case OptionType::kCpus:
      return check_cpus(spec, value);
    case OptionType::kSocket:
      return check_socket(spec, value);
    case OptionType::kPath:
      return !value.empty() && value.front() == '/' ? Status() : bad(value, "an absolute path");
    case OptionType::kName:
      return check_plugin_name(value);
    case OptionType::kNamespace:
    case OptionType::kNamespaces:
      return check_namespace(spec, value);
    case OptionType::kHandler:
    case OptionType::kHandlers:
      return check_handler(spec, value);
    case OptionType::kNodeName:
      return check_node_name(value);
    case OptionType::kString:
    case OptionType::kWord:
      if (value.find_first_of("\"'") != std::string::npos) return bad(value, "to be quoted; write it without quotes");
      return spec.type == OptionType::kWord ? check_word(value) : Status();
  }
  return {};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_plain = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= kMaxNameBytes && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), is_plain);
}

bool is_reserved_plugin_name(std::string_view name) {
  return name.starts_with("topolet") ||
         std::find(std::begin(kReservedNames), std::end(kReservedNames), name) != std::end(kReservedNames);
}

Status check_plugin_name(const std::string& name) {
  const bool is_section = name == "daemon" || name == "placement" || name == "nri" || name == "plugins";
  if (is_section) return bad(name, "a plugin's name, because the configuration has a section of that name");
  if (is_reserved_plugin_name(name)) {
    return bad(name,
               "a plugin's name, because it is reserved for topolet itself, as are all names that begin with topolet; "
               "give the plugin and its file another name");
  }
  if (is_plain_name(name)) return {};
  return bad(name, "a plugin's name: at most " + std::to_string(kMaxNameBytes) +
                       " lower-case letters, digits and dashes, beginning with a letter");
}

Status check_value(const OptionSpec& spec, const std::string& value) {
  Status fits = check_shown_value(spec, value);
  if (fits || !spec.secret) return fits;
  return Error{fits.error().code, fmt::format("{} is not {}", kHiddenValue, expectation_of(spec))};
}

std::string fitting_value(const OptionSpec& spec) {
  if (!spec.defaults.empty() && check_value(spec, spec.defaults.front())) return spec.defaults.front();
  if (!spec.allowed.empty()) return spec.allowed.front();
  const std::int64_t least = std::clamp<std::int64_t>(0, spec.minimum, spec.maximum);
  switch (spec.type) {
    case OptionType::kBool:
      return "false";
    case OptionType::kInt:
    case OptionType::kFloat:
      return std::to_string(least);
    case OptionType::kDuration:
      return duration_text(least);
    case OptionType::kSize:
      return size_text(least);
    case OptionType::kCpus:
      return "0";
    default:
      return "";
  }
}

std::map<std::string, std::string> values_without_secrets(const std::vector<OptionSpec>& options,
                                                          const OptionValues& values) {
  std::map<std::string, std::string> shown;
  for (const OptionSpec& option : options) {
    const auto [first, last] = values.equal_range(option.key);
    for (auto value = first; value != last; ++value) {
      if (!cannot_hold_a_secret(option, value->second)) continue;
      std::string& text = shown[option.key];
      text += (text.empty() ? "" : ", ") + value->second;
    }
  }
  return shown;
}

std::string plain_value(const OptionSpec& spec, const std::string& value) {
  if (has_words_besides(spec.type) && is_among(spec.allowed, value)) return value;
  switch (spec.type) {
    case OptionType::kDuration:
      return std::to_string(parse_duration(value)->count());
    case OptionType::kSize:
      return std::to_string(*parse_size(value));
    case OptionType::kCpus:
      return value.empty() ? value : CpuSet::parse(value)->to_string();
    case OptionType::kList:
      return fmt::format("{}", fmt::join(items_of(value), ","));
    default:
      return value;
  }
}

bool may_be_secret(const std::string& value) {
  return value != "true" && value != "false" && !is_list_of_amounts(value);
}

std::string shown_value(const OptionSpec& option, const std::string& value) {
  return option.secret ? kHiddenValue : value;
}

std::string shown_values(const OptionSpec& option, const std::vector<std::string>& values) {
  std::vector<std::string> shown;
  // An empty secret tells nobody anything.
  for (const std::string& value : values) shown.push_back(value.empty() ? value : shown_value(option, value));
  return fmt::format("{}", fmt::join(shown, ", "));
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const Error error = bad(std::string(text), kDuration);
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

Result<std::int64_t> parse_size(std::string_view text) {
  const Error error = bad(std::string(text), kSize);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_whole_number(text.substr(0, digits));
  if (!number) return error;
  const auto times = [&](std::int64_t factor) -> Result<std::int64_t> {
    if (*number > INT64_MAX / factor) return error;
    return *number * factor;
  };
  for (const auto& [unit, factor] : kBinaryUnits) {
    if (text.substr(digits) == unit) return times(factor);
  }
  for (const auto& [unit, factor] : kDecimalUnits) {
    if (text.substr(digits) == unit) return times(factor);
  }
  return error;
}

Result<std::string> parse_socket(std::string_view text) {
  const std::string_view path = without_unix_scheme(text);
  if (path.empty() || path.front() != '/') {
    return bad(std::string(text), "the address of a unix socket; write unix:///absolute/path");
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..") {
    return bad(std::string(text), "the path of a socket: it ends like the path of a directory");
  }
  if (path.size() > kMaxSocketPath) {
    return bad(std::string(text), "usable: the kernel accepts socket paths of at most 107 bytes");
  }
  return std::string(path);
}

std::string key_suggestion(std::string_view wanted, const std::vector<std::string>& known, const std::string& prefix) {
  const auto key = [](std::string_view name) { return name.substr(name.find('.') + 1); };
  const auto distance_of = [&](const std::string& name) -> std::optional<std::size_t> {
    // The right key in the wrong section is nearer than another key of the same section.
    const std::size_t distance =
        std::min(edit_distance(wanted, name), edit_distance(key(wanted), key(name)) + (wanted == key(wanted) ? 0 : 1));
    // A section is long, so that what has nothing else in common would be near if it counted.
    return is_near(distance, key(wanted), key(name)) ? std::optional(distance) : std::nullopt;
  };
  const std::string* const found = nearest_of(known, distance_of);
  return found != nullptr ? "; did you mean " + prefix + *found + "?" : std::string();
}

}  // namespace topolet::config
