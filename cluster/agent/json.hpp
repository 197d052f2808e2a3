// The messages of the watch socket as JSON for the page: the fields have the names that they have in
// core/watch/watch.proto.
//
// Written by hand, and not by protobuf's JSON printer: that needs descriptors, which the messages do not have
// (LITE_RUNTIME, as in topoletd). It also writes 64-bit numbers as strings, with which the page would have to
// calculate, and fails on a string that is not UTF-8. Its one switch for fields without presence fits one half of the
// messages only: a snapshot has to have all of them, while a delta has to leave out the lists in which nothing has
// changed. tests/agent/json_test.cpp compares the fields with those of the .proto file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/watch/watch.pb.h"

namespace topolet::agent {

nlohmann::json to_json(const watch::v1::Container& container);
nlohmann::json to_json(const watch::v1::ContainerKey& key);
nlohmann::json to_json(const watch::v1::Event& event);
/// Converts a snapshot, with the containers that are in it.
nlohmann::json to_json(const watch::v1::Snapshot& snapshot);
nlohmann::json to_json(const watch::v1::Delta& delta);
/// What is measured of nodes and CPUs, each by its OS index: an object without what is not known.
nlohmann::json to_json(const watch::v1::Load& load);

/// Returns the text for a browser. Bytes that are not UTF-8 become U+FFFD.
std::string text_of(const nlohmann::json& value);

}  // namespace topolet::agent
