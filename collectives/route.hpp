// Routes: the calls that a group has met, each planned once. Two calls are the same if their keys are (decision.hpp).
//
//   Call ── Key ──▶ Route: the plan, why it is that one, and operations that are free for the next such call
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "collectives/backends/transport.hpp"
#include "collectives/decision.hpp"
#include "collectives/world.hpp"

namespace chorale {

struct Route {
  Plan plan;
  Choice choice;
  std::vector<std::unique_ptr<Operation>> free;
  std::int64_t bytes_sent = 0;  // −1: nobody can count it
};

class Routes {
 public:
  Routes(const World& world, const Membership& group, bool is_pair) : world_(world), group_(group), is_pair_(is_pair) {}

  // Of this call, with this key: planned if it is the first with that key. Valid until the next call of `of` or `forget`.
  const std::shared_ptr<Route>& of(const Call& call, const Key& key);

  // What new routes go by. Who changes it calls `forget`.
  RequestedAlgorithms chosen;
  bool check = true;  // whether calls are compared between ranks
  int ranks_per_node = 0;
  void forget();

 private:
  std::shared_ptr<Route> planned(const Key& key) const;
  int rank() const { return group_.rank; }
  int size() const { return static_cast<int>(group_.members.size()); }

  const World& world_;
  const Membership& group_;
  const bool is_pair_;
  std::map<Key, std::shared_ptr<Route>> known_;
  const Key* last_key_ = nullptr;  // the call before is often the next one too
  std::shared_ptr<Route> last_;
};

void check_arguments(const Call& call, int rank, int size);  // what can be refused before there is a key

}  // namespace chorale
