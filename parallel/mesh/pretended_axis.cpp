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
    if (script_) {
      place->second.price = price_of_call(*selector_, backend_, decision.choice, priced, key.dtype, decision.bytes_crossing);
      place->second.volume = volume_of_call(decision, priced, key.dtype, rank());
    }
  }
  return place->second;
}

int PretendedAxis::note(const TensorCall& call) {
  const auto& [sent, price, volume] = foreseen(call);
  count(static_cast<std::size_t>(call.what), sent);
  if (!script_) return -1;
  return script_->begin({.group = name(),
                         .seconds = price.seconds,
                         .link = price.link,
                         .volume = volume,
                         .scatters = call.what == Collective::reduce_scatter});
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
    const bool crosses = host(from) != host(to);
    const CallPrice price = price_of_message(selector_->machine(), backend_, x.bytes(), crosses);
    const CallVolume volume{x.bytes(), x.bytes(), 1, crosses ? x.bytes() : 0, crosses ? 1 : 2};
    number = script_->begin({name(), from, to, price.seconds, price.waits, price.link, volume});
  }
  return {*this, Request(), x, x, number};
}

}  // namespace chorale
