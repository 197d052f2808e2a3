// Properties that hold for any contents of the files in which the kernel names CPUs.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// `text` has up to four parts, each ended by a line "---": a CPU list, /proc/self/mountinfo, and the files stat and
/// cgroup of a process. A plainer reader finds the same CPUs in the list and refuses the same lists; every file of the
/// machine that has the list is read as that; the process is found on those CPUs or nowhere.
TextJudgement judge_kernel_files(const std::string& text);

}  // namespace topolet
