// How a property judged one input.
#pragma once

#include <string>

namespace topolet {

struct TextJudgement {
  bool accepted = false;  ///< the code under test took the input
  std::string violation;  ///< what is wrong; empty if all is well
};

}  // namespace topolet
