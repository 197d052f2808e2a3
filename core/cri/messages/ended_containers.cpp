#include "core/cri/messages/ended_containers.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>

#include "core/cri/methods.hpp"

namespace topolet::cri {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr std::uint64_t kExited = 2;

/// Field numbers of CRI v1; 0: the message has no such field.
struct ContainerFields {
  int id;
  int state;
  int exit_code;
};
constexpr ContainerFields kContainer{.id = 1, .state = 6, .exit_code = 0};
constexpr ContainerFields kContainerStatus{.id = 1, .state = 3, .exit_code = 7};

class PiecesStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PiecesStream(const MessagePieces& pieces) : pieces_(pieces) {}

  bool Next(const void** data, int* size) override {
    if (next_ == pieces_.size()) return false;
    const std::string_view piece = pieces_[next_++].substr(std::exchange(skip_, 0));
    *data = piece.data();
    *size = static_cast<int>(piece.size());
    read_ += *size;
    return true;
  }
  void BackUp(int count) override {
    --next_;
    skip_ = pieces_[next_].size() - static_cast<std::size_t>(count);
    read_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    for (int size = 0; Next(&data, &size); count -= size) {
      if (size < count) continue;
      BackUp(size - count);
      return true;
    }
    return false;
  }
  std::int64_t ByteCount() const override { return read_; }

 private:
  const MessagePieces& pieces_;
  std::size_t next_ = 0;
  std::size_t skip_ = 0;  ///< of the next piece
  std::int64_t read_ = 0;
};

enum class Field : std::uint8_t { kRead, kUnreadable, kNotWanted };

Field read_number(CodedInputStream& in, std::uint64_t& number) {
  return in.ReadVarint64(&number) ? Field::kRead : Field::kUnreadable;
}

Field read_text(CodedInputStream& in, std::string& text) {
  std::uint32_t size = 0;
  return in.ReadVarint32(&size) && in.ReadString(&text, static_cast<int>(size)) ? Field::kRead : Field::kUnreadable;
}

/// Reads a message to its end, or to the end of the message that it is in: each field by `on_field(number, type)`, or
/// by skipping it. False if it cannot be read.
template <class OnField>
bool read_message(CodedInputStream& in, OnField on_field) {
  while (const std::uint32_t tag = in.ReadTag()) {
    const Field field = on_field(WireFormatLite::GetTagFieldNumber(tag), WireFormatLite::GetTagWireType(tag));
    if (field == Field::kUnreadable) return false;
    if (field == Field::kNotWanted && !WireFormatLite::SkipField(&in, tag)) return false;
  }
  return in.ConsumedEntireMessage();
}

constexpr auto kNumber = WireFormatLite::WIRETYPE_VARINT;
constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

class Reader {
 public:
  explicit Reader(CodedInputStream& in) : in_(in) {}

  std::vector<operations::ExitSeen> take() { return std::move(ended_); }

  /// The containers are the messages in field 1 of the answer.
  void read_containers(const ContainerFields& fields) {
    read_message(in_, [&](int number, WireFormatLite::WireType type) {
      return number == 1 && type == kBytes ? read_container(fields) : Field::kNotWanted;
    });
  }

  void read_event() {
    constexpr std::uint64_t kStopped = 2;
    constexpr std::uint64_t kDeleted = 3;
    operations::ExitSeen container;
    std::uint64_t event = 0;
    const bool whole = read_message(in_, [&](int number, WireFormatLite::WireType type) {
      if (number == 1 && type == kBytes) return read_text(in_, container.container_id);
      return number == 2 && type == kNumber ? read_number(in_, event) : Field::kNotWanted;
    });
    if (whole && (event == kStopped || event == kDeleted)) add(std::move(container));
  }

 private:
  Field read_container(const ContainerFields& fields) {
    operations::ExitSeen container;
    std::uint64_t state = 0;
    std::uint64_t exit_code = 0;
    const CodedInputStream::Limit outer = in_.ReadLengthAndPushLimit();
    const bool whole = read_message(in_, [&](int number, WireFormatLite::WireType type) {
      if (number == fields.id && type == kBytes) return read_text(in_, container.container_id);
      if (number == fields.state && type == kNumber) return read_number(in_, state);
      return number == fields.exit_code && type == kNumber ? read_number(in_, exit_code) : Field::kNotWanted;
    });
    if (!whole || !in_.CheckEntireMessageConsumedAndPopLimit(outer)) return Field::kUnreadable;
    if (fields.exit_code != 0) container.exit_code = static_cast<std::int32_t>(exit_code);
    if (state == kExited) add(std::move(container));
    return Field::kRead;
  }

  void add(operations::ExitSeen container) {
    if (!container.container_id.empty()) ended_.push_back(std::move(container));
  }

  CodedInputStream& in_;
  std::vector<operations::ExitSeen> ended_;
};

}  // namespace

std::vector<operations::ExitSeen> read_ended_containers(const ObservedMessage& answer) {
  PiecesStream stream(answer.response);
  CodedInputStream in(&stream);
  Reader reader(in);
  const std::string_view method = parse_method(answer.path).name;
  if (method == "GetContainerEvents") {
    reader.read_event();
  } else {
    // A list comes as a whole or in pieces.
    reader.read_containers(method == "ContainerStatus" ? kContainerStatus : kContainer);
  }
  return reader.take();
}

}  // namespace topolet::cri
