// The names of a record's lines, and the mark that tells a record from other files.
//
// The room core/replay, namespace topolet::replay: the record of a daemon's day, and its replay. Recorder
// (recorder.hpp) is told of everything that a decision reads and writes it to a file, one JSON object a line; Replay
// (replay.hpp) reads the file and makes each decision again. README.md beside this file describes the lines. The room
// may include core/base, config, placement, topology and plugin, of core/engine the state, and the interface of
// store/plugin_state_store.hpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace topolet::replay {

/// Changed with every line that an older reader would misunderstand.
inline constexpr std::int64_t kRecordVersion = 2;

/// How every record begins, whatever its version.
inline constexpr std::string_view kRecordBegin = R"({"op":"record","version":)";

namespace op {

inline constexpr const char* kRecord = "record";  ///< a daemon begins, or the file before this one is full
inline constexpr const char* kConfiguration = "configuration";  ///< in force from here on
inline constexpr const char* kMachine = "machine";              ///< so are the machine…
inline constexpr const char* kRules = "rules";                  ///< …and the rules
inline constexpr const char* kLedger = "ledger";                ///< what is held, all of it
inline constexpr const char* kMeasured = "measured";            ///< load that is another than before
inline constexpr const char* kDecide = "decide";                ///< one decision, with all that it read
inline constexpr const char* kTick = "tick";                    ///< plugins had their turn
inline constexpr const char* kEvent = "event";                  ///< plugins were told of a container
inline constexpr const char* kState = "state";                  ///< a plugin read or wrote what it keeps
inline constexpr const char* kOutcome = "outcome";              ///< of an operation

}  // namespace op

}  // namespace topolet::replay
