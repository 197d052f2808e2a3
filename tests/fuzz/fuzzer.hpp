// Declarations that libFuzzer's entries share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// libFuzzer keeps the input at which the process aborts.
inline void abort_on_violation(const std::string& violation) {
  if (violation.empty()) return;
  std::fprintf(stderr, "%s\n", violation.c_str());
  std::abort();
}

inline void abort_on_violation(const TextJudgement& judgement) { abort_on_violation(judgement.violation); }

}  // namespace topolet
