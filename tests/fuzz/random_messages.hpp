// Random messages of any protobuf type, by reflection.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/damage.hpp"

namespace topolet {

/// The same seed gives the same messages. Not synchronised.
class RandomMessages {
 public:
  explicit RandomMessages(std::uint64_t seed) : engine_(seed) {}

  /// The wire form of one message of the type of `prototype`: known and unknown fields, wrong wire types, submessages
  /// in several pieces, map keys that come again, bytes that are not UTF-8.
  std::string wire(const google::protobuf::Message& prototype);

  std::string damaged(std::string bytes) { return topolet::damaged(engine_, std::move(bytes)); }

 private:
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

  void fill(google::protobuf::Message& message, int depth);
  void set_field(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, int depth);
  void add_unknown_fields(google::protobuf::Message& message);
  std::int64_t number();
  std::string text(const google::protobuf::FieldDescriptor& field);

  std::mt19937_64 engine_;
};

}  // namespace topolet
