// The state behind a Communicator: a group of ranks, the routes of its calls, and the calls in flight.
//
//   Call ── routes.of ──▶ Route ──▶ PendingCall: queued until fewer than eight are in flight, then begun and ended
//
// Blocking and nonblocking calls take the same path. The only difference is that the PendingCall of a blocking call is on
// the stack.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/call/abandoned_operations.hpp"
#include "collectives/call/progress_engine.hpp"
#include "collectives/call/route.hpp"

namespace chorale {

// The maximum number of calls of a group in flight, counted from the oldest unfinished call to the newest call that has
// begun. Backends must be able to distinguish this many consecutive calls.
constexpr std::uint64_t most_in_flight = 8;

struct Communicator::State : std::enable_shared_from_this<Communicator::State> {
  State(std::shared_ptr<ProgressEngine> its_engine, std::shared_ptr<World> its_world, Membership its_membership,
        bool is_a_pair = false)
      : engine(std::move(its_engine)),
        world(std::move(its_world)),
        membership(std::move(its_membership)),
        routes(*world, membership, is_a_pair),
        is_pair(is_a_pair),
        in_flight_(in_flight_recorder()) {}
  ~State();

  int rank() const { return membership.rank; }
  int size() const { return static_cast<int>(membership.members.size()); }
  int launched_rank(int member) const;  // the member's rank number among all launched ranks

  void run(const Call& call);
  void run(Route& route, void* input, void* output);
  void run_ours(const Call& call);
  Request::PendingCall* launch(const Call& call, std::shared_ptr<State> parent = nullptr);
  void move(Request::PendingCall& call);               // makes progress without waiting; stores an error in `call`
  void give_up(const std::exception& error) noexcept;  // ends all calls of the group
  void abandon(Request::PendingCall& call);            // gives up on one call
  State& pair(int from, int to);
  Call used(Call call) const;  // returns the call without the buffers that this rank ignores
  const std::shared_ptr<Route>& route_of(const Call& used);

  std::shared_ptr<ProgressEngine> engine;
  std::shared_ptr<World> world;
  Membership membership;
  std::unique_ptr<Group> group;
  Routes routes;
  const bool is_pair;
  bool native_blocks = false;
  Traffic traffic;
  std::map<std::pair<int, int>, std::shared_ptr<State>> pairs;

 private:
  std::vector<std::int64_t> everybodys_counts(const Call& call, bool in_place);
  bool awaits_input(const Call& call) const;
  bool is_staged(const Call& call) const;
  std::vector<Call> pieces_of(const Call& call) const;

  // These functions accept, begin and end a call in flight.
  void enqueue(Request::PendingCall& pending, void* input, void* output);
  bool may_begin() const { return sequence_ + awaiting_ + 1 - oldest_ < most_in_flight; }
  bool begin(Request::PendingCall& call);
  void end(Request::PendingCall& call);
  std::unique_ptr<Operation> operation_of(Route& route);
  void refuse_after_giving_up() const;
  Flight::Group in_flight_recorder() const;

  const Flight::Group in_flight_;
  bool is_ours_ = false;            // whether the current call is an internal call of the communicator, as in split()
  std::uint8_t token_[2] = {1, 0};  // input and output of barriers
  std::uint64_t sequence_ = 0, history_ = 0;
  std::uint64_t oldest_ = 1, over_ = 0;      // the oldest unfinished call; bit i of over_ is 1 if call oldest_ + i is over
  std::deque<Request::PendingCall*> queue_;  // calls that have not begun, in order
  std::uint64_t awaiting_ = 0;               // number of queued calls that have an operation and wait for their input
  std::string gave_up_;
  AbandonedOperations abandoned_;
};

}  // namespace chorale
