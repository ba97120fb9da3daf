// Base classes of the backends that send messages. In an AgreedGroup, the ranks agree on their calls by control messages
// (call_agreement.hpp). A MessageTransport creates these groups.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/backends/message/call_agreement.hpp"
#include "src/base/error.hpp"

namespace chorale {

// A backend's class Own derives from AgreedGroup<Own, World>. World is the state that all groups of the backend share.
template <class Own, class World>
class AgreedGroup : public Group {
 public:
  AgreedGroup(World& world, const Membership& membership) : world_(world), agreement_(world.control, membership) {}
  std::unique_ptr<Group> pair(int from, int to) override {
    return std::make_unique<Own>(world_, pair_of(agreement_.group(), from, to));
  }
  void poison(const std::string& why) noexcept override { agreement_.poison(why); }
  void close() noexcept override { agreement_.close(); }
  void leave() override { agreement_.leave(); }

 protected:
  World& world_;
  CallAgreement agreement_;
};

// World also has a reference `runtime` to the MPI runtime.
template <class World, class ItsGroup>
class MessageTransport : public Transport {
 public:
  template <class... More>
  explicit MessageTransport(const mpi::Runtime& runtime, More&&... more) : world_(runtime, std::forward<More>(more)...) {}
  int rank() const override { return world_.runtime.rank(); }
  int size() const override { return world_.runtime.size(); }
  std::vector<std::int64_t> exchange(std::int64_t mine) override { return mpi::all_gather(world_.runtime.world(), mine); }
  std::int64_t offer(int) override { return static_cast<std::int64_t>(world_.control.next_number()); }
  bool all_left() override { return world_.control.all_left(); }
  std::unique_ptr<Group> join(const Membership& membership) override {
    require(membership.id < pair_bit, "group id {} is too large: {} is for pairs", membership.id, pair_bit);
    return std::make_unique<ItsGroup>(world_, membership);
  }

 protected:
  World world_;
};

}  // namespace chorale
