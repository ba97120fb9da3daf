#include "experiments/report/blocks.hpp"

namespace chorale::report {
namespace {

ByBlock medians_by(std::string Run::*name, const std::vector<const Run*>& runs, const Samples& samples) {
  std::map<std::string, std::vector<double>> medians;
  for (const Run* run : runs)
    if (const std::vector<double> measured = samples(*run); !measured.empty())
      medians[run->*name].push_back(summarize(measured).median);
  ByBlock blocks;
  for (const auto& [block, values] : medians) blocks[block] = summarize(values).median;
  return blocks;
}

}  // namespace

ByBlock per_block(const std::vector<const Run*>& runs, const Samples& samples) {
  return medians_by(&Run::block, runs, samples);
}

ByBlock per_launch(const std::vector<const Run*>& runs, const Samples& samples) {
  return medians_by(&Run::launch, runs, samples);
}

Summary spread_of(const std::vector<const Run*>& runs, const Samples& samples) {
  return runs.size() == 1 ? summarize(samples(*runs.front())) : summarize(per_block(runs, samples));
}

}  // namespace chorale::report
