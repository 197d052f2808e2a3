// JSON for the page of the messages of topoletd's watch socket. The fields have the names of core/watch/watch.proto.
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

/// Returns the text for a browser. Bytes that are not UTF-8 become U+FFFD.
std::string text_of(const nlohmann::json& value);

}  // namespace topolet::agent
