#include "tests/fuzz/extender_request_properties.hpp"
#include "tests/fuzz/fuzzer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  topolet::abort_on_violation(topolet::judge_extender_request(std::string(data, data + size)));
  return 0;
}
