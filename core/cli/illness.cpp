#include "core/cli/illness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/escape.hpp"
#include "core/base/illness.hpp"
#include "core/base/text.hpp"

namespace topolet::cli {
namespace {

using control::v1::Illness;
using control::v1::StatusResponse;

constexpr std::uint32_t kMostLines = 10;

/// The illnesses that have lines of their own.
const std::set<std::string_view> kToldElsewhere = {illness::kRuntimeUnreachable,
                                                   illness::kNotReconciled,
                                                   illness::kStoreDegraded,
                                                   illness::kStoreDamaged,
                                                   illness::kStoreReopened,
                                                   illness::kOverruled,
                                                   illness::kStuck,
                                                   illness::kOverlap,
                                                   illness::kForeign,
                                                   illness::kUnconfined,
                                                   illness::kSqueezed,
                                                   illness::kLeftToKernel,
                                                   illness::kCapacityLow};

/// "plugin" of "plugin-late".
std::string heading_of(const std::string& code) {
  if (code == illness::kConfigurationRejected || code == illness::kRestartNeeded) return "config";
  if (code == illness::kInDoubt) return "in doubt";
  return code.substr(0, code.find('-'));
}

/// "numa" of "plugin numa", as the line begins with the word.
std::string subject_of(const Illness& illness) {
  constexpr std::string_view kPlugin = "plugin ";
  return illness.subject().starts_with(kPlugin) ? illness.subject().substr(kPlugin.size()) : illness.subject();
}

std::string line_of(const Illness& illness, const std::string& heading, std::int64_t now_ms) {
  const std::int64_t seconds = std::max<std::int64_t>(0, now_ms - illness.since_ms()) / 1000;
  const std::string since = illness.since_ms() == 0 ? "" : fmt::format(" (for {})", duration_text(seconds));
  return fmt::format("{:12} {}\n", heading,
                     escaped(fmt::format("{}: {}{}", subject_of(illness), illness.sentence(), since)));
}

}  // namespace

std::string duration_text(std::int64_t seconds) {
  const std::int64_t minutes = seconds / 60;
  if (minutes == 0) return fmt::format("{} s", seconds);
  if (minutes < 60) return fmt::format("{} min", minutes);
  if (minutes / 60 < 48) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} days", minutes / 60 / 24);
}

std::string health_line(const StatusResponse& status) {
  if (!status.has_illnesses()) return {};
  Severity worst = Severity::kNotice;
  std::map<std::string, std::uint32_t> ill;
  std::uint32_t notices = 0;
  for (const Illness& illness : status.illnesses().illnesses()) {
    const Severity severity = severity_from(illness.severity());
    worst = std::max(worst, severity);
    if (needs_somebody(severity)) {
      ill[illness.code()] += illness.count();
    } else {
      notices += illness.count();
    }
  }
  std::vector<std::string> parts;
  for (const auto& [code, count] : ill) parts.push_back(fmt::format("{} {}", count, escaped(code)));
  const std::string also = notices == 0 ? "" : fmt::format(" ({})", counted(notices, "notice"));
  if (parts.empty()) return fmt::format("health       well{}\n", also);
  return fmt::format("health       {}: {}{}\n", worst == Severity::kCritical ? "NO POD CAN START" : "NEEDS SOMEBODY",
                     fmt::join(parts, ", "), also);
}

std::string illness_lines(const StatusResponse& status, std::int64_t now_ms) {
  std::map<std::string, std::uint32_t> shown;
  std::map<std::string, std::uint32_t> more;
  std::map<std::string, std::string> lines;  // by heading
  for (const Illness& illness : status.illnesses().illnesses()) {
    if (kToldElsewhere.count(illness.code()) != 0) continue;
    if (++shown[illness.code()] > kMostLines || illness.count() > 1) {
      more[illness.code()] += illness.count();
      continue;
    }
    std::string& text = lines[heading_of(illness.code())];
    text += line_of(illness, text.empty() ? heading_of(illness.code()) : "", now_ms);
  }
  for (const auto& [code, count] : more)
    lines[heading_of(code)] += fmt::format("             and {} more {}: `--json` lists them\n", count, escaped(code));
  std::string text;
  for (const auto& [heading, its] : lines) text += its;
  return text;
}

std::string names_with(const StatusResponse& status, const char* code) {
  std::vector<std::string> names;
  for (const Illness& illness : status.illnesses().illnesses()) {
    if (illness.code() == code) names.push_back(escaped(illness.subject()));
  }
  if (names.empty()) return {};
  const std::size_t shown = std::min<std::size_t>(names.size(), kMostLines);
  const std::string rest = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  names.resize(shown);
  return fmt::format("             {}{}\n", fmt::join(names, ", "), rest);
}

std::string sentences_of(const StatusResponse& status, const char* code) {
  std::string text;
  for (const Illness& illness : status.illnesses().illnesses()) {
    if (illness.code() == code) text += fmt::format("             {}\n", escaped(illness.sentence()));
  }
  return text;
}

bool needs_somebody(const StatusResponse& status) {
  const auto& all = status.illnesses().illnesses();
  return std::any_of(all.begin(), all.end(),
                     [](const Illness& one) { return needs_somebody(severity_from(one.severity())); });
}

nlohmann::ordered_json illnesses_json(const StatusResponse& status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Illness& illness : status.illnesses().illnesses()) {
    all.push_back({{"code", illness.code()},
                   {"severity", illness.severity()},
                   {"subject", illness.subject()},
                   {"sentence", illness.sentence()},
                   {"since_ms", illness.since_ms()},
                   {"count", illness.count()}});
  }
  return all;
}

}  // namespace topolet::cli
