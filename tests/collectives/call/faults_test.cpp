// Random sequences of calls in which one rank makes one mistake. The mistake is a wrong collective, count, type, root or
// operator, two swapped calls, a missing call, or an extra call. Every rank must get an error within two seconds. The error
// must name two ranks, the number of the call, and the calls that these two ranks made. An equal number of sequences without
// a mistake must raise no error. FAULTS (default 16) is the total number of sequences with a mistake over all backends, and
// also the number of sequences without one. If TIMED is set, an error that comes after more than two seconds counts as a
// failure. If a rank makes its calls on two groups in the wrong order, ranks wait for each other. The guard process ends a
// run in which ranks wait for each other, so guard_test.py tests this mistake in separate launches.
#include <fmt/format.h>

#include <random>
#include <regex>

#include "tests/collectives/worlds.hpp"
#include "tests/tally.hpp"

namespace chorale::test {
namespace {

constexpr std::int64_t most = 3000;
constexpr double most_seconds = 2;

enum class Fault { none, collective, count, type, root, op, order, missing, extra };
constexpr int faults = 8;

struct Step {
  Collective what;
  DType dtype;
  std::int64_t count;
  Redop op;
  int root;
  bool operator==(const Step&) const = default;
};

struct Drawing {
  std::mt19937_64 generator;
  int below(int n) { return static_cast<int>(generator() % static_cast<std::uint64_t>(n)); }
  template <class T, std::size_t N>
  T one_of(const T (&values)[N]) {
    return values[below(static_cast<int>(N))];
  }
};

Step random_step(Drawing& draw, int size) {
  const Collective what =
      draw.one_of({Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::reduce,
                   Collective::broadcast, Collective::all_to_all, Collective::barrier});
  return {what, draw.one_of({DType::f32, DType::f64, DType::i32, DType::u8}),
          (1 + draw.below(most / size / (draw.below(2) ? 1 : 100) - 1)) * size,
          draw.one_of({Redop::sum, Redop::max, Redop::min}), draw.below(size)};
}

// The calls of the correct ranks, and the calls of the rank that makes the mistake.
struct Sequences {
  std::vector<Step> right, wrong;
};

Sequences with_fault(Drawing& draw, Fault fault, int size) {
  std::vector<Step> right(static_cast<std::size_t>(3 + draw.below(6)));
  for (Step& step : right) step = random_step(draw, size);
  const auto k = static_cast<std::size_t>(draw.below(static_cast<int>(right.size()) - 1));
  Step& here = right[k];
  // Some mistakes can occur only in some collectives.
  if (fault == Fault::root) here.what = Collective::broadcast;
  if (fault == Fault::op) {
    here.what = Collective::all_reduce;
    here.op = Redop::sum;
  }
  if (here.what == Collective::barrier && fault != Fault::missing && fault != Fault::extra)
    here.what = Collective::all_gather;
  if (fault == Fault::order && right[k + 1] == here) here.count += size;
  // A missing or an extra call is visible only if successive calls differ.
  if (fault == Fault::missing || fault == Fault::extra)
    for (std::size_t other = k + 1; other < right.size(); ++other)
      if (right[other] == right[other - 1] || right[other].what == Collective::barrier)
        right[other] = {Collective::all_reduce, DType::f64, most - static_cast<std::int64_t>(other), Redop::min, 0};
  std::vector<Step> wrong = right;
  Step& mine = wrong[k];
  switch (fault) {
    case Fault::none: break;
    case Fault::collective:
      mine.what = mine.what == Collective::all_reduce ? Collective::broadcast : Collective::all_reduce;
      break;
    case Fault::count: mine.count += size; break;
    case Fault::type: mine.dtype = mine.dtype == DType::f32 ? DType::i32 : DType::f32; break;
    case Fault::root: mine.root = (mine.root + 1) % size; break;
    case Fault::op: mine.op = Redop::max; break;
    case Fault::order: std::swap(wrong[k], wrong[k + 1]); break;
    case Fault::missing: wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(k)); break;
    case Fault::extra: wrong.insert(wrong.begin() + static_cast<std::ptrdiff_t>(k), mine); break;
  }
  return {right, wrong};
}

void make(Communicator& world, const Step& step, std::vector<double>& x, std::vector<double>& y) {
  const Problem problem = [&] {
    Problem all = Problem::even(step.what, step.count, world.size(), step.root, step.what == Collective::broadcast);
    all.rank = world.rank();
    return all;
  }();
  if (step.what == Collective::barrier) return world.barrier();
  const Slice input{x.data(), problem.input_count(), step.dtype}, output{y.data(), problem.output_count(), step.dtype};
  if (step.what == Collective::broadcast) return world.broadcast({x.data(), step.count, step.dtype}, step.root);
  world.run({step.what, input, output, step.op, step.root});
}

// Returns the text of the error, or "nothing", and the total time of the calls in seconds.
std::pair<std::string, double> played(const std::string& backend, const std::vector<Step>& steps, bool native,
                                      Clock& clock) {
  Communicator c = open_world(backend, world(), clock);
  if (native) c.choose("native");
  std::vector<double> x(most + 64, 1), y(most + 64, 1);
  const double began = clock.seconds();
  const std::string said = thrown_by([&] {
    for (const Step& step : steps) make(c, step, x, y);
    c.barrier();  // a rank without an error so far gets it here
  });
  return {said, clock.seconds() - began};
}

}  // namespace

TEST_CASE("one mistake of one rank in a random sequence of calls is named on every rank, and no alarm is false", "[spmd]") {
  const int size = world().size(), count = std::stoi(environment("FAULTS", "16"));
  if (size == 1) return;
  std::vector<std::string> usable;
  for (const Backend& backend : all_backends())
    if (joins_all(backend)) usable.emplace_back(backend.name);
  SystemClock clock;
  const std::regex diagnosed(R"(rank \d+ called .+, rank \d+ called .+, as call \d+ of the group)"
                             R"(|its calls there: \d+; rank \d+ waits in call \d+, .+)");
  const bool timed = !environment("TIMED", "").empty();
  int unnamed = 0, late = 0, false_alarms = 0;
  Tally tally(world().rank() == 0);
  for (int i = 0; i < count; ++i) {
    alive();
    Drawing draw{std::mt19937_64(static_cast<std::uint64_t>(std::stoi(environment("SEED", "1")) * 1'000'003 + i))};
    const std::string backend = usable[static_cast<std::size_t>(i) % usable.size()];
    const bool native = backend == "mpi" && draw.below(2);
    const auto fault = static_cast<Fault>(1 + i / static_cast<int>(usable.size()) % faults);
    const auto [right, wrong] = with_fault(draw, fault, size);
    const int odd_one = draw.below(size);
    const auto [said, seconds] = played(backend, world().rank() == odd_one ? wrong : right, native, clock);
    const bool named = std::regex_search(said, diagnosed), in_time = seconds <= most_seconds;
    if (!named) {
      ++unnamed;
      fmt::print(stderr, "{}{}, mistake {} of rank {}: rank {} said: {}\n", backend, native ? " (native)" : "",
                 static_cast<int>(fault), odd_one, world().rank(), said);
    }
    if (!in_time) {
      ++late;
      fmt::print(stderr, "{}{}, mistake {}: {:.1f} s\n", backend, native ? " (native)" : "", static_cast<int>(fault),
                 seconds);
    }
    mpi::sleep_until_all(world().world(), clock);
    tally.add(ranks_that_failed(!named || (timed && !in_time)).empty());
    const std::string clean = played(backend, right, native, clock).first;
    if (clean != "nothing") {
      ++false_alarms;
      fmt::print(stderr, "{}: a false alarm: {}\n", backend, clean);
    }
    tally.add(ranks_that_failed(clean != "nothing").empty());
  }
  fmt::print("rank {}: {} mistakes, {} not named, {} later than {} s; {} sequences without a mistake, {} false alarms\n",
             world().rank(), count, unnamed, late, most_seconds, count, false_alarms);
  REQUIRE_ALL(unnamed == 0);
  REQUIRE_ALL(false_alarms == 0);
  if (timed) REQUIRE_ALL(late == 0);
}

}  // namespace chorale::test
