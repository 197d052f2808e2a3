// Collects findings while they are made. For this room only.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/preflight/preflight.hpp"

namespace topolet::preflight {

/// Adds findings, with the place where the option they are about was set.
class Report {
 public:
  Report(const config::RawConfig& raw, const config::ValidatedConfig& config) : raw_(raw), config_(config) {}

  /// `option`: "daemon.listen".
  void mistake(const std::string& option, const std::string& what) { findings_.mistakes.push_back(at(option, what)); }
  void warning(const std::string& option, const std::string& what) { findings_.warnings.push_back(at(option, what)); }

  /// Notes whether a topoletd that runs has what the option names.
  void note_use(const std::string& option, bool by_topoletd) { used_by_topoletd_[option] = by_topoletd; }
  /// Warns of what it has, unless it has all that was noted: then it runs with this configuration.
  void warn_of_other_topoletd();

  /// Returns true if a mistake already says that its value is not the one that was meant.
  bool is_mistaken(const std::string& option) const;
  bool is_set(const std::string& option) const { return entry_of(option) != nullptr; }

  /// Then its sockets are another process's until it has them.
  bool is_take_over() const { return raw_.take_over; }

  const config::Options& options() const { return config_.options; }
  Findings take() { return std::move(findings_); }

 private:
  const config::ConfigEntry* entry_of(const std::string& option) const;
  config::ConfigMistake at(const std::string& option, const std::string& what) const;

  const config::RawConfig& raw_;
  const config::ValidatedConfig& config_;
  Findings findings_;
  std::map<std::string, bool> used_by_topoletd_;
};

// Each in the file that is named after it.
void check_sockets(Report& report);
void check_state(Report& report);
void check_machine(Report& report);

}  // namespace topolet::preflight
