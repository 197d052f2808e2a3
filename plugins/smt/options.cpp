#include "plugins/smt/options.hpp"

namespace topolet::smt {

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["isolate-siblings"] == "off") read.isolate_siblings = IsolateSiblings::kOff;
  if (options["isolate-siblings"] == "exclusive") read.isolate_siblings = IsolateSiblings::kExclusive;
  read.pair = options["pair"] == "true";
  read.rounds_up = options["round"] != "deny";
  return read;
}

}  // namespace topolet::smt
