// Properties that hold for anything sent to topolet-extender, by a scheduler or as an object of the API server.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// A request that is read is JSON, and what it asks is answered in JSON that names each node once, as it was written.
/// Checks that each part of a binding is a name, that promises never exceed what the node's object has, and that an
/// error says why in printable text.
TextJudgement judge_extender_request(const std::string& text);

}  // namespace topolet
