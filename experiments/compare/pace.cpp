#include "experiments/compare/pace.hpp"

#include <algorithm>

namespace chorale::compare {

Pace::Pace(double budget_seconds, Clock& clock)
    : budget_(budget_seconds), began_(clock.seconds()), repetition_began_(began_), clock_(clock) {}

bool Pace::may_begin(std::int64_t repetition) {
  if (repetition == repetition_) return true;
  const double now = clock_.seconds();
  if (repetition_ > 0) longest_ = std::max(longest_, now - repetition_began_);
  if (repetition_ > 0 && budget_ > 0 && now - began_ + longest_ > budget_) return false;
  repetition_ = repetition;
  repetition_began_ = now;
  return true;
}

std::int64_t Pace::expected(std::int64_t done, std::int64_t all, std::int64_t each) const {
  if (budget_ <= 0) return all;
  const double turn = done > 0 ? (clock_.seconds() - began_) / static_cast<double>(done) : budget_;
  const auto whole = static_cast<std::int64_t>(budget_ / (turn * static_cast<double>(each)));
  return std::min(all, std::max(whole * each, (done / each + 1) * each));
}

}  // namespace chorale::compare
