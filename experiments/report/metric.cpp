#include "experiments/report/metric.hpp"

#include <algorithm>

#include "experiments/report/recorded_option.hpp"

namespace chorale::report {
Option& add_metric(Options& options, std::string& metric) {
  std::vector<std::string> names = metrics();
  names.insert(names.begin(), by_settings);
  return options
      .add("metric", metric, "judge training runs by this; auto: as the suite says, else by the settings that differ")
      .one_of(names)
      .also("loss", by_loss);
}

std::string metric_for(const std::set<std::string>& differing) {
  const auto is_for_learning = [](const std::string& setting) { return effect_of("train", setting) == Effect::learning; };
  return std::ranges::any_of(differing, is_for_learning) ? by_loss : by_speed;
}

std::vector<std::string> that_change_learning(const std::set<std::string>& differing) {
  std::vector<std::string> settings;
  for (const std::string& setting : differing) {
    const Effect effect = effect_of("train", setting);
    if (setting != "seed" && (effect == Effect::learning || effect == Effect::work)) settings.push_back(setting);
  }
  return settings;
}

}  // namespace chorale::report
