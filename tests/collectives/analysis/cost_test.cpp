// If the blocks of a vector have equal sizes, predicted times equal the closed formulas of textbooks to twelve digits. If
// the ranks do not execute an algorithm's rounds in lockstep, predicted times are within bounds.
#include "collectives/analysis/cost.hpp"

#include <cmath>
#include <numeric>

#include "collectives/schedule/chunking.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

using namespace chorale;
using test::named;

namespace {

constexpr std::int64_t element_bytes = 4;
const Price price{3e-6, 2e-10, 7e-11};

// A predicted time for n bytes: `alphas`·α + `betas`·n·β + `gammas`·n·γ.
struct Form {
  double alphas, betas, gammas;
};

std::vector<Schedule> plans(Collective what, const std::string& name, int size, std::int64_t count, int root = 0) {
  return plan_all_ranks(named(what, name), Problem::even(what, count, size, root));
}

double near(double value) { return std::abs(value) * 1e-12; }

void check_form(Collective what, const std::string& name, int size, const Form& form) {
  const std::int64_t count = 64 * size;
  const double n = static_cast<double>(count * element_bytes);
  const auto ranks = plans(what, name, size, count);
  INFO(name_of(what) << " " << name << ", " << size << " ranks");
  const double expected = form.alphas * price.alpha + n * (form.betas * price.beta + form.gammas * price.gamma);
  CHECK(std::abs(predict(ranks, element_bytes, price) - expected) <= near(expected));
}

// Checks algorithms with messages that wrap around the end of the vector. A message that wraps around is sent as two
// messages, so ranks do not execute the rounds in lockstep. A message that is sent before its round ends hides some latency
// α. A message that arrives before an older message costs some additional transfer time β.
void check_bounds(Collective what, const std::string& name, int size, const Form& form) {
  const std::int64_t count = 64 * size;
  const double n = static_cast<double>(count * element_bytes);
  const auto ranks = plans(what, name, size, count);
  INFO(name_of(what) << " " << name << ", " << size << " ranks");
  CHECK(predict(ranks, element_bytes, {1, 0, 0}) <= form.alphas);
  CHECK(predict(ranks, element_bytes, {0, 1, 0}) >= form.betas * n - near(form.betas * n));
  CHECK(std::abs(predict(ranks, element_bytes, {0, 0, 1}) - form.gammas * n) <= near(form.gammas * n));
  const double lockstep = form.alphas * price.alpha + n * (form.betas * price.beta + form.gammas * price.gamma);
  CHECK(predict(ranks, element_bytes, price) <= 1.2 * lockstep);
  for (const Schedule& schedule : ranks)
    CHECK(static_cast<double>(volume(schedule, element_bytes).bytes_sent) == std::round(form.betas * n));
}

int log2_up(int p) { return static_cast<int>(std::ceil(std::log2(p))); }

}  // namespace

TEST_CASE("predicted times are the closed forms, or within bounds of them, for any number of ranks") {
  using enum Collective;
  for (int p = 2; p <= 17; ++p) {
    const double rounds = p - 1, f = rounds / p, logs = log2_up(p);
    check_form(all_reduce, "ring", p, {2 * rounds, 2 * f, f});
    check_form(all_reduce, "direct", p, {2, 2 * f, f});
    check_form(all_reduce, "one_shot", p, {1, rounds, rounds});
    check_form(reduce_scatter, "ring", p, {rounds, f, f});
    check_form(reduce_scatter, "direct", p, {1, f, f});
    check_form(all_gather, "ring", p, {rounds, f, 0});
    check_form(all_gather, "direct", p, {1, f, 0});
    check_form(gather, "direct", p, {1, f, 0});
    check_form(scatter, "direct", p, {1, f, 0});
    check_bounds(all_gather, "bruck", p, {logs, f, 0});
    check_bounds(all_gather, "circulant", p, {logs, f, 0});
    check_bounds(reduce_scatter, "circulant", p, {logs, f, f});
    check_bounds(all_reduce, "circulant", p, {2 * logs, 2 * f, f});
  }
}

TEST_CASE("predicted times are the closed forms for powers of two") {
  using enum Collective;
  for (const int p : {2, 4, 8, 16}) {
    const double f = (p - 1.0) / p, logs = log2_up(p);
    check_form(all_reduce, "binomial_tree", p, {2 * logs, 2 * logs, logs});
    check_form(all_reduce, "recursive_doubling", p, {logs, logs, logs});
    check_form(all_reduce, "rabenseifner", p, {2 * logs, 2 * f, f});
    check_form(reduce_scatter, "recursive_halving", p, {logs, f, f});
    check_form(all_gather, "recursive_doubling", p, {logs, f, 0});
    check_form(broadcast, "binomial_tree", p, {logs, logs, 0});
    check_form(broadcast, "scatter_all_gather", p, {logs + p - 1, 2 * f, 0});
    check_form(reduce, "binomial_tree", p, {logs, logs, logs});
    check_form(gather, "binomial_tree", p, {logs, f, 0});
    check_form(scatter, "binomial_tree", p, {logs, f, 0});
  }
}

TEST_CASE("numbers of rounds are those of the algorithms' definitions") {
  using enum Collective;
  const auto rounds = [](Collective what, const std::string& name, int p) {
    return find_rounds(plans(what, name, p, 64 * p)).count;
  };
  for (int p = 2; p <= 17; ++p) {
    INFO(p << " ranks");
    CHECK(rounds(all_reduce, "ring", p) == 2 * (p - 1));
    CHECK(rounds(all_reduce, "one_shot", p) == 1);
    CHECK(rounds(all_reduce, "direct", p) == 2);
    CHECK(rounds(all_reduce, "circulant", p) == 2 * log2_up(p));
    CHECK(rounds(all_gather, "bruck", p) == log2_up(p));
    CHECK(rounds(broadcast, "binomial_tree", p) == log2_up(p));
    const bool folds = (p & (p - 1)) != 0;
    // If p is not a power of two, a rank without a partner sends early.
    CHECK(rounds(reduce, "binomial_tree", p) <= log2_up(p));
    if (!folds) CHECK(rounds(reduce, "binomial_tree", p) == log2_up(p));
    if (!folds) CHECK(rounds(all_reduce, "binomial_tree", p) == 2 * log2_up(p));
    CHECK(rounds(all_reduce, "recursive_doubling", p) == static_cast<int>(std::log2(p)) + (folds ? 2 : 0));
  }
}

TEST_CASE("volumes are exact, also for lengths that do not divide evenly") {
  // The blocks have 3, 2 and 2 elements. Rank 0 sends block 2, then 1, then 0, then 2 again.
  const auto ring = plans(Collective::all_reduce, "ring", 3, 7);
  const Volume first = volume(ring[0], 8);
  CHECK(first.messages_sent == 4);
  CHECK(first.bytes_sent == 8 * (2 + 2 + 3 + 2));
  CHECK(first.bytes_reduced == 8 * (2 + 3));
  for (const Schedule& schedule : ring) CHECK(volume(schedule, 8).bytes_sent == 8 * schedule.elements_sent());
  CHECK(volume(plans(Collective::all_reduce, "one_shot", 5, 10)[2], 4).messages_sent == 4);
}

TEST_CASE("on mapped memory all loads and stores share one bandwidth, and few of them stay in the caches") {
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    const std::int64_t each = p < 16 ? 64 : 1 << 14;
    const double n = static_cast<double>(each * p * element_bytes), f = (p - 1.0) / p;
    const auto expect = [&](const std::string& name, double rounds, double touched, double reduced) {
      const double bytes = touched * n, cached = std::min<double>(bytes, 256 << 10);
      const double expected = rounds * price.alpha + (bytes - 0.75 * cached) * price.beta + reduced * n * price.gamma;
      const double found = predict_mapped(plans(Collective::all_reduce, name, p, each * p), element_bytes, price);
      INFO(name << ", " << p << " ranks");
      CHECK(std::abs(found - expected) <= near(expected));
    };
    expect("one_shot", 1, p * (p + 1.0), p - 1);  // every rank loads p vectors and stores one vector
    expect("direct", 2, p + 1 + 2 * (p - 1), f);  // p loads and one store for each block, then p − 1 copies
    expect("ring", 2 * (p - 1), 5 * (p - 1), f);  // p − 1 rounds of two loads and one store, then p − 1 copies
  }
}

TEST_CASE("no step begins before the steps that it waits for have ended, and no port sends two messages at once") {
  const auto ranks = plans(Collective::all_reduce, "rabenseifner", 6, 36);
  const Timeline timeline = simulate(ranks, element_bytes, price);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t s = 0; s < ranks[r].steps.size(); ++s)
      for (const int before : ranks[r].steps[s].after)
        CHECK(timeline.spans[r][static_cast<std::size_t>(before)].ends <= timeline.spans[r][s].begins);
  for (const auto& a : timeline.transfers)
    for (const auto& b : timeline.transfers)
      if (&a != &b && a.message.from == b.message.from) CHECK(a.leaves != b.leaves);
  CHECK(timeline.transfers.size() == StepGraph(ranks).messages().size());
  CHECK(timeline.seconds > 0);
}

TEST_CASE("cut into chunks, a chain of messages overlaps with itself") {
  // A chain 0 → 1 → 2 → 3 in k chunks takes p − 2 + k rounds with messages of n/k elements. Each hop costs α only once.
  std::vector<Schedule> whole;
  const std::int64_t n = 240;
  for (int rank = 0; rank < 4; ++rank) {
    Schedule& s = whole.emplace_back(Problem::even(Collective::broadcast, n, 4).at(rank));
    if (rank > 0) s.recv(rank - 1, output(0, n));
    s.round();
    if (rank < 3) s.send(rank + 1, rank == 0 ? input(0, n) : output(0, n));
  }
  for (const int chunks : {1, 2, 4, 8}) {
    std::vector<Schedule> ranks;
    for (const Schedule& schedule : whole) ranks.push_back(cut_into_chunks(schedule, chunks));
    INFO(chunks << " chunks");
    const double bytes = static_cast<double>(n * element_bytes);
    const double expected = 3 * price.alpha + (2.0 + chunks) / chunks * bytes * price.beta;
    CHECK(std::abs(predict(ranks, element_bytes, price) - expected) <= near(expected));
    CHECK(find_rounds(ranks).count == 2 + chunks);
  }
}

TEST_CASE("predict refuses a schedule with a message that is never received") {
  auto ranks = plans(Collective::all_reduce, "ring", 3, 6);
  ranks[0].steps.pop_back();
  CHECK_THROWS_WITH(predict(ranks, 4, price), says("rank 2: 1 messages to rank 0 are never received"));
}
