// libFuzzer's entry: the first byte picks the message, the rest are its bytes.
#include "tests/fuzz/fuzzer.hpp"
#include "tests/fuzz/lens_properties.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  topolet::silence_protobuf();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  using Judge = topolet::Judgement (*)(const std::string&);
  constexpr Judge kJudges[] = {topolet::judge_create_container, topolet::judge_update_container_resources,
                               topolet::judge_list_containers, topolet::judge_container_status};
  const std::string bytes(data + 1, data + size);
  topolet::abort_on_violation(kJudges[data[0] % 4](bytes).violation);
  return 0;
}
