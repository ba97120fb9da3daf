// A simulated axis, without peers. PretendedAxis makes the same decisions as a live axis (choice/decision.hpp) and counts
// the bytes that this rank would send, but it sends nothing. If there is a script, the axis also adds each call with its
// price (predicted time) to the script.
#pragma once
#include <map>
#include <memory>

#include "collectives/choice/decision.hpp"
#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/call_price.hpp"
#include "parallel/mesh/script.hpp"

namespace chorale {

class PretendedAxis final : public Axis {
 public:
  // A group of this rank only. Calls on this group copy their input, or do nothing.
  PretendedAxis(std::string name, CommunicationTime& time) : Axis(std::move(name), 0, 1, time) {}
  // The axis from the view of rank `rank` of `size` ranks. `hosts`: the host of each rank, as in Problem::hosts.
  PretendedAxis(std::string name, int rank, int size, std::vector<int> hosts, std::string backend,
                const std::string& algorithm, std::shared_ptr<const Selector> selector, CommunicationTime& time);

  const std::vector<int>& hosts() const override { return hosts_; }
  bool pretends() const override { return true; }
  void write_in(Script& script) override;
  std::vector<std::string> exchange(const std::string& mine) override;
  void swap(const std::vector<ByteMessage>&, const std::vector<ByteMessage>&) override {}
  Pending start_recv(const Tensor& x, int from) override { return message(x, from, rank()); }

 private:
  // The bytes that this rank would send in a call, and the call for the script. Without a script, no time is predicted.
  struct Foreseen {
    Sent sent;
    Script::Call call;
  };
  void carry_out(const TensorCall& call) override;
  Pending begin(const TensorCall& call) override { return {*this, Request(), call.from, call.to, note(call)}; }
  Pending begin_send(const Tensor& x, int to) override { return message(x, rank(), to); }
  void wait_for(Request& request, std::int64_t number) override;
  bool test(Request& request, std::int64_t number) override;  // always true: the call completes immediately
  double now() const override { return 0; }

  const Foreseen& foreseen(const TensorCall& call);
  int note(const TensorCall& call);  // counts the call; returns its number in the script, or −1 without a script
  Pending message(const Tensor& x, int from, int to);

  std::vector<int> hosts_;
  std::string backend_;
  RequestedAlgorithms asked_;
  std::shared_ptr<const Selector> selector_;
  std::map<Key, Foreseen> foreseen_;  // one entry for all calls with the same key
  Script* script_ = nullptr;
};

}  // namespace chorale
