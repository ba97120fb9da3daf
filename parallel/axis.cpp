#include "parallel/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "collectives/algorithms.hpp"

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
  const double start = axis_->now();
  axis_->time_->wait_begins(start);
  request_.wait();
  const double over = axis_->now();
  axis_->time_->wait_ends(over);
  axis_->time_->call_ends(over);
  if (axis_->trace_) axis_->trace_->over(call_, start, over);
  axis_ = nullptr;
  input_ = output_ = {};
}

bool Axis::Pending::test() {
  if (axis_ && request_.test()) wait();
  return !axis_;
}

Axis::Axis(std::string name, Communicator group, CommunicationTime& time)
    : name_(std::move(name)), rank_(group.rank()), size_(group.size()), group_(std::move(group)), time_(&time) {}

Axis::Axis(std::string name, int rank, int size, std::string backend, const std::string& algorithm,
           std::shared_ptr<const Selector> selector, CommunicationTime& time)
    : name_(std::move(name)),
      rank_(rank),
      size_(size),
      backend_(std::move(backend)),
      algorithm_(algorithm.empty() ? "auto" : algorithm),
      selector_(std::move(selector)),
      time_(&time) {}

void Axis::add(std::size_t operation, std::int64_t bytes) {
  Account::Entry& entry = account_.entries[operation];
  ++entry.calls;
  entry.bytes = bytes < 0 || entry.bytes < 0 ? -1 : entry.bytes + bytes;
}

// As Communicator would choose and plan it.
std::int64_t Axis::foreseen(const Wish& wish) {
  if (algorithm_ == "native") return -1;
  const std::int64_t total = wish.what == Collective::all_gather ? wish.output.count() : wish.input.count();
  const std::int64_t element = size_of(wish.input.dtype());
  const bool cut = wish.what == Collective::all_gather || wish.what == Collective::reduce_scatter;
  const bool in_place = (!cut || total >= size_) && wish.input.storage() == wish.output.storage();
  Problem problem = Problem::even(wish.what, total, size_, wish.root, in_place);
  const bool native_too = native_agrees(problem, wish.input.dtype(), wish.op);
  const auto [place, is_new] = bytes_.try_emplace({wish.what, total, element, in_place, native_too, wish.root});
  if (is_new) {
    problem.rank = rank_;
    const bool chosen = algorithm_ != "auto" && find_algorithm(wish.what, algorithm_);
    const Algorithm* const algorithm = find_algorithm(
        wish.what, chosen ? algorithm_ : selector_->choose(backend_, problem, total * element, native_too).algorithm);
    if (algorithm && !fits(*algorithm, problem))
      usage_error(fmt::format("{} {} does not fit", name_of(wish.what), algorithm->name),
                  fmt::format("axis {} has {} ranks", name_, size_), "choose another algorithm, or auto");
    place->second = algorithm ? algorithm->plan(problem).elements_sent() * element : -1;
  }
  return place->second;
}

bool Axis::done_alone(const Wish& wish) const {
  if (wish.input.count() == 0 && wish.output.count() == 0) return true;
  if (size_ > 1) return false;
  copy(wish.input.slice(), wish.output.slice());
  return true;
}

template <class Do>
std::int64_t Axis::account_for(const Wish& wish, bool started, Do&& call) {
  const double begun = now();
  time_->wait_begins(begun);
  const std::int64_t before = group_.traffic().bytes_sent;
  call();
  const std::int64_t after = group_.traffic().bytes_sent;
  add(static_cast<std::size_t>(wish.what), after < 0 ? -1 : after - before);
  const double done = now();
  time_->wait_ends(done);
  if (!writes()) return -1;
  return trace_->add(Trace::Call{.axis = name_,
                                 .operation = name_of(wish.what),
                                 .algorithm = group_.choice(wish.call()).algorithm,
                                 .backend = group_.backend(),
                                 .dtype = name_of(wish.input.dtype()),
                                 .bytes = std::max(wish.input.bytes(), wish.output.bytes()),
                                 .started = started,
                                 .begins = begun,
                                 .launched = done,
                                 .waited = done,
                                 .ends = done});
}

void Axis::run(const Wish& wish) {
  if (done_alone(wish)) return;
  if (pretends()) return add(static_cast<std::size_t>(wish.what), foreseen(wish));
  account_for(wish, false, [&] { group_.run(wish.call()); });
}

Axis::Pending Axis::start(const Wish& wish) {
  if (done_alone(wish)) return {};
  Request request;
  std::int64_t call = -1;
  if (pretends())
    add(static_cast<std::size_t>(wish.what), foreseen(wish));
  else
    call = account_for(wish, true, [&] { request = group_.start(wish.call()); });
  return {*this, std::move(request), wish.input, wish.output, call};
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

Axis::Pending Axis::start_send(const Tensor& x, int to) {
  add(messages, x.bytes());
  return message("send", pretends() ? Request() : group_.start_send(x.slice(), to), x);
}

Axis::Pending Axis::start_recv(const Tensor& x, int from) {
  return message("recv", pretends() ? Request() : group_.start_recv(x.slice(), from), x);
}

// No algorithm: it goes as the backend carries it. What its launch takes is in no account, so it is not exposed here either.
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
                                   .started = true,
                                   .begins = begun,
                                   .launched = begun,
                                   .waited = begun,
                                   .ends = begun});
  }
  return {*this, std::move(request), x, x, call};
}

}  // namespace chorale
