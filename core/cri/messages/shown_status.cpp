#include "core/cri/messages/shown_status.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>

#include "core/cri/messages/lens.pb.h"
#include "core/cri/methods.hpp"

namespace topolet::cri {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

/// The field of the answer that has the ContainerStatus, or all of them; 0: it has none.
int status_field_of(std::string_view method) {
  if (method == "ContainerStatus") return 1;
  if (method == "PodSandboxStatus") return 3;
  return method == "GetContainerEvents" ? 5 : 0;
}

/// Returns the bytes to append to a ContainerStatus, as the last one of a field counts; empty for most.
std::string addition_to(std::string_view status, const QuotaToShow& quota_of) {
  lens::ContainerStatus told;
  if (!told.ParseFromArray(status.data(), static_cast<int>(status.size())) || !told.resources().has_linux()) return {};
  const std::optional<operations::CfsQuota> quota = quota_of(told.id());
  if (!quota) return {};
  lens::ContainerStatus addition;
  lens::Resources& resources = *addition.mutable_resources()->mutable_linux();
  resources.set_cpu_quota_us(quota->quota_us);
  resources.set_cpu_period_us(quota->period_us);
  return addition.SerializeAsString();
}

void append_message(std::uint32_t tag, std::string_view message, std::string_view addition, std::string& to) {
  google::protobuf::io::StringOutputStream stream(&to);
  CodedOutputStream out(&stream);
  out.WriteTag(tag);
  out.WriteVarint32(static_cast<std::uint32_t>(message.size() + addition.size()));
  out.WriteRaw(message.data(), static_cast<int>(message.size()));
  out.WriteRaw(addition.data(), static_cast<int>(addition.size()));
}

class Rewriting {
 public:
  Rewriting(const std::string& bytes, const QuotaToShow& quota_of) : bytes_(bytes), quota_of_(quota_of) {}

  std::optional<std::string> run(int status_field) {
    CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes_.data()), static_cast<int>(bytes_.size()));
    int begin = 0;
    while (const std::uint32_t tag = in.ReadTag()) {
      const bool is_status = tag == WireFormatLite::MakeTag(status_field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
      if (!(is_status ? read_status(in, tag, begin) : WireFormatLite::SkipField(&in, tag))) return std::nullopt;
      begin = in.CurrentPosition();
    }
    if (!in.ConsumedEntireMessage() || copied_ == 0) return std::nullopt;
    rewritten_.append(bytes_, copied_);
    return std::move(rewritten_);
  }

 private:
  bool read_status(CodedInputStream& in, std::uint32_t tag, int field_begin) {
    std::uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return false;
    const auto begin = static_cast<std::size_t>(in.CurrentPosition());
    if (!in.Skip(static_cast<int>(size))) return false;
    const std::string_view status = std::string_view(bytes_).substr(begin, size);
    const std::string addition = addition_to(status, quota_of_);
    if (addition.empty()) return true;
    rewritten_.append(bytes_, copied_, static_cast<std::size_t>(field_begin) - copied_);
    append_message(tag, status, addition, rewritten_);
    copied_ = begin + size;
    return true;
  }

  const std::string& bytes_;
  const QuotaToShow& quota_of_;
  std::string rewritten_;
  std::size_t copied_ = 0;  ///< up to there `rewritten_` has all; 0: nothing has changed
};

}  // namespace

std::optional<std::string> with_shown_quotas(const ObservedMessage& answer, const QuotaToShow& quota_of) {
  const int field = status_field_of(parse_method(answer.path).name);
  if (field == 0) return std::nullopt;
  std::string bytes;
  for (const std::string_view piece : answer.response) bytes += piece;
  return Rewriting(bytes, quota_of).run(field);
}

}  // namespace topolet::cri
