// Runs the operations of mapped groups (mapped/eager_operation.cpp, mapped/mapped_operation.cpp) in one thread, in random
// orders that a scheduler could choose. Each rank has several calls in flight. Often one rank goes on until it is stuck, so
// that it is up to eight calls ahead of the others. A rank leaves and destroys its group as soon as its calls have
// completed, while other ranks still read its flag page.
//
//   rank 0   call 1 ─ call 2 ─ … ─ call 8 ─ stuck          destroyed
//   rank 1                                     call 1 ─ …               the others still read what rank 0 has sent
//
// The data differ in every call, so data of an earlier call are noticed. One thread shows no reordered loads and stores:
// cells_test.cpp explores these in a model.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <random>

#include <chorale/algorithm.hpp>
#include "collectives/backends/threads.hpp"
#include "src/base/error.hpp"
#include "src/base/hash.hpp"
#include "src/base/index.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/expectation.hpp"

namespace chorale::test {
namespace {

struct Deed {  // a call of all ranks
  Plan plan;
  int number;  // position in the script, from which the data follow
};

std::int32_t value_in(const Deed& deed, int rank, std::int64_t i) {
  return static_cast<std::int32_t>(
      hash_with(hash_with(static_cast<std::uint64_t>(deed.number), static_cast<std::uint64_t>(rank)),
                static_cast<std::uint64_t>(i)) %
      1000);
}

std::int32_t wanted(const Deed& deed, const Problem& p, std::int64_t i) {
  if (!reduces(p.what)) {
    const auto [from, first] = origin(p, i);
    return value_in(deed, from, first + (p.what == Collective::all_to_all ? p.blocks.first(p.rank) : 0));
  }
  std::int32_t sum = 0;
  for (int r = 0; r < p.size; ++r) sum += value_in(deed, r, p.output_home() + i);
  return sum;
}

struct InFlight {
  const Deed* deed;
  std::unique_ptr<Operation> operation;
  std::vector<std::int32_t> input, output;
};

class Rank {
 public:
  Rank(std::shared_ptr<Transport> transport, std::unique_ptr<Group> group, int rank, const std::vector<Deed>& script)
      : transport_(std::move(transport)), group_(std::move(group)), rank_(rank), script_(script) {}

  bool over() const { return !group_; }
  int completed() const { return next_ - static_cast<int>(calls_.size()); }
  bool told() const { return told_; }
  std::string trouble() const { return trouble_; }

  // Starts the next call.
  bool begin(std::size_t most_in_flight) {
    if (over() || told_ || calls_.size() >= most_in_flight || index(next_) == script_.size()) return false;
    const Deed& deed = script_[index(next_++)];
    const Problem problem = deed.plan.problem.at(rank_);
    auto& spare = spare_[deed.plan.words];
    InFlight& call = calls_.emplace_back();
    call.deed = &deed;
    if (spare.empty()) {
      Plan plan = deed.plan;
      plan.problem = problem;
      call.operation = group_->prepare(plan);
    } else {
      call.operation = std::move(spare.back());
      spare.pop_back();
    }
    call.input.resize(index(std::max<std::int64_t>(problem.input_count(), problem.in_place ? problem.output_count() : 0)));
    const std::int64_t first = problem.takes_block() ? 0 : problem.input_home();
    for (std::int64_t i = 0; i < problem.input_count(); ++i) call.input[index(i)] = value_in(deed, rank_, first + i);
    call.output.resize(problem.in_place ? 0 : index(problem.output_count()));
    history_ = hash_with(history_, deed.plan.signature) | 1;
    call.operation->start({call.input.data(), problem.in_place ? call.input.data() : call.output.data(),
                           static_cast<std::uint64_t>(next_), history_});
    return true;
  }

  // Makes progress in one call. Returns whether anything has moved.
  bool progress(std::size_t which) {
    if (calls_.empty() || told_) return false;
    InFlight& call = calls_[which % calls_.size()];
    const std::uint64_t before = call.operation->moved();
    try {
      if (!call.operation->progress()) return call.operation->moved() != before;
    } catch (const Error& error) {
      give_up(error);
      return true;
    }
    const Problem problem = call.deed->plan.problem.at(rank_);
    const std::vector<std::int32_t>& result = problem.in_place ? call.input : call.output;
    for (std::int64_t i = 0; i < problem.output_count() && trouble_.empty(); ++i)
      if (result[index(i)] != wanted(*call.deed, problem, i))
        trouble_ = fmt::format("call {}, {}: element {} of rank {} is {}, not {}", call.deed->number, call.deed->plan.words,
                               i, rank_, result[index(i)], wanted(*call.deed, problem, i));
    spare_[call.deed->plan.words].push_back(std::move(call.operation));
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(which % calls_.size()));
    return true;
  }

  // Looks for errors of peers, as a rank that waits does.
  void examine() {
    if (told_) return;
    try {
      for (InFlight& call : calls_) call.operation->examine();
    } catch (const Error& error) {
      give_up(error);
    }
  }

  // Leaves the group if all calls have completed.
  bool leave() {
    if (over() || told_ || !calls_.empty() || index(next_) < script_.size()) return false;
    group_->leave();
    spare_.clear();
    group_.reset();
    transport_.reset();
    return true;
  }

 private:
  void give_up(const Error& error) {
    told_ = true;
    for (InFlight& call : calls_) call.operation->abandon();
    group_->poison(error.what());
  }

  std::shared_ptr<Transport> transport_;
  std::unique_ptr<Group> group_;
  int rank_;
  const std::vector<Deed>& script_;
  std::deque<InFlight> calls_;
  std::map<std::string, std::vector<std::unique_ptr<Operation>>> spare_;
  int next_ = 0;
  bool told_ = false;  // of an error of a peer
  std::uint64_t history_ = 0;
  std::string trouble_;
};

std::vector<Deed> random_script(int size, int calls, std::mt19937& draw) {
  std::vector<Deed> script;
  while (std::ssize(script) < calls) {
    const Algorithm& algorithm = all_algorithms()[draw() % all_algorithms().size()];
    // Most calls go to cells, some do not.
    const std::int64_t count = draw() % 8 == 0 ? 3000 * size : static_cast<std::int64_t>(1 + draw() % 30) * size;
    const int root = static_cast<int>(draw() % static_cast<unsigned>(size));
    const Problem problem = Problem::even(algorithm.what, count, size, root, algorithm.what == Collective::broadcast);
    if (algorithm.what == Collective::barrier || !fits(algorithm, problem)) continue;
    Deed deed{{.algorithm = &algorithm, .problem = problem, .dtype = DType::i32}, static_cast<int>(script.size()) + 1};
    deed.plan.words = fmt::format("{} of {}, {}, root {}", name_of(algorithm.what), count, algorithm.name, root);
    deed.plan.signature = std::hash<std::string>{}(deed.plan.words) | 1;
    script.push_back(deed);
  }
  return script;
}

struct Team {
  Team(const std::vector<std::vector<Deed>>& scripts) : world(static_cast<int>(scripts.size())) {
    const int size = world.size();
    Membership membership;
    std::vector<std::shared_ptr<Transport>> transports;
    for (int r = 0; r < size; ++r) {
      transports.push_back(world.transport(r));
      membership.members.push_back(r);
      membership.offers.push_back(transports.back()->offer(size));
    }
    for (membership.rank = 0; membership.rank < size; ++membership.rank)
      ranks.emplace_back(transports[index(membership.rank)], transports[index(membership.rank)]->join(membership),
                         membership.rank, scripts[index(membership.rank)]);
  }

  // Runs until all ranks are over or nothing moves any more. Returns how many calls one rank was ahead of another at most.
  int run(std::mt19937& draw, std::size_t most_in_flight) {
    int ahead = 0;
    for (int idle = 0; idle < 2000 && !std::ranges::all_of(ranks, &Rank::over);) {
      Rank& favorite = ranks[draw() % ranks.size()];
      const bool greedy = draw() % 2 == 0;
      for (int stuck = 0; stuck < (greedy ? 40 : 1);) {
        const bool moved = draw() % 3 == 0 ? favorite.begin(most_in_flight) : favorite.progress(draw());
        const bool left = draw() % 4 == 0 && favorite.leave();
        stuck = moved || left ? (greedy ? 0 : 1) : stuck + 1;
        idle = moved || left ? 0 : idle + 1;
      }
      const auto [least, most] = std::ranges::minmax_element(ranks, {}, &Rank::completed);
      ahead = std::max(ahead, most->completed() - least->completed());
    }
    return ahead;
  }

  std::string trouble() const {
    for (const Rank& rank : ranks)
      if (!rank.trouble().empty()) return rank.trouble();
    return "";
  }

  ThreadWorld world;
  std::deque<Rank> ranks;
};

}  // namespace

TEST_CASE("calls on mapped memory read their own data in every order, also if a rank is calls ahead and leaves early") {
  int ahead = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 draw(seed);
    const int size = 2 + static_cast<int>(draw() % 4);
    const std::vector<std::vector<Deed>> scripts(index(size), random_script(size, 60, draw));
    Team team(scripts);
    ahead = std::max(ahead, team.run(draw, 1 + draw() % 12));
    INFO("seed " << seed);
    REQUIRE(team.trouble() == "");
    for (const Rank& rank : team.ranks) REQUIRE(rank.over());
  }
  CHECK(ahead >= 8);
}

TEST_CASE("a call that differs on mapped memory never completes with other data, and every rank is told") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 draw(seed);
    const int size = 2 + static_cast<int>(draw() % 3);
    std::vector<std::vector<Deed>> scripts(index(size), random_script(size, 30, draw));
    const auto different = index(static_cast<int>(draw() % 20));
    Deed& deed = scripts[draw() % scripts.size()][different];
    const Deed other = random_script(size, 1, draw)[0];
    if (other.plan.words == deed.plan.words) continue;
    deed.plan = other.plan;
    Team team(scripts);
    team.run(draw, 3);
    INFO("seed " << seed);
    REQUIRE(team.trouble() == "");
    for (int again = 0; again < 2; ++again)
      for (Rank& rank : team.ranks) rank.examine();
    for (const Rank& rank : team.ranks) CHECK((rank.told() && !rank.over()));
  }
}

}  // namespace chorale::test
