// Tests the links between the steps of a rank, and that sends meet receives in the order of their steps.
#include "collectives/schedule/step_graph.hpp"

#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

namespace chorale::test {
TEST_CASE("a step waits for what it reads, and for the step before it in its channel to begin") {
  const std::vector<Schedule> ranks = forwarding_ranks();
  const std::vector<StepLinks> links = links_of(ranks[0].steps);
  CHECK((links[0].dependents == std::vector{1} && links[0].successors.empty()));
  CHECK((links[1].dependents.empty() && links[1].successors == std::vector{2}));
  CHECK((links[0].waits == 0 && links[1].waits == 1 && links[2].waits == 1));
}

TEST_CASE("the i-th send of a channel meets the i-th receive") {
  const std::vector<Schedule> ranks = forwarding_ranks();
  const std::vector<Message> messages = StepGraph(ranks).messages();
  REQUIRE(messages.size() == 3);
  CHECK((messages[0].from == 0 && messages[0].send == 1 && messages[0].recv == 1));
  CHECK((messages[1].from == 0 && messages[1].send == 2 && messages[1].recv == 2));
  CHECK((messages[2].from == 1 && messages[2].send == 0 && messages[2].recv == 0));
}

TEST_CASE("a message with only one end is refused, and named") {
  std::vector<Schedule> unread = forwarding_ranks(), unsent = forwarding_ranks();
  unread[1].steps.pop_back();
  unsent[0].steps.pop_back();
  CHECK_THROWS_WITH(StepGraph(unread).messages(), says("rank 0: 1 messages to rank 1 are never received"));
  CHECK_THROWS_WITH(StepGraph(unsent).messages(), says("rank 1, step 2: waits for a message that no rank sends"));
}

}  // namespace chorale::test
