#include "parallel/mesh/axis.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/error.hpp"

namespace chorale {

const char* operation_name(std::size_t operation) { return operation == messages ? "send" : collective_names[operation]; }

void Account::add(std::size_t operation, const Sent& sent) {
  Entry& entry = entries[operation];
  ++entry.calls;
  entry.bytes = sent.bytes < 0 || entry.bytes < 0 ? -1 : entry.bytes + sent.bytes;
  entry.crossing = sent.crossing < 0 || entry.crossing < 0 ? -1 : entry.crossing + sent.crossing;
  entry.due += sent.due;
}

Axis::Pending::Pending(Axis& axis, Request request, const Tensor& input, const Tensor& output, std::int64_t number)
    : axis_(&axis), input_(input), output_(output), request_(std::move(request)), number_(number) {
  axis.time_.call_begins(axis.now());
}

Axis::Pending& Axis::Pending::operator=(Pending&& other) noexcept {
  std::swap(axis_, other.axis_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(request_, other.request_);
  std::swap(number_, other.number_);
  return *this;
}

void Axis::Pending::wait() {
  if (!axis_) return;
  axis_->wait_for(request_, number_);
  axis_ = nullptr;
  input_ = output_ = {};
}

bool Axis::Pending::test() {
  if (axis_ && axis_->test(request_, number_)) {
    axis_ = nullptr;
    input_ = output_ = {};
  }
  return !axis_;
}

bool Axis::Vote::any() {
  request_.wait();
  return *yes_ != 0;
}

std::int64_t Axis::due_of(const Call& call) const {
  if (call.what != Collective::all_to_all || call.counts.empty()) return 0;
  const std::int64_t all = std::accumulate(call.counts.begin(), call.counts.end(), std::int64_t{0});
  return (all - call.counts[static_cast<std::size_t>(rank_)]) * static_cast<std::int64_t>(size_of(call.input.dtype));
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
// row, the call is counted, but nothing is communicated. So the number of calls does not depend on how tokens are routed to
// experts.
bool Axis::done_alone(const Call& call) {
  const bool moves_nothing = std::ranges::all_of(call.everybodys, [](std::int64_t number) { return number == 0; });
  if (call.input.count == 0 && call.output.count == 0 && moves_nothing) {
    if (!call.everybodys.empty() && size_ > 1) count(static_cast<std::size_t>(call.what), {});
    return true;
  }
  if (size_ > 1) return false;
  copy(call.input, call.output);
  return true;
}

void Axis::run(const TensorCall& call) {
  if (!done_alone(call)) carry_out(call);
}

Axis::Pending Axis::start(const TensorCall& call) { return done_alone(call) ? Pending() : begin(call); }

Axis::Pending Axis::start_send(const Tensor& x, int to) {
  const std::vector<int>& on = hosts();
  const bool crosses = !on.empty() && on[static_cast<std::size_t>(to)] != on[static_cast<std::size_t>(rank_)];
  count(messages, {x.bytes(), crosses ? x.bytes() : 0});
  return begin_send(x, to);
}

}  // namespace chorale
