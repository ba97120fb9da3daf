// The layouts on which a training run could go on, and what each costs: the legal layouts for a number of ranks, with the
// options of the run. `chorale plan --layout all` lists the same layouts with the same costs.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/launch/choice.hpp"
#include "experiments/plan/asked.hpp"
#include "src/base/options.hpp"

namespace chorale::launch {

class Layouts {
 public:
  // `train`: the settled options of `chorale train`. `one_host`: whether all ranks will be on one host.
  Layouts(const Options& train, bool one_host);

  // The complete word of the layout that the user asked for, on so many ranks; "" if no option names a part of a layout.
  std::string asked(std::int64_t ranks) const;
  const std::vector<Possible>& on(std::int64_t ranks);  // found once per number of ranks
  // All layouts on `fewest` to `most` ranks.
  std::vector<Possible> between(std::int64_t fewest, std::int64_t most);

 private:
  Options options_{"chorale plan"};
  plan::AskedPlan plan_;
  Options with_layout_{"chorale plan"};  // also has the options that name parts of a layout
  plan::AskedPlan plan_with_layout_;
  bool one_host_, is_layout_asked_ = false;
  std::map<std::int64_t, std::vector<Possible>> found_;
};

}  // namespace chorale::launch
