// Properties that hold for the state database's rows of allocations and pods, with any values in their columns.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// `text` has one column a line, "NAME i NUMBER" or "NAME t TEXT". The columns make a row of the table allocation and
/// one of the table pod. Each is refused with an error that names one of them, or what is read is written, stored and
/// read back as the same, with the numbers and plain texts of the row.
TextJudgement judge_store_rows(const std::string& text);

}  // namespace topolet
