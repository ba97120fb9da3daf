#include "parallel/mesh/trace.hpp"

#include <utility>

namespace chorale {

void Trace::record(std::int64_t first, std::int64_t last, std::int64_t most) {
  first_ = first;
  last_ = last;
  most_ = most;
}

bool Trace::takes(std::size_t so_many) {
  if (!on_) return false;
  const bool room = static_cast<std::int64_t>(so_many) < most_;
  left_out_ += !room;
  return room;
}

void Trace::add(Span span) {
  if (!takes(spans_.size())) return;
  span.step = step_;
  spans_.push_back(span);
}

void Trace::add(Inner inner) {
  if (!takes(inner_.size())) return;
  inner.step = step_;
  inner_.push_back(std::move(inner));
}

std::int64_t Trace::add(Call call) {
  if (!takes(calls_.size())) return -1;
  call.step = step_;
  calls_.push_back(std::move(call));
  return static_cast<std::int64_t>(calls_.size()) - 1;
}

void Trace::over(std::int64_t call, double waited, double ends) {
  if (call < 0) return;
  calls_[static_cast<std::size_t>(call)].waited = waited;
  calls_[static_cast<std::size_t>(call)].ends = ends;
}

}  // namespace chorale
