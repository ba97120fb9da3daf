#include "experiments/common/time_shares.hpp"

namespace chorale {

double spent(const ClassTime& time, Spent kind) { return time.kernels.seconds[static_cast<std::size_t>(kind)]; }

Shares shares_of(const ClassTime& time, const std::set<std::string>& axes) {
  Shares all{{"products", spent(time, Spent::products)},
             {"attention", spent(time, Spent::attention)},
             {"other kernels", spent(time, Spent::elements)},
             {"update", spent(time, Spent::update)},
             {"tp calls", time.calls},
             {"launches", time.launching > 1e-9 * time.seconds ? time.launching : 0}};  // ignores rounding errors
  for (const std::string& axis : axes) {
    const auto found = time.waits.find(axis);
    all.emplace_back("wait: " + axis, found == time.waits.end() ? 0 : found->second);
  }
  return all;
}

std::set<std::string> waited_axes(const ExecutedStep& step) {
  std::set<std::string> axes;
  for (const ClassTime& time : step.classes)
    for (const auto& [axis, seconds] : time.waits) axes.insert(axis);
  return axes;
}

Shares shares_of(const PredictedStep& step, std::size_t rank_class) {
  return shares_of(step.step.classes[rank_class], waited_axes(step.step));
}

Shares mean_shares(const PredictedStep& step) {
  const std::set<std::string> axes = waited_axes(step.step);
  Shares mean;
  double ranks = 0;
  for (std::size_t c = 0; c < step.step.classes.size(); ++c) {
    const auto weight = static_cast<double>(step.ranks.classes[c].ranks);
    const Shares own = shares_of(step.step.classes[c], axes);
    if (mean.empty()) mean = own;
    for (std::size_t i = 0; i < own.size(); ++i) mean[i].second = (c == 0 ? 0 : mean[i].second) + weight * own[i].second;
    ranks += weight;
  }
  double spent = 0;
  for (auto& [name, seconds] : mean) {
    seconds /= ranks;
    spent += seconds;
  }
  if (const double idle = step.step.seconds - spent; idle > 1e-9 * step.step.seconds)
    mean.emplace_back("idle at the end", idle);
  if (const double slow = step.seconds - step.step.seconds; slow > 0) mean.emplace_back("slow hosts", slow);
  return mean;
}

}  // namespace chorale
