#include "collectives/analysis/symbolic_run.hpp"

#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {

SymbolicRun::SymbolicRun(const std::vector<Schedule>& ranks, Expressions& sums)
    : ranks_(ranks), sums_(sums), rounds_(find_rounds(ranks)) {
  for (const Schedule& schedule : ranks) {
    const Problem& p = schedule.problem();
    lineups_.emplace_back(schedule);
    memory_.emplace_back(lineups_.back().size());
    for (std::int64_t i = 0; i < p.input_count(); ++i)
      memory_.back()[lineups_.back().at(Place::input, i)] = {p.input_home() + i, sums.leaf(p.rank)};
  }
  play();
}

std::int64_t SymbolicRun::count(int rank, Place place) const {
  const Schedule& schedule = ranks_[index(rank)];
  if (place == Place::scratch) return schedule.scratch_count();
  return place == Place::input ? schedule.problem().input_count() : schedule.problem().output_count();
}

void SymbolicRun::next_round() {
  require(round_ < rounds_.count, "there is no round after round {}", round_);
  ++round_;
  play();
}

// Runs one round: first all sends, then all other steps. So every send reads the values from the end of the previous round.
void SymbolicRun::play() {
  for (const Message& message : rounds_.messages)
    if (rounds_.of[index(message.from)][index(message.send)] == round_)
      mail_[{message.to, message.recv}][message.from] =
          read(message.from, ranks_[index(message.from)].steps[index(message.send)].src.at(0));
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    for (std::size_t s = 0; s < ranks_[r].steps.size(); ++s)
      if (rounds_.of[r][s] == round_ && ranks_[r].steps[s].kind != Kind::send)
        store(static_cast<int>(r), static_cast<int>(s));
}

SymbolicRun::Values SymbolicRun::read(int rank, const Range& range) const {
  Values values;
  for (std::int64_t i = 0; i < range.count; ++i) {
    values.push_back(at(rank, range.place, range.first + i));
    require(values.back().element >= 0, "rank {} reads element {}, which was never written", rank, range.first + i);
  }
  return values;
}

void SymbolicRun::store(int rank, int s) {
  const Step& step = ranks_[index(rank)].steps[index(s)];
  std::vector<Values> addends;
  for (const Range& range : step.src) addends.push_back(read(rank, range));
  if (const auto mail = mail_.find({rank, s}); mail != mail_.end()) {
    std::size_t before_own = 0;  // adds in rank order: the addends of lower ranks come before this rank's addend
    for (auto& [from, values] : mail->second)
      addends.insert(from < rank ? addends.begin() + static_cast<std::ptrdiff_t>(before_own++) : addends.end(),
                     std::move(values));
    mail_.erase(mail);
  }
  for (std::int64_t i = 0; i < step.dst.count; ++i) {
    const auto nth = static_cast<std::size_t>(i);
    std::vector<int> terms;
    for (const Values& values : addends) terms.push_back(values.at(nth).sum);
    memory_[index(rank)].at(lineups_[index(rank)].at(step.dst.place, step.dst.first + i)) = {addends.at(0).at(nth).element,
                                                                                             sums_.sum(std::move(terms))};
  }
}

}  // namespace chorale
