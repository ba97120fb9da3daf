#include "collectives/analysis/cost.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

std::int64_t addends(const Step& step) {
  if (step.kind == Kind::recv_reduce) return static_cast<std::int64_t>(step.peers.size());
  return step.kind == Kind::reduce ? static_cast<std::int64_t>(step.src.size()) - 1 : 0;
}

// Events at the same time are handled in this order: first all arrivals and ends, then the beginnings of steps.
enum class What { arrives, is_in, over, may_begin };

struct CostEvent {
  double time;
  What what;
  int rank, step;        // for a message: the receiver and the receiving step
  std::size_t transfer;  // the message, or 0
  bool operator>(const CostEvent& other) const {
    return std::tie(time, what, rank, step, transfer) >
           std::tie(other.time, other.what, other.rank, other.step, other.transfer);
  }
};

class CostSimulation {
 public:
  CostSimulation(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price)
      : ranks_(ranks), element_bytes_(element_bytes), price_(price), graph_(ranks), now_at_(ranks.size()) {
    for (const Schedule& schedule : ranks) {
      result_.spans.emplace_back(schedule.steps.size());
      progress_.emplace_back(schedule.steps.size());
    }
    for (const Message& message : graph_.messages()) {
      of(message.from, message.send).messages.push_back(message);
      ++of(message.to, message.recv).missing;
    }
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (std::size_t s = 0; s < ranks[r].steps.size(); ++s) {
        const int rank = static_cast<int>(r), step = static_cast<int>(s);
        Progress& own = of(rank, step);
        own.missing += 1 + graph_.steps(r)[s].waits;
        // Sends first to the ranks after this rank, then to the ranks before this rank.
        std::rotate(own.messages.begin(),
                    std::find_if(own.messages.begin(), own.messages.end(), [&](const Message& m) { return m.to > rank; }),
                    own.messages.end());
        arrived(0, rank, step);
      }
  }

  Timeline run() {
    while (!events_.empty()) {
      const CostEvent event = events_.top();
      events_.pop();
      result_.seconds = std::max(result_.seconds, event.time);
      if (event.what == What::arrives) {
        double& port = now_at_[index(event.rank)].port_in;
        port = std::max(event.time, port) + bytes(result_.transfers[event.transfer].message) * price_.beta;
        result_.transfers[event.transfer].is_in = port;
        events_.push({port, What::is_in, event.rank, event.step, event.transfer});
      } else if (event.what == What::is_in) {
        arrived(event.time, event.rank, event.step);
      } else if (event.what == What::over) {
        ++over_;
        for (const int next : links(event.rank, event.step).dependents) arrived(event.time, event.rank, next);
      } else {
        begin(event.time, event.rank, event.step);
      }
    }
    std::size_t all = 0;
    for (const Schedule& schedule : ranks_) all += schedule.steps.size();
    require(over_ == all, "{} of {} steps wait forever, so the schedule's time cannot be predicted", all - over_, all);
    return std::move(result_);
  }

 private:
  struct Progress {
    int missing = 0;                // number of steps and messages that this step waits for, plus 1 for the start
    std::vector<Message> messages;  // the messages that this step sends, if any
  };
  struct Free {  // the times at which a rank's ports and processor become free again
    double port_out = 0, port_in = 0, arithmetic = 0;
  };

  Progress& of(int rank, int step) { return progress_[index(rank)][index(step)]; }
  const StepLinks& links(int rank, int step) const { return graph_.steps(index(rank))[index(step)]; }
  const Step& step_of(int rank, int step) const { return ranks_[index(rank)].steps[index(step)]; }
  double bytes(const Message& m) const {
    return static_cast<double>(step_of(m.from, m.send).src.at(0).count * element_bytes_);
  }

  void arrived(double time, int rank, int step) {  // one dependency of the step is satisfied
    if (--of(rank, step).missing == 0) events_.push({time, What::may_begin, rank, step, 0});
  }

  void begin(double time, int rank, int step) {
    for (const int next : links(rank, step).successors) arrived(time, rank, next);
    Free& free = now_at_[index(rank)];
    Timeline::Span& span = result_.spans[index(rank)][index(step)];
    const double work = static_cast<double>(addends(step_of(rank, step)) * step_of(rank, step).dst.count * element_bytes_);
    span = {time, time};
    if (!of(rank, step).messages.empty()) span.begins = std::max(time, free.port_out);
    for (const Message& message : of(rank, step).messages) {
      const double leaves = std::max(time, free.port_out);
      span.ends = free.port_out = leaves + bytes(message) * price_.beta;
      events_.push({leaves + price_.alpha, What::arrives, message.to, message.recv, result_.transfers.size()});
      result_.transfers.push_back({message, leaves, 0});
    }
    if (work > 0) {
      span.begins = std::max(time, free.arithmetic);
      span.ends = free.arithmetic = span.begins + work * price_.gamma;
    }
    events_.push({span.ends, What::over, rank, step, 0});
  }

  const std::vector<Schedule>& ranks_;
  std::int64_t element_bytes_;
  Price price_;
  StepGraph graph_;
  std::vector<std::vector<Progress>> progress_;
  std::vector<Free> now_at_;
  std::priority_queue<CostEvent, std::vector<CostEvent>, std::greater<>> events_;
  std::size_t over_ = 0;
  Timeline result_;
};

}  // namespace

Volume volume(const Schedule& schedule, std::int64_t element_bytes) {
  Volume sum;
  for (const Step& step : schedule.steps) {
    const auto peers = static_cast<std::int64_t>(step.peers.size());
    if (step.kind == Kind::send) {
      sum.messages_sent += peers;
      sum.bytes_sent += peers * step.src.at(0).count * element_bytes;
    } else {
      const std::int64_t bytes = step.dst.count * element_bytes, loads = peers + static_cast<std::int64_t>(step.src.size());
      sum.bytes_touched += (loads + 1) * bytes;
    }
    sum.bytes_reduced += addends(step) * step.dst.count * element_bytes;
  }
  return sum;
}

Timeline simulate(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price) {
  return CostSimulation(ranks, element_bytes, price).run();
}

double predict(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price) {
  return simulate(ranks, element_bytes, price).seconds;
}

double predict_mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price) {
  std::int64_t touched = 0, most_reduced = 0;
  for (const Schedule& schedule : ranks) {
    const Volume own = volume(schedule, element_bytes);
    touched += own.bytes_touched;
    most_reduced = std::max(most_reduced, own.bytes_reduced);
  }
  const std::int64_t cached = std::min(touched, bytes_in_caches);
  const double at_full_price = static_cast<double>(touched - cached) + cached_share * static_cast<double>(cached);
  return find_rounds(ranks).count * price.alpha + at_full_price * price.beta +
         static_cast<double>(most_reduced) * price.gamma;
}

}  // namespace chorale
