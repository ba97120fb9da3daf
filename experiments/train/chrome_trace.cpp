#include "experiments/train/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace chorale::train {
namespace {

using nlohmann::ordered_json;

// Track numbers are larger than any rank number. If a track had the same number as its process, viewers would take the track
// for the main thread and show it first.
constexpr int steps_track = 1'000'000, passes_track = steps_track + 1, layers_track = steps_track + 2,
              kernels_track = steps_track + 3, pipeline_track = steps_track + 4, first_axis_track = steps_track + 5;

class Events {
 public:
  explicit Events(double origin) : origin_(origin) {}

  void rank(std::int64_t rank, const RankTrace& trace) {
    rank_ = rank;
    const auto first = static_cast<std::ptrdiff_t>(events_.size());
    tracks_ = {{steps_track, "steps"}, {passes_track, "passes"}};
    for (const Trace::Span& span : trace.spans) add(span);
    for (const Trace::Inner& inner : trace.inner) add(inner);
    for (std::size_t i = 0; i < trace.calls.size(); ++i) add(trace.calls[i], i);
    std::ranges::stable_sort(events_.begin() + first, events_.end(), {}, &Event::begins);
    name("process_name", steps_track, {{"name", trace.name}});
    name("process_sort_index", steps_track, {{"sort_index", rank}});
    for (const auto& [track, words] : tracks_) {
      name("thread_name", track, {{"name", words}});
      name("thread_sort_index", track, {{"sort_index", track}});
    }
  }

  // Writes one event per line. Viewers show `facts` as the file's metadata: the run, and the number of events that each rank
  // left out.
  std::string text(const ordered_json& facts) const {
    std::string all = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + facts.dump() + ",\"traceEvents\":[\n";
    for (const std::string& line : names_) all += line + ",\n";
    for (const Event& event : events_) all += event.line + ",\n";
    all.erase(all.size() - 2);
    return all + "\n]}\n";
  }

 private:
  struct Event {
    std::int64_t begins = 0;
    std::string line;
  };

  std::int64_t nanoseconds(double time) const { return std::llround((time - origin_) * 1e9); }
  static double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

  void name(const char* what, int track, const ordered_json& args) {
    names_.push_back(ordered_json{{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", track}, {"args", args}}.dump());
  }

  // Both ends are rounded to nanoseconds first, so adjacent events stay adjacent and nested events stay nested.
  void complete(const std::string& name, const char* category, int track, double begins, double ends,
                const ordered_json& args) {
    const std::int64_t from = nanoseconds(begins), to = nanoseconds(ends);
    events_.push_back({from, ordered_json{{"name", name},
                                          {"cat", category},
                                          {"ph", "X"},
                                          {"ts", microseconds(from)},
                                          {"dur", microseconds(to - from)},
                                          {"pid", rank_},
                                          {"tid", track},
                                          {"args", args}}
                                 .dump()});
  }

  void add(const Trace::Span& span) {
    static constexpr const char* words[] = {"step",    "data",      "forward",          "backward",
                                            "weights", "optimizer", "wait for the file"};
    const char* const what = words[static_cast<std::size_t>(span.kind)];
    ordered_json args{{"step", span.step}};
    if (span.kind == Trace::Kind::step)
      return complete(fmt::format("step {}", span.step), "step", steps_track, span.begins, span.ends, args);
    if (span.micro_batch >= 0) args.update({{"micro_batch", span.micro_batch}, {"chunk", span.chunk}});
    const std::string name = span.micro_batch < 0 ? what : fmt::format("{} {}", what, span.micro_batch);
    complete(name, "compute", passes_track, span.begins, span.ends, args);
  }

  void add(const Trace::Inner& inner) {
    ordered_json args{{"step", inner.step}};
    if (!inner.kernel) {
      tracks_[layers_track] = "layers";
      return complete(inner.name, "layer", layers_track, inner.begins, inner.ends, args);
    }
    tracks_[kernels_track] = "kernels";
    if (inner.m > 0) args["shape"] = fmt::format("{}×{}×{}{}", inner.m, inner.n, inner.k, in_batch(inner.batch));
    args["bytes"] = inner.bytes;
    if (inner.flops > 0) args["flops"] = inner.flops;
    const double seconds = inner.ends - inner.begins;
    if (seconds > 0) args["gb_per_s"] = std::round(inner.bytes / seconds / 1e7) / 100;
    if (seconds > 0 && inner.flops > 0) args["gflop_per_s"] = std::round(inner.flops / seconds / 1e7) / 100;
    complete(inner.name, "kernel", kernels_track, inner.begins, inner.ends, args);
  }
  static std::string in_batch(std::int64_t batch) { return batch > 1 ? fmt::format(", {} times", batch) : ""; }

  // The track of the call's axis shows when the rank was occupied with the call. A blocking call is one event on this track;
  // a started (nonblocking) call has events only for its launch and its wait. A started call also has an event on a separate
  // track, from its launch until the rank knows that the call has finished.
  void add(const Trace::Call& call, std::size_t number) {
    const char* const category = call.message ? "pipeline" : "communication";
    const int track = track_of(call);
    const ordered_json args{{"step", call.step},           {"bytes", call.bytes},
                            {"algorithm", call.algorithm}, {"backend", call.backend},
                            {"dtype", call.dtype},         {"exposed_us", std::round(call.exposed() * 1e9) / 1e3}};
    if (!call.started) return complete(call.operation, category, track, call.begins, call.ends, args);
    if (call.launched > call.begins) complete("start " + call.operation, category, track, call.begins, call.launched, args);
    complete("wait " + call.operation, category, track, call.waited, call.ends, args);
    for (const auto& [phase, time] : {std::pair{"b", call.begins}, std::pair{"e", call.ends}}) {
      const std::int64_t at = nanoseconds(time);
      ordered_json event{{"name", call.axis + " " + call.operation},
                         {"cat", "overlapped"},
                         {"ph", phase},
                         {"ts", microseconds(at)},
                         {"pid", rank_},
                         {"tid", track},
                         {"id", fmt::format("{}.{}", rank_, number)}};
      if (*phase == 'b') event["args"] = args;
      events_.push_back({at, event.dump()});
    }
  }

  // Messages pass between stages of the pipeline; collectives run on an axis.
  int track_of(const Trace::Call& call) {
    if (call.message) {
      tracks_[pipeline_track] = "pipeline";
      return pipeline_track;
    }
    const auto known = std::find(axes_.begin(), axes_.end(), call.axis);
    const int track = first_axis_track + static_cast<int>(known - axes_.begin());
    if (known == axes_.end()) axes_.push_back(call.axis);
    tracks_[track] = "communication " + call.axis;
    return track;
  }

  double origin_;
  std::int64_t rank_ = 0;
  std::map<int, std::string> tracks_;  // names of the current rank's tracks; the key is the track number
  std::vector<std::string> axes_;      // axes seen on any rank; an axis has the same track number on all ranks
  std::vector<std::string> names_;
  std::vector<Event> events_;
};

double origin_of(const std::vector<RankTrace>& traces) {
  double first = INFINITY;
  for (const RankTrace& trace : traces) {
    for (const Trace::Span& span : trace.spans) first = std::min(first, span.begins);
    for (const Trace::Inner& inner : trace.inner) first = std::min(first, inner.begins);
    for (const Trace::Call& call : trace.calls) first = std::min(first, call.begins);
  }
  return first;
}

}  // namespace

std::string chrome_trace(const std::vector<RankTrace>& ranks, const std::string& run_id) {
  Events events(origin_of(ranks));
  ordered_json left_out = ordered_json::object();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    events.rank(static_cast<std::int64_t>(rank), ranks[rank]);
    if (ranks[rank].left_out > 0) left_out[fmt::format("rank {}", rank)] = ranks[rank].left_out;
  }
  return events.text({{"run_id", run_id}, {"left_out", left_out}});
}

}  // namespace chorale::train
