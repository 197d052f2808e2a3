// Properties that hold for any CDI spec.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// A text that is read gives the same devices when it is written out as JSON and as YAML; one that is refused as a spec
/// is refused in both. An error says why in printable text.
TextJudgement judge_cdi(const std::string& text);

}  // namespace topolet
