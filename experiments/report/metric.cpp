#include "experiments/report/metric.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale::report {
namespace {

// Settings that change what a run learns, but not its speed.
const std::set<std::string> for_learning{"lr",
                                         "min-lr",
                                         "lr-decay-style",
                                         "lr-decay-iters",
                                         "lr-warmup-iters",
                                         "lr-warmup-fraction",
                                         "lr-warmup-init",
                                         "lr-warmup-style",
                                         "lr-wsd-decay",
                                         "weight-decay",
                                         "adam-beta1",
                                         "adam-beta2",
                                         "adam-eps",
                                         "sgd-momentum",
                                         "clip-grad",
                                         "dropout",
                                         "seed",
                                         "norm-epsilon",
                                         "rotary-base",
                                         "initial-loss-scale",
                                         "loss-scale-window",
                                         "hysteresis",
                                         "moe-aux-loss-coeff",
                                         "moe-z-loss-coeff",
                                         "moe-router-bias-update-rate"};
// Settings that change both what a run learns and its speed.
const std::set<std::string> for_both{"dtype",       "optimizer",   "global-batch-size", "seq-length",   "data",
                                     "train-iters", "family",      "num-layers",        "hidden-size",  "ffn-hidden-size",
                                     "vocab-size",  "num-experts", "moe-router-topk",   "document-mask"};

}  // namespace

Option& add_metric(Options& options, std::string& metric) {
  std::vector<std::string> names = metrics();
  names.insert(names.begin(), by_settings);
  return options
      .add("metric", metric, "judge training runs by this; auto: as the suite says, else by the settings that differ")
      .one_of(names)
      .also("loss", by_loss);
}

std::string metric_for(const std::set<std::string>& differing) {
  const auto is_for_learning = [](const std::string& setting) { return for_learning.contains(setting); };
  return std::ranges::any_of(differing, is_for_learning) ? by_loss : by_speed;
}

std::vector<std::string> that_change_learning(const std::set<std::string>& differing) {
  std::vector<std::string> settings;
  for (const std::string& setting : differing)
    if (setting != "seed" && (for_learning.contains(setting) || for_both.contains(setting))) settings.push_back(setting);
  return settings;
}

}  // namespace chorale::report
