// What stands behind a Communicator: calls are turned into prepared operations, which are kept for the next such call, and flown.
//
//   Call ── Key ──▶ Route (plan, operations that are free)          one for each different call of a group
//                     └── Flight: one run, queued until fewer than eight of its group are in the air
//   Engine: all flights of this rank, on any group of the worlds that share it; every wait moves all of them
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/abandoned_operations.hpp"
#include "collectives/backends/transport.hpp"
#include "collectives/communicator.hpp"
#include "collectives/decision.hpp"
#include "src/base/wait.hpp"

namespace chorale {

// Of one group, from the oldest call that is not over to the newest that has begun: what backends must be able to tell apart.
constexpr std::uint64_t most_in_the_air = 8;
constexpr std::size_t most_routes = 256;  // when a group knows more different calls than this, it forgets them all

struct Route {
  Plan plan;
  Choice choice;
  std::vector<std::unique_ptr<Operation>> free;
  std::int64_t bytes_sent = 0;  // −1: nobody can count it
};

struct Request::PendingCall {
  std::shared_ptr<Communicator::State> parent;  // of a pair's group, which goes first
  std::shared_ptr<Communicator::State> group;
  std::shared_ptr<Route> route;  // kept when the group forgets it
  std::unique_ptr<Operation> operation;
  void *input = nullptr, *output = nullptr;
  std::uint64_t sequence = 0;         // 0: not begun yet
  PendingCall* next_piece = nullptr;  // of the same call, where it was cut
  bool over = false;
  std::exception_ptr trouble = nullptr;
};

class Engine {
 public:
  Engine(Clock& clock, bool oversubscribed, double timeout_seconds);

  void progress();  // of everything that is not over
  void poll();      // the same, for callers that do not wait; now and then it looks for trouble, as a wait does
  void add(Request::PendingCall* flight) { flights_.push_back(flight); }
  void remove(const Request::PendingCall* flight) { std::erase(flights_, flight); }
  bool idle() const { return flights_.empty(); }
  std::vector<Request::PendingCall*> flights_of(const Communicator::State* group) const;
  Clock& clock() const { return waiting_.clock; }

  // Waits until `done`, which moves what it waits for; `blocked`, if any, is examined beside all flights.
  template <class Done>
  void wait(Done&& done, Operation* blocked, const char* what, bool briefly = false) {
    struct Restore {
      Operation*& place;
      Operation* value;
      ~Restore() { place = value; }
    } const restore{blocked_, std::exchange(blocked_, blocked)};
    wait_until(done, briefly ? briefly_ : waiting_, what);
  }

 private:
  void examine();
  std::uint64_t moved() const;

  Waiting waiting_, briefly_;
  Operation* blocked_ = nullptr;
  std::uint64_t polls_ = 0;
  std::vector<Request::PendingCall*> flights_;  // of one group in the order of their calls
};

// What all groups of one world share.
struct World {
  World(std::shared_ptr<Transport> joined, Clock& clock);
  ~World();
  Clock& clock;
  std::shared_ptr<Transport> transport;
  Ledger ledger;
  Allocator allocator;             // of the transport's memory
  std::shared_ptr<Memory> device;  // of buffers on a device: who copies them
  std::shared_ptr<const Selector> selector;
  std::vector<std::uint8_t> free_ids;  // of groups: 1 where this rank is in none of that id
};

struct Communicator::State : std::enable_shared_from_this<Communicator::State> {
  ~State();

  int rank() const { return membership.rank; }
  int size() const { return static_cast<int>(membership.members.size()); }

  void run(const Call& call);
  void run_ours(const Call& call);
  Request::PendingCall* launch(const Call& call, std::shared_ptr<State> parent = nullptr);
  void move(Request::PendingCall& flight);             // as far as it goes; trouble is kept in it
  void give_up(const std::exception& error) noexcept;  // on all calls of the group
  void abandon(Request::PendingCall& flight);          // on one
  State& pair(int from, int to);

  const std::shared_ptr<Route>& route_of(const Call& call);  // this and what it needs in route.cpp

  std::shared_ptr<Engine> engine;
  std::shared_ptr<World> world;
  std::unique_ptr<Group> group;
  Membership membership;
  bool is_pair = false;
  bool check = true;
  bool native_blocks = false;
  int ranks_per_node = 0;
  RequestedAlgorithms chosen;
  Traffic traffic;
  std::uint8_t token[2] = {1, 0};  // of barriers

  std::map<Key, std::shared_ptr<Route>> routes;
  const Key* last_key = nullptr;  // the call before is often the next one too
  std::shared_ptr<Route> last_route;
  std::map<std::pair<int, int>, std::shared_ptr<State>> pairs;

 private:
  std::pair<void*, void*> buffers_of(const Call& call);
  bool may_begin() const { return sequence_ + awaiting_ + 1 - oldest_ < most_in_the_air; }
  bool begin(Request::PendingCall& flight);
  void count(const Route& route);
  std::uint64_t begin(Route& route, Operation& operation, void* input, void* output, bool blocking);
  void end(Route& route, std::unique_ptr<Operation> operation, std::uint64_t sequence, void* output);
  bool awaits_input(const Call& call) const;
  bool is_staged(const Call& call) const;
  std::vector<Call> pieces_of(const Call& call) const;
  void fly(const std::shared_ptr<Route>& route, const Call& call);
  Request::PendingCall* launch(std::shared_ptr<Route> route, const Call& call);
  void refuse_after_giving_up() const;
  std::unique_ptr<Operation> operation_of(Route& route);
  std::shared_ptr<Route> plan_route(const Key& key);
  std::vector<std::int64_t> everybodys_counts(const Call& call, bool in_place);

  bool is_ours_ = false;
  std::uint64_t sequence_ = 0, history_ = 0;
  std::uint64_t oldest_ = 1, over_ = 0;      // the first call that is not over; bit i: the one i after it is
  std::deque<Request::PendingCall*> queue_;  // of those that have not begun, in the order of their calls
  std::uint64_t awaiting_ = 0;               // how many of them have an operation, which awaits its input
  std::unique_ptr<Operation> flown_;         // that run() waits for
  std::string gave_up_;
  AbandonedOperations abandoned_;
};

}  // namespace chorale
