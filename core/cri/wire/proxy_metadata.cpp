#include "core/cri/wire/proxy_metadata.hpp"

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <algorithm>
#include <array>
#include <vector>

namespace topolet::cri {
namespace {

constexpr std::array<std::string_view, 9> kOwnedKeys = {
    "content-type", "grpc-accept-encoding", "grpc-encoding", "grpc-internal-encoding-request",
    "grpc-message", "grpc-status",          "grpc-timeout",  "te",
    "user-agent",
};

grpc_slice borrow(const grpc::string_ref& bytes) { return grpc_slice_from_static_buffer(bytes.data(), bytes.size()); }

}  // namespace

bool is_grpc_owned(std::string_view key) {
  return key.starts_with(':') || std::binary_search(kOwnedKeys.begin(), kOwnedKeys.end(), key);
}

bool is_sendable(const grpc::string_ref& key, const grpc::string_ref& value) {
  const grpc_slice key_slice = borrow(key);
  if (grpc_header_key_is_legal(key_slice) == 0) return false;
  return grpc_is_binary_header(key_slice) != 0 || grpc_header_nonbin_value_is_legal(borrow(value)) != 0;
}

std::size_t metadata_bytes(const MetadataMap& metadata) {
  constexpr std::size_t kPerEntry = 32;
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) bytes += key.size() + value.size() + kPerEntry;
  return bytes;
}

void copy_request_metadata(const grpc::ServerContext& from, grpc::ClientContext& to) {
  copy_metadata(from.client_metadata(),
                [&to](const std::string& key, const std::string& value) { to.AddMetadata(key, value); });
  to.set_deadline(from.raw_deadline());
}

void copy_initial_metadata(const grpc::ClientContext& from, grpc::ServerContext& to) {
  copy_metadata(from.GetServerInitialMetadata(),
                [&to](const std::string& key, const std::string& value) { to.AddInitialMetadata(key, value); });
}

void copy_trailers(const grpc::ClientContext& from, grpc::ServerContext& to) {
  copy_metadata(from.GetServerTrailingMetadata(),
                [&to](const std::string& key, const std::string& value) { to.AddTrailingMetadata(key, value); });
}

void show(std::string_view path, const grpc::ByteBuffer& message,
          const std::function<void(const ObservedMessage&)>& on_observed) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return;
  ObservedMessage observed{path, {}};
  observed.response.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    observed.response.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  on_observed(observed);
}

void rewrite(std::string_view path, grpc::ByteBuffer& message,
             const std::function<std::optional<std::string>(const ObservedMessage&)>& rewritten) {
  std::optional<std::string> bytes;
  show(path, message, [&](const ObservedMessage& answer) { bytes = rewritten(answer); });
  if (bytes) message = make_buffer(*bytes);
}

std::string flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return {};
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::ByteBuffer make_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer append(const grpc::ByteBuffer& original, const std::string& patch) {
  if (patch.empty()) return original;
  std::vector<grpc::Slice> slices;
  if (!original.Dump(&slices).ok()) slices.clear();
  slices.emplace_back(patch);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace topolet::cri
