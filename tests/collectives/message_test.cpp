#include <algorithm>
#include <cstring>
#include <functional>

#include "collectives/backends/backends.hpp"
#include "collectives/communicator.hpp"
#include "src/base/random.hpp"
#include "tests/spmd.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

struct Line {
  const Backend* backend;
  std::unique_ptr<Transport> transport;
};

// The backends that carry messages, where they work.
std::vector<Line> open_all() {
  std::vector<Line> lines;
  for (const Backend& backend : all_backends())
    if ((std::string(backend.name) == "mpi" || std::string(backend.name) == "ucx") && probe(backend).works)
      lines.push_back({&backend, backend.open(world())});
  return lines;
}

Membership group_of(std::vector<int> members, std::uint32_t id) {
  const auto self = std::find(members.begin(), members.end(), world().rank()) - members.begin();
  return {std::move(members), static_cast<int>(self), id, {}};
}

Membership everybody(std::uint32_t id) {
  std::vector<int> members;
  for (int rank = 0; rank < world().size(); ++rank) members.push_back(rank);
  return group_of(members, id);
}

const Algorithm* named(Collective what, const std::string& name) {
  if (const Algorithm* algorithm = find_algorithm(what, name)) return algorithm;
  throw std::runtime_error("no algorithm " + name);
}

Plan plan_of(const Algorithm* algorithm, const Problem& problem, DType dtype = DType::i32, Redop op = Redop::sum) {
  Plan plan{.algorithm = algorithm, .problem = problem.at(world().rank()), .dtype = dtype, .op = op};
  plan.words = fmt::format("{} {} of {} {}, {}, root {}{}", name_of(problem.what), algorithm ? algorithm->name : "native",
                           problem.blocks.total(), name_of(dtype), redop_names[static_cast<std::size_t>(op)], problem.root,
                           problem.in_place ? ", in place" : "");
  plan.signature = std::hash<std::string>()(plan.words) | 1;
  return plan;
}

// Small enough that every sum and product of 8 ranks is exact in every type.
std::int64_t value(Redop op, int rank, std::int64_t index) {
  const std::uint32_t bits =
      Random{.seed = 7, .site = static_cast<std::uint32_t>(rank)}.bits(static_cast<std::uint64_t>(index));
  return op == Redop::prod ? 1 + bits % 2 : bits % 5;
}

// What element `index` of the whole vector must become. An all_to_all is looked at from the rank that takes.
std::int64_t expected(const Plan& plan, std::int64_t index) {
  const Problem& p = plan.problem;
  const auto owner = [&](const Blocks& blocks) {
    int block = 0;
    while (index >= blocks.first(block) + blocks.count(block)) ++block;
    return block;
  };
  if (p.what == Collective::broadcast || p.what == Collective::scatter) return value(plan.op, p.root, index);
  if (p.takes_block()) return value(plan.op, owner(p.blocks), index);
  if (p.what == Collective::all_to_all) {  // blocks of one size
    const int from = owner(p.taken);
    return value(plan.op, from, p.blocks.first(p.rank) + index - p.taken.first(from));
  }
  std::int64_t all = value(plan.op, 0, index);
  for (int rank = 1; rank < p.size; ++rank) {
    const std::int64_t next = value(plan.op, rank, index);
    if (plan.op == Redop::sum) all += next;
    if (plan.op == Redop::prod) all *= next;
    if (plan.op == Redop::min) all = std::min(all, next);
    if (plan.op == Redop::max) all = std::max(all, next);
  }
  return all;
}

// One call with its buffers. In place, both are one vector; behind every buffer lies a byte that nobody may write.
struct Trial {
  Trial(Group& group, const Plan& p) : plan(p), operation(group.prepare(p)) {
    const Problem& problem = plan.problem;
    const std::int64_t whole = std::max(problem.blocks.total(), problem.output_count());
    input.resize(bytes(problem.in_place ? whole : problem.input_count()) + 1);
    output.resize(bytes(problem.in_place ? 0 : problem.output_count()) + 1);
    in = input.data() + (problem.in_place ? bytes(problem.input_home()) : 0);
    out = problem.in_place ? input.data() + bytes(problem.output_home()) : output.data();
  }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count * size_of(plan.dtype)); }

  void start(std::uint64_t sequence, bool blocking = false) {
    std::fill(input.begin(), input.end(), std::byte{0x5a});
    std::fill(output.begin(), output.end(), std::byte{0x5a});
    const Problem& p = plan.problem;
    visit(plan.dtype, [&]<class T>(Type<T>) {
      for (std::int64_t i = 0; i < p.input_count(); ++i) {
        const T element(static_cast<T>(static_cast<float>(value(plan.op, p.rank, p.input_home() + i))));
        std::memcpy(in + bytes(i), &element, sizeof element);
      }
    });
    operation->start({in, out, sequence, plan.signature, blocking});
  }

  bool right() const {
    const Problem& p = plan.problem;
    if (p.what == Collective::barrier) return true;
    return input.back() == std::byte{0x5a} && output.back() == std::byte{0x5a} && visit(plan.dtype, [&]<class T>(Type<T>) {
             for (std::int64_t i = 0; i < p.output_count(); ++i) {
               T element;
               std::memcpy(static_cast<void*>(&element), out + bytes(i), sizeof element);
               const T wanted(static_cast<T>(static_cast<float>(expected(plan, p.output_home() + i))));
               if (std::memcmp(&element, &wanted, sizeof element) != 0) return false;
             }
             return true;
           });
  }

  Plan plan;
  std::unique_ptr<Operation> operation;
  std::vector<std::byte> input, output;
  std::byte *in = nullptr, *out = nullptr;
};

void finish(std::vector<Operation*> operations, double limit = 20) {
  SystemClock clock;
  const auto examine = [&] {
    for (Operation* operation : operations) operation->examine();
  };
  const auto done = [&] {
    std::erase_if(operations, [](Operation* operation) { return operation->progress(); });
    return operations.empty();
  };
  wait_until(done, {.clock = clock, .timeout_seconds = limit, .spins = 10, .on_idle = examine}, "a collective");
}

// Runs the plan twice, as callers do, and tells what came out wrong.
std::string run(Group& group, const Plan& plan, std::uint64_t& sequence, bool blocking = false) {
  Trial call(group, plan);
  for (int again = 0; again < 2; ++again) {
    call.start(++sequence, blocking);
    finish({call.operation.get()});
    if (!call.right()) return plan.words + " is wrong\n";
  }
  return "";
}

// Every rank makes a call of its own; the first whose call fails gives up, as a communicator does.
std::string thrown_by(Group& group, const Plan& plan) {
  Trial call(group, plan);
  try {
    call.start(1);
    finish({call.operation.get()}, 5);
  } catch (const std::exception& error) {
    group.poison(error.what());
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("every algorithm gives exact results over messages, in place and out of place", "[spmd][messages]") {
  const int size = world().size();
  for (const Line& line : open_all()) {
    INFO(line.backend->name);
    const auto group = line.transport->join(everybody(1));
    std::uint64_t sequence = 0;
    std::size_t turn = 0;
    std::string wrong;
    for (const Algorithm& algorithm : all_algorithms())
      for (const std::int64_t count : {0, 1, size - 1, 2 * size + 1, 1000})
        for (const bool in_place : {false, true}) {
          const auto dtype = all_dtypes[turn % std::size(all_dtypes)];
          const auto op = static_cast<Redop>(turn % 4);
          const Problem problem = Problem::even(algorithm.what, count, size, static_cast<int>(turn) % size, in_place);
          ++turn;
          if (fits(algorithm, problem)) wrong += run(*group, plan_of(&algorithm, problem, dtype, op), sequence);
        }
    INFO(wrong);
    REQUIRE_ALL(wrong.empty());
  }
}

TEST_CASE("native collectives over MPI mean what ours mean", "[spmd][messages]") {
  const int size = world().size();
  const auto transport = backend_named("mpi").open(world());
  const auto group = transport->join(everybody(1));
  std::vector<std::int64_t> uneven;
  for (int rank = 0; rank < size; ++rank) uneven.push_back((rank * 3 + 1) % 4);
  std::uint64_t sequence = 0;
  std::size_t turn = 0;
  std::string wrong;
  for (int what = 0; what <= static_cast<int>(Collective::barrier); ++what)
    for (const std::int64_t count : {0, size, 6 * size, -1})  // −1: uneven
      for (const bool in_place : {false, true})
        for (const bool blocking : {false, true}) {
          Problem problem = Problem::even(static_cast<Collective>(what), std::max<std::int64_t>(count, 0), size,
                                          static_cast<int>(turn) % size, in_place);
          if (count < 0 && problem.what != Collective::barrier && problem.what != Collective::all_to_all)
            problem.blocks = Blocks(uneven);
          const auto dtype = all_dtypes[turn % std::size(all_dtypes)];
          const auto op = static_cast<Redop>(turn % 4);
          ++turn;
          wrong += run(*group, plan_of(nullptr, problem, dtype, op), sequence, blocking);
        }
  INFO(wrong);
  REQUIRE_ALL(wrong.empty());
}

TEST_CASE("collectives in flight at once, on one group and on groups that share ranks, do not disturb one another",
          "[spmd][messages]") {
  const int size = world().size(), rank = world().rank();
  for (const Line& line : open_all()) {
    const auto all = line.transport->join(everybody(1));
    std::vector<int> upper;
    for (int r = size / 2; r < size; ++r) upper.push_back(r);
    std::vector<Plan> plans;
    for (const std::int64_t count : {40, 4000, 4000, 20000})  // two that only their sequence tells apart

      plans.push_back(plan_of(named(Collective::all_reduce, "ring"), Problem::even(Collective::all_reduce, count, size)));
    std::vector<std::unique_ptr<Trial>> calls;
    for (const Plan& plan : plans) calls.push_back(std::make_unique<Trial>(*all, plan));
    std::unique_ptr<Group> some;
    if (rank >= size / 2) {
      some = line.transport->join(group_of(upper, 2));
      Problem gather = Problem::even(Collective::all_gather, 500, size - size / 2);
      gather.rank = rank - size / 2;
      Plan plan = plan_of(named(Collective::all_gather, "bruck"), gather);
      plan.problem.rank = gather.rank;
      calls.insert(calls.begin() + rank % 3, std::make_unique<Trial>(*some, plan));  // each rank starts it at another time
    }
    std::uint64_t sequence = 0;
    bool right = true;
    for (int again = 0; again < 20; ++again) {  // further than the sequence's bits in MPI's tags
      std::vector<Operation*> running;
      for (const auto& call : calls) {
        call->start(call->plan.problem.what == Collective::all_gather ? static_cast<std::uint64_t>(again) + 1 : ++sequence);
        running.push_back(call->operation.get());
      }
      finish(running);
      for (const auto& call : calls) right = right && call->right();
    }
    INFO(line.backend->name);
    REQUIRE_ALL(right);
  }
}

TEST_CASE("a one-shot sum over messages is made in rank order, our own contribution too", "[spmd][messages]") {
  const int size = world().size();
  constexpr std::int64_t count = 100;
  std::vector<std::vector<float>> inputs(static_cast<std::size_t>(size), std::vector<float>(count));
  std::vector<const void*> places;
  for (int rank = 0; rank < size; ++rank) {
    auto& input = inputs[static_cast<std::size_t>(rank)];
    Random{.seed = 3, .site = static_cast<std::uint32_t>(rank)}.fill_uniform(0, input);
    places.push_back(input.data());
  }
  std::vector<float> wanted(count), sum(count);
  reduce(Redop::sum, DType::f32, wanted.data(), places, count);
  for (const Line& line : open_all()) {
    const auto group = line.transport->join(everybody(1));
    const auto operation = group->prepare(
        plan_of(named(Collective::all_reduce, "one_shot"), Problem::even(Collective::all_reduce, count, size), DType::f32));
    operation->start({inputs[static_cast<std::size_t>(world().rank())].data(), sum.data(), 1, 0, true});
    finish({operation.get()});
    INFO(line.backend->name);
    REQUIRE_ALL(sum == wanted);
  }
}

TEST_CASE("sends and receives over messages meet their partners, whatever else is in flight", "[spmd][messages]") {
  const int size = world().size(), rank = world().rank();
  SystemClock clock;
  for (const Line& line : open_all()) {
    Communicator c = open_world(line.backend->name, world(), clock);
    std::vector<std::int64_t> sum(100, rank), got(static_cast<std::size_t>(2 * size), -1), given(2);
    given = {rank, rank + 100};
    const auto slice = [](std::vector<std::int64_t>& of, int first, int n) {
      return Slice{of.data() + first, n, DType::i64};
    };
    // Its messages may come before those of the sends, or after.
    std::vector<Request> requests;
    if (rank % 2 == 0) requests.push_back(c.start_all_reduce(slice(sum, 0, 100)));
    for (int message = 0; message < 2; ++message)  // two each way, in their order
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        requests.push_back(c.start_recv(slice(got, 2 * peer + message, 1), peer));
        requests.push_back(c.start_send(slice(given, message, 1), peer));
      }
    if (rank % 2 == 1) requests.push_back(c.start_all_reduce(slice(sum, 0, 100)));
    for (Request& request : requests) request.wait();
    bool right = sum[0] == size * (size - 1) / 2;
    for (int peer = 0; peer < size; ++peer)
      for (int message = 0; message < 2; ++message)
        right = right && got[static_cast<std::size_t>(2 * peer + message)] == (peer == rank ? -1 : peer + 100 * message);
    INFO(line.backend->name);
    REQUIRE_ALL(right);
  }
}

TEST_CASE("calls that differ between ranks end in an error that names both, on every rank", "[spmd][messages]") {
  const int size = world().size(), rank = world().rank();
  if (size == 1) return;
  const auto all_reduce = [&](Redop op) {
    return plan_of(named(Collective::all_reduce, "recursive_doubling"), Problem::even(Collective::all_reduce, 64, size),
                   DType::f32, op);
  };
  const auto all_gather = plan_of(named(Collective::all_gather, "ring"), Problem::even(Collective::all_gather, 64, size));
  const auto from = [&](int root) {
    return plan_of(named(Collective::broadcast, "binomial_tree"), Problem::even(Collective::broadcast, 64, size, root));
  };
  const bool odd_one = rank == size - 1;
  for (const Line& line : open_all()) {
    INFO(line.backend->name);
    std::uint32_t id = 1;
    const auto check = [&](const Plan& plan, const std::string& words) {
      const auto group = line.transport->join(everybody(id++));
      const std::string thrown = thrown_by(*group, plan);
      INFO("thrown: " << thrown);
      const bool named_ranks = thrown.find("rank ") != std::string::npos && thrown.find(words) != std::string::npos;
      REQUIRE_ALL(named_ranks);
    };
    check(odd_one ? all_gather : all_reduce(Redop::sum), "called all_");
    check(all_reduce(odd_one ? Redop::max : Redop::sum), "called all_reduce");  // the same messages, other sums
    check(from(odd_one ? 0 : size - 1), "called broadcast");                    // nobody sends anything
    Plan longer =
        plan_of(named(Collective::all_reduce, "ring"), Problem::even(Collective::all_reduce, odd_one ? 100 : 64, size));
    longer.signature = 0;  // not compared, and still no corruption
    check(longer, " bytes from rank ");
  }
}

TEST_CASE("who receives sees the difference, also when the sender has gone on", "[spmd][messages]") {
  const int size = world().size();
  const bool is_root = world().rank() == 0;
  for (const Line& line : open_all()) {
    INFO(line.backend->name);
    std::uint32_t id = 1;
    const auto check = [&](std::int64_t count, std::uint64_t signature, const std::string& words) {
      const auto group = line.transport->join(everybody(id++));
      Plan plan = plan_of(named(Collective::broadcast, "binomial_tree"), Problem::even(Collective::broadcast, count, size));
      plan.signature = signature;
      const std::string thrown = thrown_by(*group, plan);
      INFO("thrown: " << thrown);
      const bool right = is_root ? thrown == "nothing" : thrown.find(words) != std::string::npos;
      REQUIRE_ALL(right);
    };
    check(50, is_root ? 1 : 2, "called broadcast");
    check(is_root ? 50 : 51, 0, "expected 204 bytes from rank 0");
    check(is_root ? 51 : 50, 0, "expected 200 bytes from rank 0");
  }
}
