#include "experiments/train/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/common/parse_number.hpp"
#include "experiments/train/chrome_trace.hpp"
#include "src/base/mpi.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {

// Spans (passes), layers, kernels and calls are sent to rank 0 as JSON, encoded as MessagePack.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Trace::Span, kind, step, micro_batch, chunk, begins, ends)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Trace::Inner, kernel, step, name, begins, ends, bytes, flops, m, n, k, batch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Trace::Call, step, axis, operation, algorithm, backend, dtype, bytes, message, started,
                                   begins, launched, waited, ends)

}  // namespace chorale

namespace chorale::train {
namespace {

std::string packed(Training& training) {
  const Mesh& mesh = training.mesh();
  const Trace& trace = training.account().trace();
  std::string name = fmt::format("rank {}:", mesh.world().rank());
  const AxisTable& axes = *mesh.layout().axes;
  for (std::size_t row = 0; row < axes.size(); ++row)
    if ((axes[row].grids & mesh.layout().grids()) && mesh.layout().size(row) > 1)
      name += fmt::format(" {}{}", axes[row].name, mesh.place()[row]);
  const nlohmann::json mine{{"name", name},
                            {"left_out", trace.left_out()},
                            {"spans", trace.spans()},
                            {"inner", trace.inner()},
                            {"calls", trace.calls()}};
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_msgpack(mine);
  return {bytes.begin(), bytes.end()};
}

RankTrace unpacked(const std::string& text, double clock_offset) {
  const auto theirs = nlohmann::json::from_msgpack(text);
  RankTrace trace{theirs["name"], theirs["left_out"], theirs["spans"], theirs["inner"], theirs["calls"]};
  for (Trace::Span& span : trace.spans) {
    span.begins += clock_offset;
    span.ends += clock_offset;
  }
  for (Trace::Inner& inner : trace.inner) {
    inner.begins += clock_offset;
    inner.ends += clock_offset;
  }
  for (Trace::Call& call : trace.calls)
    for (double* time : {&call.begins, &call.launched, &call.waited, &call.ends}) *time += clock_offset;
  return trace;
}

struct CommRow {
  std::int64_t rank = 0, seq = 0, step = 0;
  std::uint8_t axis = 0, op = 0, algorithm = 0, backend = 0, dtype = 0;
  std::int64_t bytes = 0;
  double t_start = 0, duration = 0, exposed = 0;
  static auto columns() {
    return std::tuple{
        column("rank", &CommRow::rank, "1", "rank of the world"),
        column("seq", &CommRow::seq, "1", "number of the call on its rank, in order of start"),
        column("step", &CommRow::step, "1", "training step"),
        column("axis", &CommRow::axis, "", "axis of the mesh"),
        column("op", &CommRow::op, "", "the collective, or send and recv"),
        column("algorithm", &CommRow::algorithm, "", "algorithm that ran"),
        column("backend", &CommRow::backend, "", "backend that carried the call"),
        column("dtype", &CommRow::dtype, "", "type of an element"),
        column("bytes", &CommRow::bytes, "byte", "size of the whole vector"),
        column("t_start", &CommRow::t_start, "s", "start, on rank 0's clock"),
        column("duration", &CommRow::duration, "s", "time from start until the rank knew that the call was over"),
        column("exposed", &CommRow::exposed, "s", "part of the duration in which the rank did nothing else")};
  }
};

void record_calls(Recorder& recorder, const std::vector<RankTrace>& traces) {
  std::map<std::string, std::vector<std::string>> words;  // the distinct strings of each column, in order of appearance
  const auto number = [&](const char* column, const std::string& word) {
    std::vector<std::string>& known = words[column];
    const auto place = std::ranges::find(known, word) - known.begin();
    if (place == std::ssize(known)) known.push_back(word);
    return static_cast<std::uint8_t>(place);
  };
  std::vector<CommRow> rows;
  for (std::size_t rank = 0; rank < traces.size(); ++rank)
    for (std::int64_t seq = 0; const Trace::Call& call : traces[rank].calls)
      rows.push_back({static_cast<std::int64_t>(rank), seq++, call.step, number("axis", call.axis),
                      number("op", call.operation), number("algorithm", call.algorithm), number("backend", call.backend),
                      number("dtype", call.dtype), call.bytes, call.begins, call.ends - call.begins, call.exposed()});
  if (rows.empty()) return;
  TableSpec spec = table_of<CommRow>({.group = "comm", .rows = "call"});
  for (Column& column : spec.columns)
    if (const auto found = words.find(column.name); found != words.end()) column.labels = found->second;
  Table& table = recorder.table(spec);
  for (const CommRow& row : rows) recorder.append(table, row);
}

// Corrects the separator: "3:4" for "3-4", "3,4" or "3..4".
std::string with_colon(const std::string& text) {
  const std::size_t first = text.find_first_not_of("0123456789"), last = text.find_last_not_of("0123456789");
  if (first == std::string::npos || first == 0 || last + 1 == text.size()) return "";
  const std::string between = text.substr(first, last + 1 - first);
  const bool known = between == "-" || between == "," || between == ".." || between == " ";
  return known ? text.substr(0, first) + ":" + text.substr(last + 1) : "";
}

std::int64_t step_in(const std::string& word, const std::string& text) {
  const auto step = parse_integer<std::int64_t>(word);
  if (!step || *step < 1)
    usage_error(fmt::format("\"{}\" is not a range of steps to trace", escape_control(text)),
                fmt::format("\"{}\" is not a step; steps are numbered from 1", escape_control(word)),
                with_colon(text).empty() ? "give the first and the last step, as in --trace-steps 10:13, or one step"
                                         : fmt::format("did you mean --trace-steps {}?", with_colon(text)));
  return *step;
}

}  // namespace

TraceSteps trace_steps(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  const TraceSteps steps{step_in(text.substr(0, colon), text),
                         step_in(colon == std::string::npos ? text : text.substr(colon + 1), text)};
  if (steps.first > steps.last)
    usage_error(fmt::format("\"{}\" is not a range of steps to trace", text),
                fmt::format("step {} is the first and {} the last", steps.first, steps.last),
                fmt::format("give the earlier step first: --trace-steps {}:{}", steps.last, steps.first));
  return steps;
}

std::int64_t trace_room(std::int64_t ranks) { return std::min<std::int64_t>(50'000, 4'000'000 / ranks); }

void write_trace(RunRecord& run, Training& training, const TraceSteps& steps, const mpi::Runtime& runtime,
                 const std::vector<RankFacts>& ranks) {
  const std::vector<std::string> texts = mpi::gather(runtime.world(), packed(training));
  if (!run.recorder) return;
  std::vector<RankTrace> traces;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) traces.push_back(unpacked(texts[rank], ranks[rank].clock_offset));
  if (traces[0].spans.empty())
    return run.log.warn(
        "nothing was traced: --trace-steps asked for steps {} to {}, none of which took place before the run ended at step "
        "{}",
        steps.first, steps.last, training.steps());
  std::size_t passes = 0, inner = 0, calls = 0;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    passes += traces[rank].spans.size();
    inner += traces[rank].inner.size();
    calls += traces[rank].calls.size();
    if (traces[rank].left_out > 0)
      run.log.warn("the trace of rank {} is incomplete: {} later events are missing; trace fewer steps", rank,
                   traces[rank].left_out);
  }
  const std::filesystem::path file = run.folder / "trace.json";
  write_file(file, chrome_trace(traces, run.folder.filename().string()));
  record_calls(*run.recorder, traces);
  run.log.result("traced {} passes, {} layers and kernels, and {} calls to {}: open it in ui.perfetto.dev", passes, inner,
                 calls, file.string());
}

}  // namespace chorale::train
