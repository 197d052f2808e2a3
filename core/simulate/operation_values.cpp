#include "core/simulate/operation_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "core/base/suggestion.hpp"
#include "core/base/text.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;

/// "hugepages-2Mi" or "2Mi", as pods name page sizes, to the CRI's "2MB".
std::string page_size_of(std::string size) {
  constexpr std::string_view kPrefix = "hugepages-";
  if (size.rfind(kPrefix, 0) == 0) size.erase(0, kPrefix.size());
  if (size.size() > 1 && size.back() == 'i') size.back() = 'B';
  return size;
}

}  // namespace

std::string text_of(const json& value, std::string_view key) {
  if (!value.is_string()) throw InvalidLine(fmt::format("{} must be a string, not {}", key, value.dump()));
  return value.get<std::string>();
}

std::int64_t number_of(const json& value, std::string_view key, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer())
    throw InvalidLine(fmt::format("{} must be a whole number, not {}", key, value.dump()));
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(most);
  if (too_large || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    throw InvalidLine(fmt::format("{} must be {} to {}, not {}", key, least, most, value.dump()));
  }
  return value.get<std::int64_t>();
}

std::int64_t amount_of(const json& value, std::string_view key) {
  return number_of(value, key, 0, std::numeric_limits<std::int64_t>::max());
}

bool flag_of(const json& value, std::string_view key) {
  if (!value.is_boolean()) throw InvalidLine(fmt::format("{} must be true or false, not {}", key, value.dump()));
  return value.get<bool>();
}

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

std::map<std::string, std::string> texts_of(const json& value, std::string_view key) {
  if (!value.is_object()) throw InvalidLine(fmt::format("{} must be an object of strings, not {}", key, value.dump()));
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : value.items()) texts[name] = text_of(text, fmt::format("{}.{}", key, name));
  return texts;
}

std::vector<std::string> list_of(const json& value, std::string_view key) {
  if (!value.is_array()) throw InvalidLine(fmt::format("{} must be a list of strings, not {}", key, value.dump()));
  std::vector<std::string> list;
  for (const json& item : value) list.push_back(text_of(item, key));
  return list;
}

std::vector<std::pair<std::string, std::string>> env_of(const json& value, std::string_view key) {
  std::vector<std::pair<std::string, std::string>> env;
  if (value.is_array()) {
    for (const std::string& item : list_of(value, key)) {
      const auto end = item.find('=');
      if (end == std::string::npos) throw InvalidLine(fmt::format("{}: \"{}\" is not NAME=value", key, item));
      env.emplace_back(item.substr(0, end), item.substr(end + 1));
    }
  } else {
    for (auto& [name, text] : texts_of(value, key)) env.emplace_back(name, text);
  }
  return env;
}

std::string one_of(const json& value, std::string_view key, const std::vector<std::string>& allowed) {
  const std::string text = text_of(value, key);
  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
    const std::string near = suggestion(text, allowed);
    throw InvalidLine(
        fmt::format("{} is \"{}\"{}", key, text, near.empty() ? "; it must be " + or_list(allowed) : near));
  }
  return text;
}

std::map<std::string, std::int64_t> huge_pages_of(const json& value, std::string_view key) {
  if (!value.is_object()) throw InvalidLine(fmt::format("{} must be an object of bytes by page size", key));
  std::map<std::string, std::int64_t> pages;
  for (const auto& [size, bytes] : value.items()) {
    pages[page_size_of(size)] = amount_of(bytes, fmt::format("{}.{}", key, size));
  }
  return pages;
}

NextResponse next_of(const json& value, std::string_view key) {
  return one_of(value, key, {"refuse", "lost"}) == "refuse" ? NextResponse::kRefuse : NextResponse::kResponseLost;
}

std::optional<KillPoint::At> kill_at_of(const json& value, std::string_view key) {
  const std::string at = one_of(value, key, {"now", "before-answer", "after-answer", "in-flight"});
  if (at == "now") return std::nullopt;
  if (at == "in-flight") return KillPoint::At::kInFlight;
  return at == "before-answer" ? KillPoint::At::kBeforeAnswer : KillPoint::At::kAfterAnswer;
}

SandboxState sandbox_state_of(const json& value, std::string_view key) {
  const std::string state = one_of(value, key, {"ready", "not-ready", "gone"});
  if (state == "ready") return SandboxState::kReady;
  return state == "gone" ? SandboxState::kGone : SandboxState::kNotReady;
}

RuntimeTells tells_of(const json& value, std::string_view key) {
  const std::string tells = one_of(value, key, {"containerd", "crio", "dockerd", "process", "nothing"});
  if (tells == "crio") return RuntimeTells::kSpec;
  if (tells == "dockerd") return RuntimeTells::kProcess;
  if (tells == "process") return RuntimeTells::kProcessAlone;
  return tells == "nothing" ? RuntimeTells::kNothing : RuntimeTells::kAll;
}

}  // namespace topolet::simulate
