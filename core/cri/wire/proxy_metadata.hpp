// Carrying metadata and bytes from one side of the proxy to the other.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/cri/call.hpp"

namespace topolet::cri {

using MetadataMap = std::multimap<grpc::string_ref, grpc::string_ref>;

/// True for what gRPC writes itself on every connection and what therefore cannot be carried over.
bool is_grpc_owned(std::string_view key);
/// False for what gRPC's C core would abort on if it were asked to send it.
bool is_sendable(const grpc::string_ref& key, const grpc::string_ref& value);

/// Calls `add(key, value)` for everything that is carried over, in order.
template <class Add>
void copy_metadata(const MetadataMap& from, Add add) {
  for (const auto& [key, value] : from) {
    if (is_grpc_owned({key.data(), key.size()}) || !is_sendable(key, value)) continue;
    add(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
}

/// As HTTP/2 counts it (RFC 9113, section 6.5.2).
std::size_t metadata_bytes(const MetadataMap& metadata);

/// `from` the client, with its deadline.
void copy_request_metadata(const grpc::ServerContext& from, grpc::ClientContext& to);
void copy_initial_metadata(const grpc::ClientContext& from, grpc::ServerContext& to);
/// Includes grpc-status-details-bin, so the status that goes with it must not carry the details again.
void copy_trailers(const grpc::ClientContext& from, grpc::ServerContext& to);

/// Calls `on_observed` with the message, uncopied.
void show(std::string_view path, const grpc::ByteBuffer& message,
          const std::function<void(const ObservedMessage&)>& on_observed);
/// Puts what `rewritten` says of the message, if that is anything, in its place.
void rewrite(std::string_view path, grpc::ByteBuffer& message,
             const std::function<std::optional<std::string>(const ObservedMessage&)>& rewritten);

std::string flatten(const grpc::ByteBuffer& buffer);
grpc::ByteBuffer make_buffer(const std::string& bytes);
/// The slices of `original`, not copied, and one more with `patch`.
grpc::ByteBuffer append(const grpc::ByteBuffer& original, const std::string& patch);

}  // namespace topolet::cri
