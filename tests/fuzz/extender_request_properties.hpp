// What must hold for whatever is sent to topolet-extender, by a scheduler or as an object of the API server.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// A request that is read is JSON, and what it asks is answered in JSON that names each node once, as it was written.
/// Of a binding each part is a name. What is promised of a node's object is never more than it has. An error says why
/// in printable text.
TextJudgement judge_extender_request(const std::string& text);

}  // namespace topolet
