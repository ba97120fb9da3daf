// Tests collectives with given block sizes, including zero. Calls are in place or out of place. The calls run one after the
// other, or all are in flight at the same time.
#include "tests/collectives/expectation.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr int shapes = 5;
std::int64_t block_size(int shape, int rank, int size) {
  switch (shape) {
    case 0: return rank * 7 % 5;
    case 1: return rank == size - 1 ? 3000 : 0;
    case 2: return rank == 0 ? 0 : 40 + rank;
    case 3: return 0;
    default: return 9000 + 13 * rank;
  }
}

// A call with its counts. The counts must live as long as the call.
struct UnevenCall {
  Trial trial;
  Sizes counts, taken, everybodys = {};
  Call call() const {
    Call made = trial.call();
    made.counts = counts;
    made.taken = taken;
    made.everybodys = everybodys;
    return made;
  }
};

UnevenCall uneven(Communicator& c, Collective what, int shape, bool in_place, std::size_t turn) {
  const int p = c.size();
  Sizes counts;
  for (int r = 0; r < p; ++r) counts.push_back(block_size(shape, r, p));
  Problem problem = Problem::even(what, 0, p, static_cast<int>(turn) % p, in_place);
  problem.rank = c.rank();
  problem.blocks = Blocks(counts);
  if (problem.blocks.total() == 0) problem.in_place = false;
  const DType dtype = all_dtypes[turn % std::size(all_dtypes)];
  const Redop op = static_cast<Redop>(turn % std::size(redop_names));
  return {Trial(problem, dtype, op, c.allocator()), counts, {}};
}

std::string blocks_of_any_sizes(Communicator& c) {
  using enum Collective;
  std::string trouble;
  std::size_t turn = 0;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != reduce_scatter && algorithm.what != all_gather && algorithm.what != gather &&
        algorithm.what != scatter)
      continue;
    const bool can_be_in_place = algorithm.what == reduce_scatter || algorithm.what == all_gather;
    if (!fits(algorithm, Problem::even(algorithm.what, 1, c.size()))) continue;
    c.choose(algorithm.what, algorithm.name, 1 + static_cast<int>(turn % 2));
    std::vector<UnevenCall> calls;
    for (int shape = 0; shape < shapes; ++shape)
      for (const bool in_place : {false, true})
        if (can_be_in_place || !in_place) calls.push_back(uneven(c, algorithm.what, shape, in_place, ++turn));
    for (const bool at_once : {false, true}) {
      std::vector<Request> requests;
      for (UnevenCall& one : calls) {
        if (at_once)
          requests.push_back(c.start(one.call()));
        else
          c.run(one.call());
      }
      while (!requests.empty()) {  // waits in reverse order
        requests.back().wait();
        requests.pop_back();
      }
      for (const UnevenCall& one : calls)
        if (const std::string wrong = one.trial.trouble(); !wrong.empty() && trouble.empty())
          trouble = fmt::format("{} {}", algorithm.name, wrong);
      calls.clear();
      for (int shape = 0; shape < shapes; ++shape) calls.push_back(uneven(c, algorithm.what, shape, false, ++turn));
    }
  }
  return trouble;
}

std::int64_t matrix(int shape, int from, int to) {
  switch (shape) {
    case 0: return (from * 3 + to * 5) % 7;
    case 1: return from == 0 ? 0 : to;   // rank 0 neither sends nor receives anything
    case 2: return to == 0 ? 1000 : 0;   // only rank 0 receives
    case 3: return from == to ? 50 : 0;  // every rank sends only to itself
    case 4: return 0;
    default: return (from + 1) * (to + 2) * 300;
  }
}

// An uneven all_to_all. With `all_known`, the caller passes the counts of all ranks.
UnevenCall exchange(Communicator& c, int shape, bool in_place, std::size_t turn, bool all_known = false) {
  const int p = c.size();
  std::vector<Sizes> counts(static_cast<std::size_t>(p));
  for (int from = 0; from < p; ++from)
    for (int to = 0; to < p; ++to) counts[static_cast<std::size_t>(from)].push_back(matrix(shape, from, to));
  const std::vector<Problem> all = Problem::exchange(counts, in_place);
  Sizes taken;
  for (const Sizes& row : counts) taken.push_back(row[static_cast<std::size_t>(c.rank())]);
  Sizes everybodys;
  for (const Sizes& row : counts)
    if (all_known) everybodys.insert(everybodys.end(), row.begin(), row.end());
  return {Trial(all[static_cast<std::size_t>(c.rank())], all_dtypes[turn % std::size(all_dtypes)], Redop::sum, c.allocator(),
                all),
          counts[static_cast<std::size_t>(c.rank())], taken, everybodys};
}

std::string exchanges_of_any_sizes(Communicator& c) {
  std::string trouble;
  std::size_t turn = 0;
  std::vector<std::string> names{"pairwise", "direct", "auto"};
  if (c.transport().has_native(Collective::all_to_all)) names.emplace_back("native");
  for (const std::string& name : names)
    for (const bool at_once : {false, true}) {
      c.choose(Collective::all_to_all, name, at_once ? 2 : 1);
      std::vector<UnevenCall> calls;
      for (int shape = 0; shape <= shapes; ++shape)
        for (const bool all_known : {false, true}) {
          calls.push_back(exchange(c, shape, false, ++turn, all_known));
          if (all_known) continue;
          calls.push_back(exchange(c, shape, true, ++turn));
          calls.push_back(exchange(c, shape, c.rank() % 2 == 1, ++turn));  // in place on some ranks only
        }
      std::vector<Request> requests;
      for (UnevenCall& one : calls) {
        requests.push_back(c.start(one.call()));
        if (!at_once) requests.back().wait();
      }
      for (Request& request : requests) request.wait();
      for (const UnevenCall& one : calls)
        if (const std::string wrong = one.trial.trouble(); !wrong.empty() && trouble.empty())
          trouble = fmt::format("{} {}", name, wrong);
    }
  return trouble;
}

// Rank 0 sends and receives blocks of one size, while all other ranks have blocks of different sizes. All ranks must refuse
// the call.
std::string bruck_is_refused_alike(Communicator& c) {
  const int p = c.size();
  if (p < 3) return "";
  Communicator group = c.split(0, c.rank());
  group.choose(Collective::all_to_all, "bruck");
  Sizes given(static_cast<std::size_t>(p), 2), taken(given);
  for (int r = 1; r < p; ++r)
    if (c.rank() > 0) {
      given[static_cast<std::size_t>(r)] = c.rank() + 1;
      taken[static_cast<std::size_t>(r)] = r + 1;
    }
  std::vector<float> x(1000, 1), y(1000);
  const std::string said = thrown_by([&] { group.all_to_all({x.data(), 1000}, {y.data(), 1000}, given, taken); });
  return said.starts_with("all_to_all bruck does not fit") ? ""
                                                           : "this rank should have refused bruck, but reported: " + said;
}

// If the algorithm that was chosen for all collectives cannot run a call, the call runs with a different algorithm.
std::string bruck_for_all_collectives_skips_exchanges(Communicator& c) {
  Communicator group = c.split(0, c.rank());
  group.choose("bruck");
  const UnevenCall one = exchange(group, shapes, false, 0);
  group.run(one.call());
  return one.trial.trouble();
}

std::string counts_that_do_not_match_are_refused(Communicator& c) {
  const auto p = static_cast<std::size_t>(c.size());
  std::vector<float> x(100, 1), y(100);
  const Slice in{x.data(), 100}, out{y.data(), 100};
  const Sizes one_more(p + 1, 1), ones(p, 1);
  std::string said;
  Communicator first = c.split(0, 0), second = c.split(0, 0), third = c.split(0, 0);
  said += thrown_by([&] { first.all_gather(in, out, one_more); }) + "\n";
  said += thrown_by([&] { second.all_to_all(in, out, ones); }) + "\n";
  said += thrown_by([&] { third.reduce_scatter({x.data(), 0}, out, Redop::sum, ones); }) + "\n";
  for (const std::string& words :
       {fmt::format("{} counts for {} ranks", p + 1, p), fmt::format("{} counts to send, 0 counts to receive", p),
        fmt::format("the input has 0 elements, {} are expected", p)})
    if (said.find(words) == std::string::npos) return fmt::format("missing in the error: {}\n{}", words, said);
  return "";
}

// A backend that needs the counts of all ranks exchanges these counts only if the caller does not pass them.
std::string known_counts_are_not_exchanged(Communicator& c) {
  const UnevenCall one = exchange(c, shapes, false, 0, true);
  c.choose(Collective::all_to_all, "direct");
  const Traffic before = c.traffic();
  c.run(one.call());
  const std::int64_t calls = c.traffic().calls - before.calls;
  return calls == 1 ? one.trial.trouble() : fmt::format("{} calls were made instead of one", calls);
}

std::string wrong_counts_of_all_ranks_are_refused(Communicator& c) {
  const auto p = static_cast<std::size_t>(c.size());
  std::vector<float> x(p, 1), y(p);
  const Slice in{x.data(), c.size()}, out{y.data(), c.size()};
  const Sizes ones(p, 1);
  Sizes of_all(p * p, 1);
  std::string said;
  Communicator first = c.split(0, 0), second = c.split(0, 0), third = c.split(0, 0);
  said += thrown_by([&] { third.all_to_all(in, in, ones, ones, of_all); }) + "\n";
  for (std::int64_t& count : of_all) count = 2;
  said += thrown_by([&] { first.all_to_all(in, out, ones, ones, of_all); }) + "\n";
  of_all.push_back(1);
  said += thrown_by([&] { second.all_to_all(in, out, ones, ones, of_all); }) + "\n";
  for (const std::string& words :
       {std::string("its counts with rank 0 differ"), fmt::format("{} counts of all ranks for {} ranks", p * p + 1, p),
        std::string("cannot be in place")})
    if (said.find(words) == std::string::npos) return fmt::format("missing in the error: {}\n{}", words, said);
  return "";
}

// Rank 2 passes a wrong count for the data that rank 1 sends to rank 0. On some backends, offsets in the peers' memory
// depend on the counts of all ranks. On these backends, all ranks must refuse the call.
std::string different_counts_of_all_ranks_are_refused(Communicator& c) {
  const auto p = static_cast<std::size_t>(c.size());
  if (p < 3 || !c.transport().plans_for_all()) return "";
  std::vector<float> x(p, 1), y(p);
  Sizes of_all(p * p, 1);
  if (c.rank() == 2) of_all[p] = 2;
  Communicator group = c.split(0, c.rank());
  const std::string said = thrown_by([&] {
    group.all_to_all({x.data(), c.size()}, {y.data(), c.size()}, Sizes(p, 1), Sizes(p, 1), of_all);
  });
  return said.find("all_to_all") != said.npos ? "" : "no rank refused the call; reported: " + said;
}

// For the buffers that a call ignores, all ranks except the root pass a slice without a type, or with a wrong type and size.
// The blocks of some ranks, or all blocks, are empty.
std::string ignored_buffers_state_nothing(Communicator& c) {
  using enum Collective;
  const int p = c.size();
  std::vector<double> other(7);
  int turn = 0;
  for (const Collective what : {gather, scatter, reduce, broadcast})
    for (const int shape : {0, 3})
      for (const Slice& ignored : {Slice{}, Slice{other.data(), 7, DType::f64}}) {
        Problem problem = Problem::even(what, shape == 0 ? 11 : 0, p, ++turn % p);
        problem.rank = c.rank();
        Sizes counts;
        for (int r = 0; r < p; ++r) counts.push_back(block_size(shape, r, p));
        const bool is_cut = what == gather || what == scatter;
        if (is_cut) problem.blocks = Blocks(counts);
        const Trial trial(problem, DType::i32, Redop::sum, c.allocator());
        Call call{what, trial.input(), trial.output(), Redop::sum, problem.root, is_cut ? Counts(counts) : Counts{}};
        if (c.rank() != problem.root) (what == gather || what == reduce ? call.output : call.input) = ignored;
        c.run(call);
        if (const std::string wrong = trial.trouble(); !wrong.empty()) return wrong;
      }
  return "";
}

constexpr Check uneven_checks[] = {
    {"ignored buffers", ignored_buffers_state_nothing},
    {"blocks of any sizes", blocks_of_any_sizes},
    {"exchanges of any sizes", exchanges_of_any_sizes},
    {"bruck with counts that differ", bruck_is_refused_alike},
    {"bruck for all collectives", bruck_for_all_collectives_skips_exchanges},
    {"known counts", known_counts_are_not_exchanged},
    {"wrong counts of all ranks", wrong_counts_of_all_ranks_are_refused},
    {"different counts of all ranks", different_counts_of_all_ranks_are_refused},
    {"counts that do not match", counts_that_do_not_match_are_refused},
};

}  // namespace

TEST_CASE("collectives with blocks of any sizes are right on threads", "[threads]") {
  on_thread_worlds(uneven_checks, {1, 2, 3, 5, 8});
}
TEST_CASE("collectives with blocks of any sizes are right on every backend", "[spmd][hosts]") {
  on_every_backend(uneven_checks);
}
