#include "experiments/plan/published_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"

namespace chorale::plan {
namespace {

// The settings of a row. A setting that the table does not have is taken from the assumptions of the series.
class Settings {
 public:
  Settings(const PublishedSeries& series, const Row& row) : series_(series), row_(row) {}
  std::int64_t of(const std::string& name) const {
    if (const auto found = find(name)) return *found;
    usage_error("the table and its assumptions lack a setting", fmt::format("{}: {}", series_.name, name),
                "add the column, or the key to [series.given] (docs/planner.md)");
  }
  std::int64_t of(const std::string& name, std::int64_t missing) const { return find(name).value_or(missing); }
  std::optional<std::int64_t> find(const std::string& name) const {
    for (const auto* values : {&row_, &series_.given})
      if (const auto found = values->find(name); found != values->end()) return std::llround(found->second);
    return std::nullopt;
  }

 private:
  const PublishedSeries& series_;
  const Row& row_;
};

ModelShape shape_of(const PublishedSeries& series, const Settings& s) {
  ModelShape shape;
  shape.family = series.family;
  shape.width = s.of("hidden");
  shape.layers = s.of("layers");
  shape.heads = s.of("heads");
  shape.groups = s.of("groups", shape.heads);
  shape.ffn = s.of("ffn", 4 * shape.width);
  shape.sequence = s.of("sequence");
  shape.vocabulary = s.of("vocabulary");
  shape.dropout = series.dropout;
  shape.tied = !shape.llama();
  shape.equal_parts = true;
  return shape;
}

// The settings for one possible run of a row.
struct Attempt {
  std::int64_t micro_batch, interleave;
};

StepRequest request_of(const PublishedSeries& series, const System& machine, const Settings& s, const Attempt& attempt) {
  StepRequest request{.system = machine, .products = series.products};
  request.system.software = series.software;
  TrainingOptions& o = request.plan.options;
  o.shape = shape_of(series, s);
  o.compute = series.type == "f16" ? DType::f16 : DType::bf16;
  // Selective recomputation recomputes the attention scores (Korthikanti et al.), which fused attention never stores.
  o.recompute = series.recompute == Recompute::full ? Recompute::full : Recompute::none;
  request.system.software.recomputes_attention = series.recompute == Recompute::selective;
  o.batch.micro = attempt.micro_batch;
  o.batch.global = s.of(s.find("batch") ? "batch" : "sequences");
  if (series.reduces_in_bf16) o.replicas.gradient_sums = DType::bf16;
  if (series.one_bucket) o.replicas.bucket_bytes = std::int64_t{1} << 40;
  const std::int64_t t = s.of("t", 1), p = s.of("p", 1), c = s.of("cp", 1);
  const std::int64_t gpus = s.find("gpus").value_or(t * p * c * s.of("d", 1)), d = gpus / (t * p * c);
  if (t * p * c * d != gpus || s.of("d", d) != d)
    usage_error("the ranks of a row do not agree with its layout",
                fmt::format("{} ranks, t {}, p {}, cp {}, d {}", gpus, t, p, c, s.of("d", d)), "correct the row");
  if (const auto given = s.find("micro_batches"); given && *given * d * attempt.micro_batch != o.batch.global)
    usage_error(
        "the micro-batches of a row do not agree with its batch",
        fmt::format("{} micro-batches of {} on {} replicas, {} sequences", *given, attempt.micro_batch, d, o.batch.global),
        "correct the row");
  std::string word = fmt::format("dp{}.tp{}.pp{}.cp{}.z{}", d, t, p, c, series.zero);
  if (series.sequence_parallel && t > 1) word += ".sp";
  if (attempt.interleave > 1) word += fmt::format(".v{}", attempt.interleave);
  request.plan.layout = parse_layout(word, gpus);
  request.plan.backends = {{"", "mpi"}};
  // Long vectors use ring algorithms. The few values that all ranks exchange at the end of a step use the fastest algorithm.
  request.plan.algorithms = {{"", "ring"}, {"world", "auto"}};
  request.plan.selector = std::make_shared<const Selector>();
  return request;
}

// `chosen_by_us`: the interleaving is not published. In this case, all chunks must have equally many layers, and an
// interleaved schedule needs complete groups of micro-batches.
bool is_legal(const Settings& s, const StepRequest& request, bool chosen_by_us) {
  const TrainingOptions& o = request.plan.options;
  const Layout& l = request.plan.layout;
  const std::int64_t sequences = l.replicas() * o.batch.micro, micro_batches = o.batch.global / sequences;
  if (o.batch.global % sequences != 0) return false;
  if (!chosen_by_us) return true;
  return s.of("layers") % (l.stages() * l.chunks) == 0 && (l.chunks == 1 || micro_batches % l.stages() == 0);
}

// An interleaved schedule takes micro-batches in groups; the group size is the number of stages. Some programs also accept
// other numbers of micro-batches. Returns the nearest smaller number that the schedule accepts, or the smallest one.
std::int64_t accepted_micro_batches(const PlanRequest& request) {
  const std::int64_t number = micro_batches_of(request.options, request.layout), stages = request.layout.stages();
  const std::int64_t rest = request.layout.chunks > 1 ? number % stages : 0;
  return rest == 0 ? number : std::max(stages, number - rest);
}

// The time grows linearly with the number of micro-batches, so it is interpolated or extrapolated from two numbers that the
// schedule accepts.
double seconds_of(const StepRequest& request) {
  const Layout& l = request.plan.layout;
  const std::int64_t number = micro_batches_of(request.plan.options, l), near = accepted_micro_batches(request.plan);
  if (near == number) return predict_step(request).seconds;
  const auto seconds = [&](std::int64_t micro_batches) {
    StepRequest other = request;
    other.plan.options = with_micro_batches(std::move(other.plan.options), l, micro_batches);
    return predict_step(other).seconds;
  };
  const std::int64_t stages = l.stages();
  const double first = seconds(near), more = seconds(near + stages);
  return first + static_cast<double>(number - near) * (more - first) / static_cast<double>(stages);
}

// Returns the maximum memory over the ranks: the planned bytes, plus the attention scores if attention is not fused.
double bytes_of(const StepRequest& request) {
  const TrainingOptions& o = request.plan.options;
  const double scores = static_cast<double>(o.batch.micro * o.shape.heads / request.plan.layout.shards()) *
                        static_cast<double>(o.shape.sequence * o.shape.sequence);
  PlanRequest accepted = request.plan;
  accepted.options = with_micro_batches(std::move(accepted.options), accepted.layout, accepted_micro_batches(request.plan));
  return static_cast<double>(plan_memory(accepted, 0).peak_bytes) +
         (request.system.software.fused_attention ? 0 : 5 * scores);
}

double ptdp_flops(const TrainingOptions& o) {
  const double h = static_cast<double>(o.shape.width), l = static_cast<double>(o.shape.layers);
  const double s = static_cast<double>(o.shape.sequence), v = static_cast<double>(o.shape.vocabulary);
  return 96 * static_cast<double>(o.batch.global) * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

PredictedRow predicted(const PublishedSeries& series, StepRequest request, const Attempt& attempt) {
  const TrainingOptions& o = request.plan.options;
  const Layout& l = request.plan.layout;
  const auto ranks = static_cast<double>(l.ranks());
  const double micro_batches = static_cast<double>(micro_batches_of(o, l));
  PredictedRow row{.seconds = seconds_of(request),
                   .micro_batch = attempt.micro_batch,
                   .layout = to_string(l),
                   .tokens_per_gpu = static_cast<double>(o.batch.global * o.shape.sequence) / ranks,
                   .flops_per_gpu = o.shape.flops_per_token() * static_cast<double>(o.batch.global * o.shape.sequence) *
                                    series.closed_form_flops / ranks,
                   .bubble = static_cast<double>(l.stages() - 1) / static_cast<double>(l.chunks),
                   .published_flops = ptdp_flops(o)};
  row.flops_per_gpu *= 1 + row.bubble / micro_batches;
  row.layer_passes = (micro_batches + row.bubble) * static_cast<double>(o.shape.layers) / static_cast<double>(l.stages());
  for (ProductRate& rate : request.system.accelerator.products) rate.reached /= 1.001;
  row.seconds_if_slow = seconds_of(request);
  return row;
}

}  // namespace

PredictedRow predict_row(const PublishedSeries& series, const System& machine, const Row& row) {
  const Settings s(series, row);
  std::vector<Attempt> attempts;
  const bool chooses_batch = !s.find("micro_batch"), chooses_chunks = !s.find("interleave");
  for (std::int64_t b = s.of("micro_batch", 1); b <= s.of("micro_batch", 64); b *= 2)
    for (const std::int64_t v : chooses_chunks ? series.interleave : std::vector<std::int64_t>{s.of("interleave")})
      if (v == 1 || s.of("p", 1) > 1) attempts.push_back({b, v});
  std::optional<std::pair<StepRequest, Attempt>> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Attempt& attempt : attempts) {
    const StepRequest request = request_of(series, machine, s, attempt);
    if (!is_legal(s, request, chooses_chunks)) continue;
    if (chooses_batch && bytes_of(request) > machine.accelerator.memory * 0.95) continue;
    const double seconds = attempts.size() == 1 ? 0 : seconds_of(request);
    if (seconds < least) {
      least = seconds;
      best = {request, attempt};
    }
  }
  if (!best)
    usage_error("a row of the table has no micro-batch that is legal and fits",
                fmt::format("{}: {} GPUs, {} sequences", series.name, s.of("gpus", 0),
                            s.of(s.find("batch") ? "batch" : "sequences")),
                "the batch must be a multiple of replicas times micro-batch; a machine with more memory holds more");
  return predicted(series, best->first, best->second);
}

double measured_seconds(const PublishedSeries& series, const Row& row, const PredictedRow& p) {
  const auto found = row.find(series.measured);
  if (found == row.end()) return std::numeric_limits<double>::quiet_NaN();
  if (series.measured.find("tflops") == std::string::npos)
    return series.measured.find("(ms)") == std::string::npos ? found->second : found->second / 1e3;
  return p.published_flops / (row.at("gpus") * found->second * 1e12);
}

}  // namespace chorale::plan
