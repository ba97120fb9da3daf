// `chorale bench kernels` shows how a training step spends its time. Each rank trains the complete model on made-up tokens
// and times its kernels. Rank 0 prints the kernels of its fastest step, each with a reference time:
//
//   reference = max(flops / peak of matrix products, bytes / copy rate)
//
// MFU is computed with the same peak (train/product_peak.hpp). The copy rate is measured with copies that touch as many
// bytes as a call of the kernel. A kernel can be faster than its reference time for two reasons: an update in place costs
// less than a copy, and the kernel's operands can be in a faster cache. The last row is the time between kernels. Device
// kernels and communication are not included.
//
//   build/chorale bench kernels --preset nano --dtype bf16
//   mpirun -np 2 build/chorale bench kernels --preset nano        two ranks that share caches and memory
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "experiments/bench/copy_rate.hpp"
#include "experiments/bench/made_up_tokens.hpp"
#include "experiments/bench/notes.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/machine_watch.hpp"
#include "experiments/common/run_record.hpp"
#include "experiments/common/scale.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/loop.hpp"
#include "experiments/train/product_peak.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/machine_load.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/data/documents.hpp"
#include "src/math/kernel_timer.hpp"
#include "src/memory/pool.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

// The calls of one kernel in one step.
struct KernelRow {
  std::string name, shape;
  std::int64_t calls = 0;
  double seconds = 0, reference = 0, bytes = 0, flops = 0, copy_rate = 0;
};

struct FastestStep {
  double seconds = 0;
  std::vector<KernelRow> rows;  // the longest first; the last row is the time between kernels
};

std::string shape_of(const KernelTable::Key& key) {
  if (key.m == 0) return "";
  return key.batch == 1 ? fmt::format("[{}, {}]·[{}, {}]", key.m, key.k, key.k, key.n)
                        : fmt::format("{} heads, {} queries, {} keys of {}", key.batch, key.m, key.n, key.k);
}

class KernelsCommand final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }

  void declare(Options& o) override {
    flags_.declare(o);
    o.section("the measurement");
    o.add("steps", steps_, "steps to time, after one that is not; the fastest counts").range(1, 1e4);
    peak_.declare(o);
    o.add("format", format_, "output format").one_of(TextTable::formats()).changes(Effect::output);
    o.add("run-dir", run_dir_, "create the run's folder in this folder").words("DIR").changes(Effect::output);
  }

  void check(const Launch&) override {
    chorale::check(flags_.on({}), {});
    Documents::named(flags_.document_mask().documents);  // made-up tokens need no documents, but a wrong name is an error
    require_writable(run_dir_);
  }

  int run(Session& session) override {
    const auto ranks = gather_rank_facts(*session.runtime, session.clock);
    const TrainingOptions options = flags_.on({}, {.threads = threads_of_a_rank(*session.runtime, ranks)});
    const train::ComputeDevice host;
    peak_.find(session, ranks, options, host);
    RunRecord run = open_run_record(run_dir_, session, ranks);
    MachineWatch watch(session);
    watch.warn(run.log);
    const FastestStep step = measure(options, session);
    const std::vector<OtherWork> others = watch.finish(run.log);
    if (!run.recorder) return 0;
    print(step, options, train::note_peak(run, peak_), disturbance(others));
    write(*run.recorder, step);
    write_other_work(*run.recorder, others);
    run.recorder->finish("ok");
    if (format_ == "text") fmt::print("# recorded in {}\n", run.recorder->file().string());
    return 0;
  }

 private:
  // All ranks train at the same time, without communication.
  FastestStep measure(TrainingOptions options, const Session& session) const {
    KernelTable timer(session.clock);
    options.kernels.timer = &timer;
    HostMemory host;
    Pool memory(host);  // as in a run, tensors reuse the same pages
    Training training(options, memory, session.clock);
    const ReadSamples read = bench::made_up_tokens(options.shape.vocabulary);
    training.step(read);
    mpi::sleep_until_all(session.runtime->world(), session.clock);
    double fastest = std::numeric_limits<double>::infinity();
    std::map<KernelTable::Key, KernelTable::Row> kernels;
    for (std::int64_t i = 0; i < steps_; ++i) {
      timer.clear();
      session.runtime->now(fmt::format("step {} of {}", i + 1, steps_));
      const double began = session.clock.seconds();
      training.step(read);
      const double seconds = session.clock.seconds() - began;
      if (seconds < fastest) {
        fastest = seconds;
        kernels = timer.rows();
      }
    }
    mpi::sleep_until_all(session.runtime->world(), session.clock);
    const double peak = peak_.flops() / session.runtime->size();
    return {fastest, rows_of(kernels, fastest, peak, options.kernels.threads, session.clock)};
  }

  static std::vector<KernelRow> rows_of(const std::map<KernelTable::Key, KernelTable::Row>& kernels, double step,
                                        double peak, int threads, const Clock& clock) {
    std::vector<KernelRow> rows;
    KernelRow rest{.name = "between kernels", .seconds = step};
    for (const auto& [key, k] : kernels) {
      const double rate = bench::copy_rate(k.bytes / static_cast<double>(k.calls), threads, clock);
      const double reference = std::max(k.flops / peak, k.bytes / rate);
      rows.push_back({std::string(key.name), shape_of(key), k.calls, k.seconds, reference, k.bytes, k.flops, rate});
      rest.seconds -= k.seconds;
    }
    std::ranges::sort(rows, std::greater(), &KernelRow::seconds);
    rows.push_back(rest);
    return rows;
  }

  void print(const FastestStep& step, const TrainingOptions& options, const std::string& peak,
             const std::string& disturbance) const {
    const std::string notes = fmt::format(
        "# the fastest of {} steps of {} samples took {} on {} thread{}; peak of products: {}\n"
        "# reference: the flops at this peak, or a copy of as many bytes, whichever takes\n"
        "#   longer; no bound: updates in place and nearer caches can be faster\n{}",
        steps_, options.batch.global, human_seconds(step.seconds), options.kernels.threads,
        options.kernels.threads > 1 ? "s" : "", peak, bench::disturbed(disturbance));
    if (format_ == "text") fmt::print("{}", notes_within(notes, screen_columns()));
    TextTable table({"kernel", "shape", "calls", "ms", "share", "reference ms", "reference/time"});
    for (const KernelRow& row : step.rows) {
      const auto percent = [](double share) { return quantity(share, Unit::percent, 2); };
      std::vector<std::string> cells{
          row.name, row.shape, "", fmt::format("{:.3f}", row.seconds * 1e3), percent(row.seconds / step.seconds), "", ""};
      if (row.calls > 0) {
        cells[2] = fmt::format("{}", row.calls);
        cells[5] = fmt::format("{:.3f}", row.reference * 1e3);
        cells[6] = percent(row.reference / row.seconds);
      }
      table.add(cells);
    }
    fmt::print("{}", table.print(format_));
  }

  static void write(Recorder& recorder, const FastestStep& step) {
    const auto numbers = [&](const char* name, auto KernelRow::*member, const char* units, const char* about) {
      recorder.numbers("kernels", name, {"kernel"}, each(step.rows, member), units, about);
    };
    recorder.dimension({.name = "kernel", .size = std::ssize(step.rows)}, "kernels");
    recorder.rows("kernels", std::ssize(step.rows));
    recorder.texts("kernels", "name", "kernel", each(step.rows, &KernelRow::name));
    recorder.texts("kernels", "shape", "kernel", each(step.rows, &KernelRow::shape));
    numbers("calls", &KernelRow::calls, "1", "calls in the step");
    numbers("time", &KernelRow::seconds, "s", "time in the step");
    numbers("floor", &KernelRow::reference, "s", "reference: flops at the peak of products, or bytes at the rate of copies");
    numbers("copy_rate", &KernelRow::copy_rate, "byte s-1", "rate of copies that touch as many bytes as a call");
    numbers("bytes", &KernelRow::bytes, "byte", "bytes read and written in the step");
    numbers("flops", &KernelRow::flops, "1", "flops of products and attention in the step");
  }

  train::Flags flags_;
  train::ProductPeak peak_;
  std::int64_t steps_ = 10;
  std::string format_ = "text", run_dir_ = "runs";
};

}  // namespace

std::unique_ptr<Command> make_kernels() { return std::make_unique<KernelsCommand>(); }

}  // namespace chorale
