#include "parallel/mesh/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace chorale {

const char* operation_name(std::size_t operation) { return operation == messages ? "send" : collective_names[operation]; }

Axis::Pending::Pending(Axis& axis, Request request, const Tensor& input, const Tensor& output, std::int64_t call)
    : axis_(&axis), input_(input), output_(output), request_(std::move(request)), call_(call) {
  axis.time_->call_begins(axis.now());
}

Axis::Pending& Axis::Pending::operator=(Pending&& other) noexcept {
  std::swap(axis_, other.axis_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(request_, other.request_);
  std::swap(call_, other.call_);
  return *this;
}

void Axis::Pending::wait() {
  if (!axis_) return;
  if (axis_->script_) axis_->script_->wait(static_cast<int>(call_));
  const double start = axis_->now();
  axis_->time_->wait_begins(start);
  request_.wait();
  const double over = axis_->now();
  axis_->time_->wait_ends(over);
  axis_->time_->call_ends(over);
  if (axis_->trace_ && !axis_->script_) axis_->trace_->over(call_, start, over);
  axis_ = nullptr;
  input_ = output_ = {};
}

bool Axis::Pending::test() {
  if (axis_ && axis_->pretends()) {  // over without a wait
    axis_->time_->call_ends(axis_->now());
    axis_ = nullptr, input_ = output_ = {};
  }
  if (axis_ && request_.test()) wait();
  return !axis_;
}

Axis::Axis(std::string name, Communicator group, CommunicationTime& time)
    : name_(std::move(name)), rank_(group.rank()), size_(group.size()), group_(std::move(group)), time_(&time) {}

Axis::Axis(std::string name, int rank, int size, std::vector<int> hosts, std::string backend, const std::string& algorithm,
           std::shared_ptr<const Selector> selector, CommunicationTime& time)
    : name_(std::move(name)),
      rank_(rank),
      size_(size),
      hosts_(std::move(hosts)),
      backend_(std::move(backend)),
      asked_(requested_everywhere(algorithm.empty() ? "auto" : algorithm)),
      selector_(std::move(selector)),
      time_(&time) {}

void Axis::add(std::size_t operation, Sent sent) {
  Account::Entry& entry = account_.entries[operation];
  ++entry.calls;
  entry.bytes = sent.bytes < 0 || entry.bytes < 0 ? -1 : entry.bytes + sent.bytes;
  entry.crossing = sent.crossing < 0 || entry.crossing < 0 ? -1 : entry.crossing + sent.crossing;
  entry.due += sent.due;
}

std::int64_t Axis::due_of(const Call& call) const {
  if (call.what != Collective::all_to_all || call.counts.empty()) return 0;
  const std::int64_t all = std::accumulate(call.counts.begin(), call.counts.end(), std::int64_t{0});
  return (all - call.counts[static_cast<std::size_t>(rank_)]) * static_cast<std::int64_t>(size_of(call.input.dtype));
}

const Axis::Foreseen& Axis::foreseen(const TensorCall& call) {
  const Key key = key_of(call, size_, call.from.storage() == call.to.storage());
  const auto [place, is_new] = foreseen_.try_emplace(key);
  if (is_new) {
    const Problem problem = problem_of(key, key.counts, rank_, size_, hosts_);
    const Decision decision = decide(key, problem, {}, {backend_, *selector_, asked_});
    place->second.sent = {decision.bytes_sent, decision.bytes_crossing, due_of(call)};
    // A price needs the problems of all ranks. Those of an uneven all_to_all are priced as if all blocks were equal.
    const std::int64_t even_count = (key.count + size_ - 1) / size_ * size_;
    const Problem priced = key.counts.empty() ? problem : Problem::even(key.what, even_count, size_, 0, false, hosts_);
    if (script_) {
      place->second.price = price_of_call(*selector_, backend_, decision.choice, priced, key.dtype, decision.bytes_crossing);
      place->second.volume = volume_of_call(decision, priced, key.dtype, rank_);
    }
  }
  return place->second;
}

int Axis::pretend(const TensorCall& call) {
  const auto& [sent, price, volume] = foreseen(call);
  add(static_cast<std::size_t>(call.what), sent);
  if (!script_) return -1;
  return script_->begin({.group = name_,
                         .seconds = price.seconds,
                         .link = price.link,
                         .volume = volume,
                         .scatters = call.what == Collective::reduce_scatter});
}

Axis::Sizes Axis::sizes_of(const Tensor& input, const RowsBetween& rows) const {
  const auto p = static_cast<std::size_t>(size_), me = static_cast<std::size_t>(rank_);
  require(rows.size() == p * p, "{} numbers of rows were given for {} ranks", rows.size(), size_);
  const std::int64_t width = elements_of(Shape(input.shape().begin() + 1, input.shape().end()));
  Sizes sizes;
  for (const std::int64_t number : rows) sizes.everybodys.push_back(number * width);
  for (std::size_t other = 0; other < p; ++other) {
    sizes.given.push_back(sizes.everybodys[me * p + other]);
    sizes.taken.push_back(sizes.everybodys[other * p + me]);
  }
  return sizes;
}

void Axis::run_uneven(TensorCall call, const std::vector<std::int64_t>& rows) {
  require(std::ssize(rows) == size_, "{} numbers of rows were given for {} ranks", rows.size(), size_);
  const Shape& shape = call.from.shape();
  const std::int64_t width = elements_of(Shape(shape.begin() + 1, shape.end()));
  std::vector<std::int64_t> counts;
  for (const std::int64_t number : rows) counts.push_back(number * width);
  if (std::ranges::adjacent_find(counts, std::ranges::not_equal_to{}) != counts.end()) call.counts = counts;
  run(call);
}

// In an all_to_all, a rank without rows still takes part, because all ranks of a group make the same calls. If no rank has a
// row, the call is counted but not made. So the number of calls does not depend on the routing of experts.
bool Axis::done_alone(const Call& call) {
  const bool moves_nothing = std::ranges::all_of(call.everybodys, [](std::int64_t count) { return count == 0; });
  if (call.input.count == 0 && call.output.count == 0 && moves_nothing) {
    if (!call.everybodys.empty() && size_ > 1) add(static_cast<std::size_t>(call.what), {});
    return true;
  }
  if (size_ > 1) return false;
  copy(call.input, call.output);
  return true;
}

template <class Do>
std::int64_t Axis::account_for(const Call& call, bool started, Do&& carry_out) {
  const double begun = now();
  time_->wait_begins(begun);
  const Traffic before = group_.traffic();
  carry_out();
  const Traffic& after = group_.traffic();
  const auto since = [](std::int64_t later, std::int64_t then) { return later < 0 ? -1 : later - then; };
  add(static_cast<std::size_t>(call.what),
      {since(after.bytes_sent, before.bytes_sent), since(after.bytes_crossing, before.bytes_crossing), due_of(call)});
  const double done = now();
  time_->wait_ends(done);
  if (!writes()) return -1;
  return trace_->add(Trace::Call{.axis = name_,
                                 .operation = name_of(call.what),
                                 .algorithm = group_.choice(call).algorithm,
                                 .backend = group_.backend(),
                                 .dtype = name_of(call.input.dtype),
                                 .bytes = std::max(call.input.bytes(), call.output.bytes()),
                                 .started = started,
                                 .begins = begun,
                                 .launched = done,
                                 .waited = done,
                                 .ends = done});
}

void Axis::run(const TensorCall& call) {
  if (done_alone(call)) return;
  if (pretends()) {
    const int number = pretend(call);
    return script_ ? script_->wait(number) : void();
  }
  account_for(call, false, [&] { group_.run(call); });
}

Axis::Pending Axis::start(const TensorCall& call) {
  if (done_alone(call)) return {};
  Request request;
  std::int64_t number = -1;
  if (pretends())
    number = pretend(call);
  else
    number = account_for(call, true, [&] { request = group_.start(call); });
  return {*this, std::move(request), call.from, call.to, number};
}

std::vector<std::string> Axis::exchange(const std::string& mine) {
  if (size_ == 1 || pretends()) return std::vector<std::string>(static_cast<std::size_t>(size_), mine);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size_));
  auto length = static_cast<std::int64_t>(mine.size());
  group_.all_gather({&length, 1, DType::i64}, {lengths.data(), size_, DType::i64});
  std::string all(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})), ' ');
  std::string given = mine;
  group_.all_gather({given.data(), length, DType::u8}, {all.data(), static_cast<std::int64_t>(all.size()), DType::u8},
                    lengths);
  std::vector<std::string> texts;
  for (std::size_t first = 0; const std::int64_t count : lengths)
    texts.push_back(
        all.substr(std::exchange(first, first + static_cast<std::size_t>(count)), static_cast<std::size_t>(count)));
  return texts;
}

Axis::Vote Axis::start_vote(bool yes) {
  Vote vote;
  vote.yes_ = std::make_unique<std::int32_t>(yes);
  if (size_ > 1 && !pretends()) vote.request_ = group_.start_all_reduce({vote.yes_.get(), 1, DType::i32}, Redop::max);
  return vote;
}

bool Axis::Vote::any() {
  request_.wait();
  return *yes_ != 0;
}

Axis::Pending Axis::start_send(const Tensor& x, int to) {
  const std::vector<int>& hosts = pretends() ? hosts_ : group_.hosts();
  const bool crosses = !hosts.empty() && hosts[static_cast<std::size_t>(to)] != hosts[static_cast<std::size_t>(rank_)];
  add(messages, {x.bytes(), crosses ? x.bytes() : 0});
  return pretends() ? pretend(x, rank_, to) : message("send", group_.start_send(x.slice(), to), x);
}

Axis::Pending Axis::start_recv(const Tensor& x, int from) {
  return pretends() ? pretend(x, from, rank_) : message("recv", group_.start_recv(x.slice(), from), x);
}

Axis::Pending Axis::pretend(const Tensor& x, int from, int to) {
  int call = -1;
  if (script_) {
    const auto host = [&](int rank) { return hosts_.empty() ? 0 : hosts_[static_cast<std::size_t>(rank)]; };
    const bool crosses = host(from) != host(to);
    const CallPrice price = price_of_message(selector_->machine(), backend_, x.bytes(), crosses);
    const CallVolume volume{x.bytes(), x.bytes(), 1, crosses ? x.bytes() : 0, crosses ? 1 : 2};
    call = script_->begin({name_, from, to, price.seconds, price.waits, price.link, volume});
  }
  return {*this, Request(), x, x, call};
}

// A message between two ranks needs no algorithm. The launch time of a message is not measured, so the trace counts it as
// zero.
Axis::Pending Axis::message(const char* operation, Request request, const Tensor& x) {
  std::int64_t call = -1;
  if (writes()) {
    const double begun = now();
    call = trace_->add(Trace::Call{.axis = name_,
                                   .operation = operation,
                                   .algorithm = "message",
                                   .backend = group_.backend(),
                                   .dtype = name_of(x.dtype()),
                                   .bytes = x.bytes(),
                                   .message = true,
                                   .started = true,
                                   .begins = begun,
                                   .launched = begun,
                                   .waited = begun,
                                   .ends = begun});
  }
  return {*this, std::move(request), x, x, call};
}

}  // namespace chorale
