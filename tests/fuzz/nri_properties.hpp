// Properties that hold for any bytes that a runtime sends over its NRI socket.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// Frames and messages are read the same in pieces of any size, as a plainer reader reads them. A request that is read
/// is the same when it is encoded and read again, and so are messages of the lens. What topolet sends is read back, in
/// frames that the runtime can read. Accepted: there is a request.
TextJudgement judge_nri(const std::string& bytes);

}  // namespace topolet
