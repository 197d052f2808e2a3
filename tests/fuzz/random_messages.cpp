#include "tests/fuzz/random_messages.hpp"

#include <google/protobuf/unknown_field_set.h>

#include <limits>
#include <memory>

namespace topolet {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string RandomMessages::wire(const Message& prototype) {
  std::string bytes;
  const std::uint64_t pieces = 1 + below(3);
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const std::unique_ptr<Message> piece(prototype.New());
    fill(*piece, 0);
    bytes += piece->SerializeAsString();
  }
  return bytes;
}

void RandomMessages::fill(Message& message, int depth) {
  constexpr int kMaxDepth = 7;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const bool nested = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (nested && depth >= kMaxDepth) continue;
    // Dense at the top, where what is read lives, thin below.
    if (!chance(depth < 3 ? 70 : 35)) continue;
    const std::uint64_t count = field.is_repeated() ? below(4) : 1;
    for (std::uint64_t n = 0; n < count; ++n) set_field(message, field, depth);
  }
  if (chance(20)) add_unknown_fields(message);
}

void RandomMessages::set_field(Message& message, const FieldDescriptor& field, int depth) {
  const Reflection& reflection = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      fill(many ? *reflection.AddMessage(&message, &field) : *reflection.MutableMessage(&message, &field), depth + 1);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      many ? reflection.AddString(&message, &field, text(field)) : reflection.SetString(&message, &field, text(field));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      many ? reflection.AddInt64(&message, &field, number()) : reflection.SetInt64(&message, &field, number());
      return;
    case FieldDescriptor::CPPTYPE_UINT64: {
      const auto value = static_cast<std::uint64_t>(number());
      many ? reflection.AddUInt64(&message, &field, value) : reflection.SetUInt64(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<std::int32_t>(number());
      many ? reflection.AddInt32(&message, &field, value) : reflection.SetInt32(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto value = static_cast<std::uint32_t>(number());
      many ? reflection.AddUInt32(&message, &field, value) : reflection.SetUInt32(&message, &field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(&message, &field, chance(50));
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(&message, &field, static_cast<int>(below(6)) - 1);
      return;
    default:
      return;
  }
}

void RandomMessages::add_unknown_fields(Message& message) {
  google::protobuf::UnknownFieldSet& unknown = *message.GetReflection()->MutableUnknownFields(&message);
  const int free_number = 1000 + static_cast<int>(below(100));
  unknown.AddVarint(free_number, static_cast<std::uint64_t>(number()));
  unknown.AddLengthDelimited(free_number, random_bytes(engine_, 19));
  unknown.AddFixed64(free_number + 1, engine_());
  if (chance(30)) unknown.AddGroup(free_number + 2)->AddLengthDelimited(1, random_bytes(engine_, 19));
  // The CRI's own numbers on a wire type that it never uses.
  unknown.AddFixed32(1 + static_cast<int>(below(18)), static_cast<std::uint32_t>(engine_()));
}

std::int64_t RandomMessages::number() {
  static const std::vector<std::int64_t> kTelling = {0,
                                                     1,
                                                     2,
                                                     3,
                                                     102,
                                                     999,
                                                     1000,
                                                     1024,
                                                     -1,
                                                     -997,
                                                     -998,
                                                     2048,
                                                     100000,
                                                     200000,
                                                     262144,
                                                     1 << 30,
                                                     std::numeric_limits<std::int64_t>::min(),
                                                     std::numeric_limits<std::int64_t>::max()};
  return chance(70) ? one_of(kTelling) : static_cast<std::int64_t>(engine_());
}

std::string RandomMessages::text(const FieldDescriptor& field) {
  static const std::vector<std::string> kLists = {"", "0", "0-3", "1,3,5-7", " 0-1\n", "64-127", "65535"};
  static const std::vector<std::string> kBadLists = {"a-b", "3-1", "0-65536", ",", "0,", "-"};
  static const std::vector<std::string> kCgroups = {"/kubepods/burstable/pod1",
                                                    "/kubepods/pod1",
                                                    "kubepods-pod1.slice",
                                                    "/kubepods.slice/kubepods-besteffort.slice",
                                                    "/k8s.io",
                                                    ""};
  static const std::vector<std::string> kWords = {"a",         "b",
                                                  "name",      "topolet.io/cpus",
                                                  "/dev/null", "gr\xc3\xbc\xc3\x9f",
                                                  "",          "2MB",
                                                  "{}",        R"({"pid":1,"config":{"metadata":{}}})",
                                                  "info"};
  if (field.type() == FieldDescriptor::TYPE_BYTES) return random_bytes(engine_, 19);
  if (field.name() == "cpuset_cpus" || field.name() == "cpuset_mems") {
    return chance(90) ? one_of(kLists) : one_of(kBadLists);
  }
  if (field.name() == "cgroup_parent") return one_of(kCgroups);
  if (field.name() == "uid") return chance(95) ? "uid-" + std::to_string(below(3)) : "";
  return chance(95) ? one_of(kWords) : std::string(below(300), 'x');
}

}  // namespace topolet
