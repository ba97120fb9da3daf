// On backends that send messages, ranks get errors when ranks make mismatched calls or a rank gives up. A failed call can
// leave messages and control messages unread. Such unread messages must never reach a world that is opened later.
#include "collectives/backends/message/call_agreement.hpp"
#include "tests/collectives/backends/messages.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// Makes a call and returns its error, or "nothing". If the call fails, this rank gives up the group, as a Communicator
// would.
std::string thrown_by(Group& group, const Plan& plan) {
  GroupCall call(group, plan);
  try {
    call.start(1);
    finish({call.operation.get()}, 5);
  } catch (const std::exception& error) {
    group.poison(error.what());
    return error.what();
  }
  return "nothing";
}

// Reads control messages for `seconds`, which is long enough to receive all messages sent before a preceding barrier.
// Returns the text of the error that the control messages cause, or "nothing".
std::string heard(CallAgreement& agreement, double seconds) {
  SystemClock clock;
  const double until = clock.seconds() + seconds;
  try {
    while (clock.seconds() < until) agreement.examine();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("if calls differ between ranks, every rank gets an error that names a rank and the call or size",
          "[spmd][messages]") {
  const int size = world().size(), rank = world().rank();
  if (size == 1) return;
  const auto all_reduce = [&](Redop op) {
    return plan_of(&named(Collective::all_reduce, "recursive_doubling"), Problem::even(Collective::all_reduce, 64, size),
                   DType::f32, op);
  };
  const auto all_gather = plan_of(&named(Collective::all_gather, "ring"), Problem::even(Collective::all_gather, 64, size));
  const auto from = [&](int root) {
    return plan_of(&named(Collective::broadcast, "binomial_tree"), Problem::even(Collective::broadcast, 64, size, root));
  };
  const bool odd_one = rank == size - 1;
  for (const Line& line : open_all()) {
    INFO(line.backend->name);
    std::uint32_t id = 1;
    const auto check = [&](const Plan& plan, const std::string& words) {
      const auto group = join_all(*line.transport, id++);
      const std::string thrown = thrown_by(*group, plan);
      INFO("thrown: " << thrown);
      const bool named_ranks = thrown.find("rank ") != std::string::npos && thrown.find(words) != std::string::npos;
      REQUIRE_ALL(named_ranks);
    };
    check(odd_one ? all_gather : all_reduce(Redop::sum), "called all_");
    check(all_reduce(odd_one ? Redop::max : Redop::sum), "called all_reduce");  // equal message sizes, a different operator
    check(from(odd_one ? 0 : size - 1), "called broadcast");                    // with these roots, no rank sends a message
    Plan longer =
        plan_of(&named(Collective::all_reduce, "ring"), Problem::even(Collective::all_reduce, odd_one ? 100 : 64, size));
    longer.signature = 0;  // ranks do not compare calls, but still compare message sizes
    check(longer, " bytes from rank ");
  }
}

TEST_CASE("the receiver detects a different call even if the sender has moved on", "[spmd][messages]") {
  const int size = world().size();
  const bool is_root = world().rank() == 0;
  for (const Line& line : open_all()) {
    INFO(line.backend->name);
    std::uint32_t id = 1;
    const auto check = [&](std::int64_t count, std::uint64_t signature, const std::string& words) {
      const auto group = join_all(*line.transport, id++);
      Plan plan = plan_of(&named(Collective::broadcast, "binomial_tree"), Problem::even(Collective::broadcast, count, size));
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

TEST_CASE("if rank 0 gives up and the others follow, they report rank 0's reason unchanged", "[spmd][messages]") {
  const bool is_first = world().rank() == 0;
  ControlEndpoint control(world().world());
  CallAgreement agreement(control, everybody(control));
  if (is_first) agreement.poison("there is no root 99");
  std::string said = is_first ? "nothing" : heard(agreement, 5);
  if (!is_first) agreement.poison(said);
  PMPI_Barrier(world().world());
  if (is_first) said = heard(agreement, 0.05);
  const std::string words = "rank 0 gave up: there is no root 99\n";
  REQUIRE_ALL((is_first ? said == "nothing" : said.substr(0, words.size()) == words));
}

// MPICH reuses the context id of a freed communicator. So a new communicator could receive messages that were sent on the
// freed communicator and never received.
TEST_CASE("unread control messages do not reach the next world", "[spmd][messages]") {
  {
    ControlEndpoint control(world().world());
    CallAgreement agreement(control, everybody(control));
    if (world().rank() == 0) agreement.poison("an old sorrow");
    PMPI_Barrier(world().world());
  }
  ControlEndpoint control(world().world());
  CallAgreement agreement(control, everybody(control));
  PMPI_Barrier(world().world());
  REQUIRE_ALL(heard(agreement, 0.05) == "nothing");
}

TEST_CASE("unreceived messages do not reach the next world", "[spmd][messages]") {
  const int size = world().size();
  const bool is_root = world().rank() == 0;
  const Plan plan = plan_of(&named(Collective::broadcast, "direct"), Problem::even(Collective::broadcast, 4, size));
  for (int round = 0; round < 2; ++round) {
    const auto transport = backend_named("mpi").open(world());
    const auto group = join_all(*transport, 1);
    const auto operation = group->prepare(plan);
    std::vector<std::int32_t> x(4, is_root ? round : -1);
    if (is_root || round == 1) {
      operation->start({x.data(), x.data(), 1, plan.signature});
      finish({operation.get()});
    } else {
      group->poison("the first broadcast is of no interest");
    }
    PMPI_Barrier(world().world());
    if (round == 1) REQUIRE_ALL(x == std::vector<std::int32_t>(4, 1));
  }
}
