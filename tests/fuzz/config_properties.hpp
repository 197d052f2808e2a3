// Properties that hold for any text of a configuration file.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// Every mistake names its line. Text without mistakes of form gives the same entries when they are written out and
/// read again; if the options are valid too, they are the same options.
TextJudgement judge_config(const std::string& text);

}  // namespace topolet
