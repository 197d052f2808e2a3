// Properties that hold for the file of the state database, wherever it is damaged.
#pragma once

#include <string>

#include "tests/fuzz/text_judgement.hpp"

namespace topolet {

/// Each four bytes of `damage` overwrite one byte of a small database and its write-ahead log: where, in three bytes,
/// and with what. The store opens what results or sets it aside, gives back rows that can be decoded or refused, and
/// can be written to and opened again; every error has a message.
TextJudgement judge_store_file(const std::string& damage);

}  // namespace topolet
