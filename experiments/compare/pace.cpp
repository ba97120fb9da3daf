#include "experiments/compare/pace.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace chorale::compare {

Pace::Pace(double budget_seconds, std::vector<std::int64_t> left, Clock& clock)
    : budget_(budget_seconds), left_(std::move(left)), began_(clock.seconds()), round_began_(began_), clock_(clock) {}

double Pace::turns_of(std::int64_t round) const {
  return static_cast<double>(left_.at(static_cast<std::size_t>(round - 1)));
}

bool Pace::may_begin(std::int64_t round) {
  if (round == round_) return true;
  const double now = clock_.seconds();
  if (round_ > 0) slowest_ = std::max(slowest_, (now - round_began_) / turns_of(round_));
  if (round_ > 0 && budget_ > 0 && now - began_ + turns_of(round) * slowest_ > budget_) return false;
  round_ = round;
  if (first_ == 0) first_ = round;
  round_began_ = now;
  return true;
}

std::int64_t Pace::expected(std::int64_t done) const {
  if (budget_ <= 0) return std::accumulate(left_.begin(), left_.end(), std::int64_t{0});
  const double turn = done > 0 ? (clock_.seconds() - began_) / static_cast<double>(done) : budget_;
  std::int64_t turns = 0;
  for (const std::int64_t of_round : left_) {
    const bool has_begun = turns <= done;
    if (!has_begun && static_cast<double>(turns + of_round) * turn > budget_) break;
    turns += of_round;
  }
  return turns;
}

double Pace::overrun(std::int64_t done) const {
  if (budget_ <= 0 || round_ != first_) return 0;
  const double turns = turns_of(first_);
  if (done < 1 || static_cast<double>(done) < std::min(2.0, turns - 1)) return 0;
  const double seconds = (clock_.seconds() - began_) * turns / static_cast<double>(done);
  return seconds > budget_ ? seconds : 0;
}

}  // namespace chorale::compare
