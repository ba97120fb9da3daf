// Tests the trace of a step. The trace must agree with the times that the step reports and with the account of the step's
// calls.
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

struct Stretch {
  double begins, ends;
};

// Returns an error that names `of` if two spans overlap, otherwise "".
std::string overlap(std::vector<Stretch> stretches, const char* of) {
  std::ranges::sort(stretches, {}, &Stretch::begins);
  for (std::size_t i = 1; i < stretches.size(); ++i)
    if (stretches[i].begins < stretches[i - 1].ends) return fmt::format("{}", of);
  return "";
}

std::string trouble_with_spans(const Trace& trace, const PipelineSchedule& schedule, std::int64_t stage) {
  std::vector<Stretch> passes;
  std::map<Trace::Kind, std::int64_t> found;
  const auto step = std::ranges::find(trace.spans(), Trace::Kind::step, &Trace::Span::kind);
  if (step == trace.spans().end()) return "the step is missing";
  for (const Trace::Span& span : trace.spans()) {
    if (span.step != 2) return fmt::format("step {} is in the trace, but was not requested", span.step);
    if (span.begins > span.ends) return "a span ends before it begins";
    if (span.begins < step->begins || span.ends > step->ends) return "a span begins before the step or ends after it";
    if (span.kind != Trace::Kind::step) passes.push_back({span.begins, span.ends});
    ++found[span.kind];
  }
  std::map<Trace::Kind, std::int64_t> wanted{{Trace::Kind::step, 1}, {Trace::Kind::optimizer, 1}};
  for (const PipelineAction& action : schedule.actions.at(static_cast<std::size_t>(stage))) {
    ++wanted[action.kind == Pass::forward    ? Trace::Kind::forward
             : action.kind == Pass::backward ? Trace::Kind::backward
                                             : Trace::Kind::weights];
    wanted[Trace::Kind::data] += action.kind == Pass::forward;
  }
  return found == wanted ? overlap(passes, "two passes overlap") : "the number of passes is not that of the schedule";
}

// Layers and kernels must be inside the step and nested like a call stack. Layers must be inside passes. Each layer must
// appear once for each micro-batch and pass.
std::string trouble_with_inner(const Trace& trace, const Training& training) {
  const auto kind_is = [](Trace::Kind kind) { return [kind](const Trace::Span& span) { return span.kind == kind; }; };
  std::map<std::string, std::int64_t> layers;
  std::int64_t kernels = 0;
  for (const bool of_kernels : {false, true}) {
    std::vector<Stretch> open;
    for (const Trace::Inner& inner : trace.inner()) {
      if (inner.kernel != of_kernels) continue;
      if (inner.step != 2) return fmt::format("{} is of step {}", inner.name, inner.step);
      if (inner.begins > inner.ends) return fmt::format("{} ends before it begins", inner.name);
      const auto around = [&](const Trace::Span& span) { return span.begins <= inner.begins && inner.ends <= span.ends; };
      if (std::ranges::none_of(trace.spans(), around)) return fmt::format("{} is outside of the step", inner.name);
      while (!open.empty() && open.back().ends <= inner.begins) open.pop_back();
      if (!open.empty() && inner.ends > open.back().ends) return fmt::format("{} is not nested", inner.name);
      open.push_back({inner.begins, inner.ends});
      const bool in_a_pass = std::ranges::any_of(
          trace.spans(), [&](const Trace::Span& span) { return span.kind != Trace::Kind::step && around(span); });
      if (!of_kernels && !in_a_pass) return fmt::format("{} is in no pass", inner.name);
      of_kernels ? ++kernels : ++layers[inner.name];
    }
  }
  const std::int64_t passes = std::ranges::count_if(trace.spans(), kind_is(Trace::Kind::forward)) +
                              std::ranges::count_if(trace.spans(), kind_is(Trace::Kind::backward));
  const std::int64_t chunks = training.schedule().chunks;
  for (const auto& [name, times] : layers)
    if (times != passes / chunks) return fmt::format("{} is there {} times, not {}", name, times, passes / chunks);
  if (training.mesh().pipeline().rank() == 0 && !layers.contains("embedding")) return "the embedding is missing";
  for (const char* end : {".attention", ".attention.qkv", ".mlp.norm", ".mlp.down"})
    if (std::ranges::none_of(layers, [&](const auto& layer) { return layer.first.ends_with(end); }))
      return fmt::format("no layer is called block.N{}", end);
  return kernels > 5 * passes ? "" : fmt::format("{} kernels in {} passes", kernels, passes);
}

std::string trouble_with_calls(const Trace& trace, const StepResult& result, const Accounts& accounts) {
  std::vector<Stretch> waits;
  std::map<std::pair<std::string, std::string>, std::int64_t> found, wanted;
  double exposed = 0;
  const auto step = std::ranges::find(trace.spans(), Trace::Kind::step, &Trace::Span::kind);
  for (const Trace::Call& call : trace.calls()) {
    if (call.begins < step->begins || call.ends > step->ends) return "a call is not within the step";
    if (call.begins > call.launched || call.launched > call.waited || call.waited > call.ends)
      return fmt::format("the times of a call of {} are out of order", call.operation);
    waits.push_back({call.begins, call.launched});
    if (call.started) waits.push_back({call.waited, call.ends});
    exposed += call.exposed();
    if (call.operation != "recv") ++found[{call.axis, call.operation}];
  }
  for (const auto& [axis, account] : accounts)
    for (std::size_t i = 0; i < operations; ++i)
      if (account.entries[i].calls > 0) wanted[{axis, operation_name(i)}] = account.entries[i].calls;
  if (found != wanted) return "the calls are not those of the account";
  // The step reports the time spent waiting for other stages as `bubble`. The trace shows this time as calls that wait for
  // messages.
  const double said = result.exposed + result.bubble;
  if (std::abs(exposed - said) > 1e-9) return fmt::format("{} s are exposed, but the step reports {} s", exposed, said);
  for (const Trace::Span& span : trace.spans())
    if (span.kind == Trace::Kind::optimizer) waits.push_back({span.begins, span.ends});
  return overlap(waits, "two waits overlap, or a wait overlaps the optimizer");
}

TEST_CASE("a trace covers the requested step, and agrees with the step's result and account", "[threads]") {
  for (const char* word :
       {"dp2.tp2.pp2", "dp2.tp2.pp2.z1.sp.zb-h1", "dp2.pp2.z2.interleaved.v2", "dp2.pp2.v-min", "dp4.z3", "dp1"}) {
    const Layout layout = parse_layout(word, 0);
    INFO(word);
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            test::Run run(test::options_for("fast", layout), std::move(mesh), memory);
            run.training.account().trace().record(2, 2, 10000);
            run.steps(1);
            clear_accounts(run.training.mesh());
            run.steps(1);
            const Accounts accounts = accounts_of(run.training.mesh());
            run.steps(1);
            run.training.evaluate(run.read, 5);
            const Trace& trace = run.training.account().trace();
            const std::string spans =
                trouble_with_spans(trace, run.training.schedule(), run.training.mesh().pipeline().rank());
            if (!spans.empty()) return spans;
            const std::string inner = trouble_with_inner(trace, run.training);
            if (!inner.empty()) return inner;
            if (trace.left_out() > 0) return fmt::format("{} are left out", trace.left_out());
            return trouble_with_calls(trace, run.seen.steps.at(1), accounts);
          }) == "");
  }
}

TEST_CASE("a traced call has its axis, operation, algorithm, backend, type and bytes", "[threads]") {
  CHECK(test::on_thread_mesh(parse_layout("dp2", 0), [&](const Mesh& mesh, Memory& memory) -> std::string {
          Trace trace;
          mesh.data().record_in(trace);
          Ledger ledger;
          Allocator allocator(memory, ledger);
          const Tensor x(allocator, {6}, DType::f32, Category::workspace);
          std::ranges::fill(x.values<float>(), 1.0F);
          mesh.data().all_reduce(x);
          trace.record(7, 7, 10);
          trace.begin(7);
          Axis::Pending gathers = mesh.data().start_all_gather(x.narrow(3 * mesh.data().rank(), 3), x), moved;
          moved = std::move(gathers);
          trace.end();
          moved.wait();
          mesh.data().all_reduce(x);
          if (trace.calls().size() != 1) return fmt::format("{} calls", trace.calls().size());
          const Trace::Call& call = trace.calls()[0];
          if (call.ends <= call.launched) return "a call that is waited for after the last step gets no end time";
          const std::string words =
              fmt::format("{} {} {} {} {} {}", call.step, call.axis, call.operation, call.backend, call.dtype, call.bytes);
          if (!find_algorithm(Collective::all_gather, call.algorithm)) return "no algorithm is called " + call.algorithm;
          return words == "7 dp all_gather threads f32 24" ? "" : words;
        }) == "");
}

TEST_CASE("a full trace counts the events that it leaves out") {
  Trace trace;
  trace.record(1, 2, 2);
  for (const std::int64_t step : {1, 2, 3}) {
    trace.begin(step);
    for (int i = 0; i < 3; ++i) trace.add(Trace::Span{});
    trace.add(Trace::Inner{});
    for (const std::int64_t call : {0, 1}) CHECK(trace.add(Trace::Call{}) == (step == 1 ? call : -1));
    trace.end();
  }
  CHECK(trace.spans().size() == 2);
  CHECK(trace.calls().size() == 2);
  CHECK(trace.inner().size() == 2);  // one span of each step
  CHECK(trace.left_out() == 6);
  trace.add(Trace::Span{});
  CHECK(trace.left_out() == 6);
  trace.over(-1, 1, 2);
  CHECK(trace.calls()[1].ends == 0);
}

}  // namespace
}  // namespace chorale
