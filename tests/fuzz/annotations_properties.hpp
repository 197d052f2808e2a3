// Properties that hold for any annotations that a pod and its container bear.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// `text` has one annotation a line, "pod NAME=VALUE" or "container NAME=VALUE"; the container is called "web". A
/// plainer reader finds the same settings, and the same zone on the node "n1", and refuses the same annotations. An
/// error names its annotation. Those that are not permitted are left out and named.
TextJudgement judge_annotations(const std::string& text);

}  // namespace topolet
