#include "plugins/smt/options.hpp"

namespace topolet::smt {

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["isolate-siblings"] == "off") read.isolate_siblings = IsolateSiblings::kOff;
  if (options["isolate-siblings"] == "exclusive") read.isolate_siblings = IsolateSiblings::kExclusive;
  if (options["pair"] == "true") read.pair = Pair::kAnnotated;
  if (options["pair"] == "measured") read.pair = Pair::kMeasured;
  read.rounds_up = options["round"] != "deny";
  return read;
}

}  // namespace topolet::smt
