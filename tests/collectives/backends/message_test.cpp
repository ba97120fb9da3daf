// Tests backends that send messages. Collectives must give correct results, and calls in flight must not disturb one
// another.
#include "collectives/call/communicator.hpp"
#include "tests/collectives/backends/messages.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// Runs the plan twice and reuses the operation, as callers do. Returns an error text, or "" if the results are correct.
std::string run(Group& group, const Plan& plan, std::uint64_t& sequence, bool blocking = false) {
  GroupCall call(group, plan);
  for (int again = 0; again < 2; ++again) {
    call.start(++sequence, blocking);
    finish({call.operation.get()});
    if (!call.right()) return plan.words + " is wrong\n";
  }
  return "";
}

}  // namespace

TEST_CASE("every algorithm gives exact results over messages, in place and out of place", "[spmd][messages]") {
  const int size = world().size();
  for (const Line& line : open_all()) {
    INFO(line.backend->name);
    const auto group = join_all(*line.transport, 1);
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

TEST_CASE("MPI's own collectives give the same results as Chorale's", "[spmd][messages]") {
  const int size = world().size();
  const auto transport = backend_named("mpi").open(world());
  const auto group = join_all(*transport, 1);
  std::vector<std::int64_t> uneven;
  for (int rank = 0; rank < size; ++rank) uneven.push_back((rank * 3 + 1) % 4);
  std::uint64_t sequence = 0;
  std::size_t turn = 0;
  std::string wrong;
  for (int what = 0; what <= static_cast<int>(Collective::barrier); ++what)
    for (const std::int64_t count : {0, size, 6 * size, -1})  // −1: blocks of different sizes
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
    const auto all = join_all(*line.transport, 1);
    std::vector<Plan> plans;
    for (const std::int64_t count : {40, 4000, 4000, 20000})  // two of these calls differ only in their sequence number

      plans.push_back(plan_of(&named(Collective::all_reduce, "ring"), Problem::even(Collective::all_reduce, count, size)));
    std::vector<std::unique_ptr<GroupCall>> calls;
    for (const Plan& plan : plans) calls.push_back(std::make_unique<GroupCall>(*all, plan));
    const std::unique_ptr<Group> some = join(*line.transport, ranks(size / 2, size), 2);
    if (some) {
      Problem gather = Problem::even(Collective::all_gather, 500, size - size / 2);
      gather.rank = rank - size / 2;
      Plan plan = plan_of(&named(Collective::all_gather, "bruck"), gather);
      plan.problem.rank = gather.rank;
      calls.insert(calls.begin() + rank % 3,
                   std::make_unique<GroupCall>(*some, plan));  // each rank starts this call at a different time
    }
    std::uint64_t sequence = 0;
    bool right = true;
    for (int again = 0; again < 20; ++again) {  // more calls than MPI tags can distinguish
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

TEST_CASE("a one-shot sum over messages adds in rank order, this rank's contribution included", "[spmd][messages]") {
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
    const auto group = join_all(*line.transport, 1);
    const auto operation = group->prepare(
        plan_of(&named(Collective::all_reduce, "one_shot"), Problem::even(Collective::all_reduce, count, size), DType::f32));
    operation->start({inputs[static_cast<std::size_t>(world().rank())].data(), sum.data(), 1, 0, true});
    finish({operation.get()});
    INFO(line.backend->name);
    REQUIRE_ALL(sum == wanted);
  }
}

TEST_CASE("sends and receives over messages match their partners, whatever else is in flight", "[spmd][messages]") {
  const int size = world().size(), rank = world().rank();
  SystemClock clock;
  for (const Line& line : open_all()) {
    Communicator c = open_world(line.backend->name, world(), clock);
    std::vector<std::int64_t> sum(100, rank), got(static_cast<std::size_t>(2 * size), -1), given(2);
    given = {rank, rank + 100};
    const auto slice = [](std::vector<std::int64_t>& of, int first, int n) {
      return Slice{of.data() + first, n, DType::i64};
    };
    // Even ranks start the all_reduce before the point-to-point messages, and odd ranks start it after them.
    std::vector<Request> requests;
    if (rank % 2 == 0) requests.push_back(c.start_all_reduce(slice(sum, 0, 100)));
    for (int message = 0; message < 2; ++message)  // two messages in each direction, which must arrive in order
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
