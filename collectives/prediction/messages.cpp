#include <algorithm>

#include "collectives/prediction/call_graph.hpp"
#include "collectives/prediction/prediction.hpp"
#include "collectives/schedule/step_graph.hpp"
#include "src/base/index.hpp"

namespace chorale::prediction {
namespace {

class MessageCall {
 public:
  MessageCall(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
              const Prices& between, const WorkBeside& beside)
      : ranks_(ranks),
        element_(static_cast<double>(element_bytes)),
        site_(site),
        within_(within),
        between_(between),
        call_(std::ranges::max(site.host_of) > 0 ? between : within),
        steps_(ranks),
        graph_(ranks, element_bytes, site, call_),
        posts_(ranks.size()),
        overs_(ranks.size()) {
    std::vector<int> begins;
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      const int begin = begins.emplace_back(graph_.add(r, call_.call));
      for (const Step& step : ranks[index(r)].steps) add(r, begin, step);
      ends_.push_back(graph_.add(r, 0));
    }
    for (const Message& message : steps_.messages()) add(message);
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) graph_.add(r, begins[index(r)], beside);
  }

  double seconds() { return graph_.seconds(); }

 private:
  const Prices& level(int a, int b) const { return site_.host_of[index(a)] == site_.host_of[index(b)] ? within_ : between_; }
  double bytes(std::int64_t elements) const { return static_cast<double>(elements) * element_; }

  // A step is posted, its messages arrive, and then the step performs its sum or copy. The workspace that receives the
  // messages stays in the receiver's caches.
  void add(int r, int begin, const Step& step) {
    double posting = call_.step;
    for (const int peer : step.peers) {
      const Prices& p = level(r, peer);
      posting += p.message;
      if (step.kind == Kind::send && bytes(step.src[0].count) <= p.eager_bytes)
        posting += bytes(step.src[0].count) * p.eager;
    }
    const int post = graph_.add(r, posting);
    int over = post;
    if (step.kind != Kind::send && step.kind != Kind::recv) {
      const auto sources = static_cast<double>(step.peers.size() + step.src.size());
      over = graph_.add(r, bytes(step.dst.count) * (sources - 1) * call_.sum);
      graph_.after(post, over);
      for (const Range& own : step.src) graph_.accesses(over, r, own, Access::add);
      graph_.accesses(over, r, step.dst, Access::store);
    }
    graph_.after(begin, post);
    for (const int before : step.after) graph_.after(overs_[index(r)][index(before)], post);
    posts_[index(r)].push_back(post);
    overs_[index(r)].push_back(over);
  }

  // A message has completed when the receiver has copied the data. The transfer of a long message begins only when both ends
  // are posted. The send of a long message has completed when the receiver has the data.
  void add(const Message& message) {
    const Prices& p = level(message.from, message.to);
    const Step& sender = ranks_[index(message.from)].steps[index(message.send)];
    const Step& receiver = ranks_[index(message.to)].steps[index(message.recv)];
    const double size = bytes(sender.src[0].count);
    const bool is_long = size > p.eager_bytes, is_far = &p == &between_;
    const int send = posts_[index(message.from)][index(message.send)];
    const int recv = posts_[index(message.to)][index(message.recv)];
    const int arrive = graph_.add(message.to, p.message + size * p.copy);
    if (is_long && !is_far) graph_.accesses(arrive, message.from, sender.src[0], Access::load);
    if (receiver.kind == Kind::recv) graph_.accesses(arrive, message.to, receiver.dst, Access::store);
    int from = send;
    if (is_far) {
      from = graph_.add_transfer(message.from, message.to, size * p.link);
      graph_.after(send, from, is_long ? p.handshake : 0);
      if (is_long) graph_.after(recv, from, p.latency);
    }
    graph_.after(from, arrive, p.latency + (is_long && !is_far ? p.handshake : 0));
    graph_.after(recv, arrive);
    release(message.to, message.recv, arrive, 0);
    if (is_long) release(message.from, message.send, arrive, p.latency);
  }

  // Makes the steps that wait for this step also wait for `work`.
  void release(int rank, int step, int work, double latency) {
    const int over = overs_[index(rank)][index(step)], post = posts_[index(rank)][index(step)];
    graph_.after(work, ends_[index(rank)], latency);
    if (over != post) return graph_.after(work, over, latency);
    for (const int next : steps_.steps(index(rank))[index(step)].dependents)
      graph_.after(work, posts_[index(rank)][index(next)], latency);
  }

  const std::vector<Schedule>& ranks_;
  double element_;
  Site site_;
  const Prices &within_, &between_, &call_;
  StepGraph steps_;
  CallGraph graph_;
  // Indexed by rank and step: the first work item of the step, which posts its messages, and the last work item of the step.
  std::vector<std::vector<int>> posts_, overs_;
  std::vector<int> ends_;
};

}  // namespace

double messages(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
                const Prices& between, const WorkBeside& beside) {
  return MessageCall(ranks, element_bytes, site, within, between, beside).seconds();
}

}  // namespace chorale::prediction
