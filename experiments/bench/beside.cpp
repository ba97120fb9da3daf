#include "experiments/bench/beside.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/bench/measure.hpp"
#include "experiments/common/statistics.hpp"
#include "src/base/index.hpp"
#include "src/memory/on_host.hpp"

namespace chorale::bench {
namespace {

constexpr std::size_t parts = 4;  // the times of a repetition, in the order of BesideTimes: alone, call, slowed, both
constexpr std::int64_t products_timed = 64, most_products = 100'000;

}  // namespace

double hidden_share(double call_alone, double products_alone, double both) {
  return (call_alone + products_alone - both) / std::min(call_alone, products_alone);
}

ProductsBeside::ProductsBeside() {
  for (std::vector<float>* matrix : {&x_, &w_, &y_}) matrix->assign(index(product_edge * product_edge), 0.5f);
}

void ProductsBeside::multiply() {
  library_.run({.m = product_edge, .n = product_edge, .k = product_edge}, x_.data(), w_.data(), nullptr, y_.data());
}

// Collective. Returns the number of products that take rank 0 about `seconds`.
std::int64_t Bench::products_for(double seconds) {
  const Clock& clock = group_.clock();
  std::vector<double> times;
  for (std::int64_t i = 0; i < products_timed; ++i) {
    const double started = clock.seconds();
    products_->multiply();
    times.push_back(clock.seconds() - started);
  }
  const double one = team_.broadcast(std::max(median_of(times), 1e-9));
  return std::clamp<std::int64_t>(std::llround(seconds / one), 1, most_products);
}

// This rank's times of one repetition: the products alone, then the call beside the products.
void Bench::run_beside(Communicator& communicator, const Call& call, std::int64_t products, std::vector<double>& times) {
  const Clock& clock = group_.clock();
  team_.barrier();
  double started = clock.seconds();
  for (std::int64_t i = 0; i < products; ++i) products_->multiply();
  times.push_back(clock.seconds() - started);
  team_.barrier();
  started = clock.seconds();
  Request request = communicator.start(call);
  double over = -1;
  for (std::int64_t i = 0; i < products; ++i) {
    products_->multiply();
    if (over < 0 && request.test()) over = clock.seconds() - started;
  }
  const double slowed = clock.seconds() - started;
  if (over < 0) {
    request.wait();
    over = clock.seconds() - started;
  }
  times.insert(times.end(), {over, slowed, std::max(over, slowed)});
}

// Collective. `series`: the row's calls alone, on rank 0. Adds the wrong elements of the checked calls to it.
void Bench::measure_beside(const BenchCase& row, Series& series) {
  const Problem mine = row.problem().at(group_.rank());
  Communicator& communicator = communicator_for(row);
  if (!products_) products_.emplace();
  const double alone = team_.broadcast(series.slowest.empty() ? 0 : median_of(series.slowest));
  BesideTimes found{.products = products_for(alone)};
  double average = 3 * alone;  // seconds of a repetition
  std::int64_t repetitions = repetitions_for(average, row.bytes()), next_look = 0;
  std::vector<double> times;
  double wrong = 0;
  for (std::int64_t i = 0; i < how_.warm_up; ++i) run_beside(communicator, call_of(row, mine, i), found.products, times);
  times.clear();
  const double began = group_.clock().seconds();
  for (std::int64_t i = 0; i < repetitions; ++i) {
    if (i == next_look) {
      const std::optional<double> so_far = look(group_.clock().seconds() - began);
      if (!so_far) return;
      if (i > 0) average = *so_far / static_cast<double>(i);
      repetitions = std::clamp(repetitions_for(average, row.bytes()), i + 1, repetitions);
      next_look += calls_until_look(average, i);
    }
    const bool checked = how_.check && row.what != Collective::barrier && (i == 0 || i == repetitions - 1);
    const Values values = next_values(row);
    const Call call = call_of(row, mine, how_.warm_up + i);
    if (checked) prepare(values, call, mine);
    run_beside(communicator, call, found.products, times);
    if (checked)
      on_host(call.output, Use::read, [&](const Slice& output) {
        wrong += static_cast<double>(values.wrong(mine.rank, output, mine.output_home()));
      });
  }
  times.push_back(wrong);
  const std::vector<double> all = team_.gather(times);
  if (team_.rank() != 0) return;
  double* const medians[parts] = {&found.alone, &found.call, &found.slowed, &found.both};
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<double> slowest(index(repetitions), 0);
    for (std::size_t rank = 0; rank < index(team_.size()); ++rank)
      for (std::size_t i = 0; i < slowest.size(); ++i)
        slowest[i] = std::max(slowest[i], all[rank * times.size() + i * parts + part]);
    *medians[part] = median_of(slowest);
  }
  for (std::size_t end = times.size(); end <= all.size(); end += times.size())
    if (series.wrong >= 0) series.wrong += static_cast<std::int64_t>(all[end - 1]);
  series.beside = found;
}

}  // namespace chorale::bench
