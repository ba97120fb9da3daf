#include "parallel/mesh/pretended_axis.hpp"

#include <utility>

#include "src/base/round_up.hpp"

namespace chorale {

PretendedAxis::PretendedAxis(std::string name, int rank, int size, std::vector<int> hosts, std::string backend,
                             const std::string& algorithm, std::shared_ptr<const Selector> selector, CommunicationTime& time)
    : Axis(std::move(name), rank, size, time),
      hosts_(std::move(hosts)),
      backend_(std::move(backend)),
      asked_(requested_everywhere(algorithm.empty() ? "auto" : algorithm)),
      selector_(std::move(selector)) {}

void PretendedAxis::write_in(Script& script) {
  script_ = &script;
  foreseen_.clear();  // entries that were created without a script have no price
}

const PretendedAxis::Foreseen& PretendedAxis::foreseen(const TensorCall& call) {
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
    if (script_) place->second.call = priced_call(*selector_, backend_, decision, priced, key.dtype, rank());
    place->second.call.group = name();
  }
  return place->second;
}

int PretendedAxis::note(const TensorCall& call) {
  const Foreseen& known = foreseen(call);
  count(static_cast<std::size_t>(call.what), known.sent);
  return script_ ? script_->begin(known.call) : -1;
}

void PretendedAxis::carry_out(const TensorCall& call) {
  const int number = note(call);
  if (script_) script_->wait(number);
}

void PretendedAxis::wait_for(Request&, std::int64_t number) {
  if (script_) script_->wait(static_cast<int>(number));
  time().call_ends(now());
}

bool PretendedAxis::test(Request&, std::int64_t) {
  time().call_ends(now());
  return true;
}

std::vector<std::string> PretendedAxis::exchange(const std::string& mine) {
  return std::vector<std::string>(static_cast<std::size_t>(size()), mine);
}

Axis::Pending PretendedAxis::message(const Tensor& x, int from, int to) {
  int number = -1;
  if (script_) {
    const auto host = [&](int rank) { return hosts_.empty() ? 0 : hosts_[static_cast<std::size_t>(rank)]; };
    Script::Call call = priced_message(selector_->machine(), backend_, x.bytes(), host(from) != host(to));
    call.group = name();
    call.from = from;
    call.to = to;
    number = script_->begin(call);
  }
  return {*this, Request(), x, x, number};
}

}  // namespace chorale
