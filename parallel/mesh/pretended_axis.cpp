// A simulated axis, without peers. PretendedAxis makes the same decisions as a live axis (choice/decision.hpp) and counts
// the bytes that this rank would send, but it sends nothing. If there is a script, the axis also adds each call with its
// price (predicted time) to the script.
#include <map>
#include <memory>
#include <utility>

#include "collectives/choice/decision.hpp"
#include "parallel/mesh/axis.hpp"
#include "parallel/mesh/call_price.hpp"
#include "parallel/mesh/script.hpp"
#include "src/base/round_up.hpp"

namespace chorale {
namespace {

class PretendedAxis final : public Axis {
 public:
  PretendedAxis(std::string name, CommunicationTime& time) : Axis(std::move(name), 0, 1, time) {}

  PretendedAxis(std::string name, int rank, int size, std::vector<int> hosts, std::vector<int> switches, std::string backend,
                const std::string& algorithm, std::shared_ptr<const Selector> selector, CommunicationTime& time)
      : Axis(std::move(name), rank, size, time),
        hosts_(std::move(hosts)),
        switches_(std::move(switches)),
        backend_(std::move(backend)),
        asked_(requested_everywhere(algorithm.empty() ? "auto" : algorithm)),
        selector_(std::move(selector)) {}

  const std::vector<int>& hosts() const override { return hosts_; }
  bool pretends() const override { return true; }

  void write_in(Script& script) override {
    script_ = &script;
    foreseen_.clear();  // entries that were created without a script have no price
  }

  std::vector<std::string> exchange(const std::string& mine) override {
    return std::vector<std::string>(static_cast<std::size_t>(size()), mine);
  }

  void swap(const std::vector<ByteMessage>&, const std::vector<ByteMessage>&) override {}
  Pending start_recv(const Tensor& x, int from) override { return message(x, from, rank()); }

 private:
  // The bytes that this rank would send in a call, and the call for the script. Without a script, no time is predicted.
  struct Foreseen {
    Sent sent;
    Script::Call call;
  };

  void carry_out(const TensorCall& call) override {
    const int number = note(call);
    if (script_) script_->wait(number);
  }

  Pending begin(const TensorCall& call) override { return {*this, Request(), call.from, call.to, note(call)}; }
  Pending begin_send(const Tensor& x, int to) override { return message(x, rank(), to); }

  void wait_for(Request&, std::int64_t number) override {
    if (script_) script_->wait(static_cast<int>(number));
    time().call_ends(now());
  }

  // Always true: the call completes immediately.
  bool test(Request&, std::int64_t) override {
    time().call_ends(now());
    return true;
  }

  double now() const override { return 0; }

  const Foreseen& foreseen(const TensorCall& call) {
    const Key key = key_of(call, size(), call.from.storage() == call.to.storage());
    const auto [place, is_new] = foreseen_.try_emplace(key);
    if (is_new) {
      const Problem problem = problem_of(key, key.counts, rank(), size(), hosts_);
      const Decision decision = decide(key, problem, {}, {backend_, *selector_, asked_});
      place->second.sent = {decision.bytes_sent, decision.bytes_crossing, due_of(call)};
      // The price (predicted time) of a call depends on the problems of all ranks. An uneven all_to_all is priced as if all
      // blocks were equal, because this rank knows only its own problem.
      const std::int64_t even_count = round_up(key.count, size());
      const Problem priced = key.counts.empty() ? problem : Problem::even(key.what, even_count, size(), 0, false, hosts_);
      if (script_) place->second.call = priced_call(*selector_, backend_, decision, priced, switches_, key.dtype, rank());
      place->second.call.group = name();
    }
    return place->second;
  }

  // Counts the call; returns its number in the script, or −1 without a script.
  int note(const TensorCall& call) {
    const Foreseen& known = foreseen(call);
    count(static_cast<std::size_t>(call.what), known.sent);
    return script_ ? script_->begin(known.call) : -1;
  }

  Pending message(const Tensor& x, int from, int to) {
    int number = -1;
    if (script_) {
      const auto differ = [&](const std::vector<int>& places) {
        return !places.empty() && places[static_cast<std::size_t>(from)] != places[static_cast<std::size_t>(to)];
      };
      Script::Call call = priced_message(selector_->machine(), backend_, x.bytes(), differ(hosts_), differ(switches_));
      call.group = name();
      call.from = from;
      call.to = to;
      number = script_->begin(call);
    }
    return {*this, Request(), x, x, number};
  }

  std::vector<int> hosts_, switches_;
  std::string backend_;
  RequestedAlgorithms asked_;
  std::shared_ptr<const Selector> selector_;
  std::map<Key, Foreseen> foreseen_;  // one entry for all calls with the same key
  Script* script_ = nullptr;
};

}  // namespace

std::unique_ptr<Axis> pretended_axis(std::string name, CommunicationTime& time) {
  return std::make_unique<PretendedAxis>(std::move(name), time);
}

std::unique_ptr<Axis> pretended_axis(std::string name, int rank, int size, std::vector<int> hosts, std::vector<int> switches,
                                     std::string backend, const std::string& algorithm,
                                     std::shared_ptr<const Selector> selector, CommunicationTime& time) {
  return std::make_unique<PretendedAxis>(std::move(name), rank, size, std::move(hosts), std::move(switches),
                                         std::move(backend), algorithm, std::move(selector), time);
}

}  // namespace chorale
