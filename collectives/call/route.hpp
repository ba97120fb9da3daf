// A Route holds the plan and the prepared operations for all calls with the same key (decision.hpp), so that these calls are
// planned only once.
//
//   Call ── Key ──▶ Route: the plan, why it was chosen, and idle operations for the next call with that key
//
// Planning a new route takes 3 to 20 µs on up to four ranks. Idle operations can hold workspace, so a group keeps at most
// 256 routes. At most 16 of these routes are for uneven all_to_alls, because the counts of an uneven all_to_all can change
// in every call, for example when tokens are routed to experts.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/call/world.hpp"
#include "collectives/choice/decision.hpp"
#include "collectives/transport/transport.hpp"
#include "src/base/guard/flight_page.hpp"

namespace chorale {

struct Route {
  Plan plan;
  Choice choice;
  std::vector<std::unique_ptr<Operation>> free;  // operations that no call is using
  std::int64_t bytes_sent = 0;                   // bytes that this rank sends in each call, or −1 if unknown
  std::int64_t bytes_crossing = 0;               // the part of bytes_sent that goes to other hosts
  std::int64_t bytes = 0;                        // the length of this rank's longer buffer
  FlightWords words = {};                        // plan.words for the flight recorder
};

class Routes {
 public:
  Routes(const World& world, const Membership& group, bool is_pair) : world_(world), group_(group), is_pair_(is_pair) {}

  // Returns the route for `call`. `key` is the key of `call`. If the key is new, plans the route. The reference is valid
  // until the next call of the functions `of` or `forget`.
  const std::shared_ptr<Route>& of(const Call& call, const Key& key);

  // Returns the route of the remembered call if `call` differs from that call only in the addresses of its buffers.
  // Otherwise returns null. A remembered call has no counts, and its arguments have been checked.
  Route* repeated(const Call& call) const;
  void remember(const Call& call);  // `call` is the call for which of() was called last

  // Settings for new routes. Call `forget` after changing a setting.
  RequestedAlgorithms chosen;
  bool check = true;       // whether ranks compare their calls
  std::vector<int> hosts;  // the hosts of the group's ranks (Problem::hosts)
  void forget();

 private:
  // The arguments of a call without addresses; `given` says which buffers are not null.
  struct Arguments {
    Collective what;
    Redop op;
    int root;
    bool one_vector;
    std::int64_t count[2];
    DType dtype[2];
    Device device[2];
    bool given[2];
    bool operator==(const Arguments&) const = default;
  };
  Arguments arguments_of(const Call& call) const;
  using Known = std::pair<const Key, std::shared_ptr<Route>>;
  std::shared_ptr<Route> planned(const Key& key) const;
  const Known& find_or_plan(const Key& key);
  const Known& find_or_plan_exchange(const Key& key);
  int rank() const { return group_.rank; }
  int size() const { return static_cast<int>(group_.members.size()); }

  const World& world_;
  const Membership& group_;
  const bool is_pair_;
  std::map<Key, std::shared_ptr<Route>> known_;
  std::deque<Known> exchanges_;    // the most recent routes of uneven all_to_alls
  const Key* last_key_ = nullptr;  // consecutive calls often have the same key
  std::shared_ptr<Route> last_;
  std::optional<Arguments> remembered_;
  std::shared_ptr<Route> remembered_route_;
};

void check_arguments(const Call& call, int rank, int size);  // throws if root, counts or devices are wrong

}  // namespace chorale
