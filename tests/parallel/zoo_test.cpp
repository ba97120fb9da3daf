// The bug zoo: mistakes that others have shipped, each put into a training run through the seams that strategies use, and what catches it. A
// mistake that nobody notices here would be one that our tests of layouts cannot see.
//
// Label smoothing with the shard's vocabulary is not here: there is no label smoothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "parallel/tensor.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

using test::Run;

// Stands before the reducer of a run; a mistake changes one of its calls.
struct Before : Reducer {
  explicit Before(Run& to) : run(to), inner(std::move(to.training.reducer())) {}
  void begin(std::int64_t micro_batches) override { inner->begin(micro_batches); }
  void ready(const Parameter& p) override { inner->ready(p); }
  void finish() override { inner->finish(); }
  void publish() override { inner->publish(); }

  Run& run;
  std::unique_ptr<Reducer> inner;
};

template <class Mistaken>
void reduce_by(Run& run) {
  run.training.reducer() = std::make_unique<Mistaken>(run);
}

// Every replica's gradient is a whole one: their sum is N times too large. Under a pipeline it is often the micro-batches.
struct TooLarge : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    for (const Owned& owned : run.training.buckets().owned())
      for (std::int64_t& g : owned.gradient.values<std::int64_t>()) g *= 3;
  }
};

// Only what the last micro-batch adds goes to the others; the sum of those before it stays a rank's own.
struct LastAlone : Before {
  using Before::Before;
  void begin(std::int64_t micro_batches) override {
    last_ = micro_batches;
    seen_.clear();
    inner->begin(micro_batches);
  }
  void ready(const Parameter& p) override {
    if (++seen_[&p] == last_ - 1) {
      const auto gradient = p.gradient.values<std::int64_t>();
      own_[&p].assign(gradient.begin(), gradient.end());
      std::fill(gradient.begin(), gradient.end(), 0);
    }
    inner->ready(p);
  }
  void finish() override {
    inner->finish();
    for (const auto& [p, own] : own_) {
      const auto gradient = p->gradient.values<std::int64_t>();
      for (std::size_t i = 0; i < own.size(); ++i) gradient[i] += own[i];
    }
  }

 private:
  std::int64_t last_ = 0;
  std::map<const Parameter*, std::int64_t> seen_;
  std::map<const Parameter*, std::vector<std::int64_t>> own_;
};

// Each replica takes the mean over its own tokens, and the mean of these over the replicas. Right only where nothing is masked.
struct LocalMeans : Before {
  explicit LocalMeans(Run& to) : Before(to) {
    to.read = [this, read = to.read](std::int64_t first, std::int64_t samples, auto inputs, auto targets) {
      read(first, samples, inputs, targets);
      own_ += counted(targets);
      std::vector<std::int32_t> all(static_cast<std::size_t>(12 * run.training.options().shape.sequence)), next(all.size());
      read(first / 12 * 12, 12, all, next);
      all_ = counted(next);
    };
  }
  void begin(std::int64_t micro_batches) override {
    last_ = micro_batches;
    own_ = 0;
    seen_.clear();
    inner->begin(micro_batches);
  }
  void ready(const Parameter& p) override {
    if (++seen_[&p] == last_) {
      const double replicas = run.training.mesh().data().size(), right = static_cast<double>(all_) / replicas;
      for (std::int64_t& g : p.gradient.values<std::int64_t>())
        g = std::llround(static_cast<double>(g) * right / static_cast<double>(own_));
    }
    inner->ready(p);
  }

 private:
  static std::int64_t counted(std::span<const std::int32_t> targets) {
    return std::count_if(targets.begin(), targets.end(), [](std::int32_t t) { return t >= 0; });
  }
  std::int64_t last_ = 0, own_ = 0, all_ = 0;
  std::map<const Parameter*, std::int64_t> seen_;
};

// Rank 1 finds an overflow and skips the step; nobody else hears of it.
struct SkipsAlone : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    if (run.training.mesh().world().rank() != 1) return;
    for (const Owned& owned : run.training.buckets().owned()) {
      const auto values = owned.value.values<float>();
      before_.emplace_back(values.begin(), values.end());
    }
  }
  void publish() override {
    for (std::size_t i = 0; i < before_.size(); ++i)
      std::copy(before_[i].begin(), before_[i].end(), run.training.buckets().owned()[i].value.values<float>().begin());
    before_.clear();
    inner->publish();
  }

 private:
  std::vector<std::vector<float>> before_;
};

// While the norm is taken, the last stage's copy of the table passes for a tensor of its own.
struct CountedTwice : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    rename("embedding.weight", "copy.weight");
  }
  void publish() override {
    rename("copy.weight", "embedding.weight");
    inner->publish();
  }
  void rename(const char* from, const char* to) {
    if (run.training.mesh().first_stage()) return;
    for (const ParameterPointer& p : run.training.parameters())
      if (p->name == from) p->name = to;
  }
};

// Each rank updates its shard, and keeps the others' values of the step before.
struct Unpublished : Before {
  using Before::Before;
  void publish() override {}
};

// Each rank draws its own masks.
template <class Of>
struct OwnSeed : Of {
  template <class... Args>
  explicit OwnSeed(int rank, Args&... args) : Of(args...), rank(rank) {}
  Tensor pick(const Tensor& rows, Context& context) const override {
    context.seed += static_cast<std::uint64_t>(rank);
    return Of::pick(rows, context);
  }
  int rank;
};

// Each replica counts its samples from 0: all of them draw the same masks.
struct LocalPlaces : Joint {
  Tensor pick(const Tensor& rows, Context& context) const override {
    context.tokens.first_sample = context.stream.first_sample = 0;
    return rows;
  }
};

// Each shard counts its rows of the stream from 0.
struct LocalRows : SequenceParallel {
  using SequenceParallel::SequenceParallel;
  Tensor pick(const Tensor& rows, Context& context) const override {
    context.stream.first_row = 0;
    return SequenceParallel::pick(rows, context);
  }
};

// Each shard of a layer cut by rows adds the bias to its partial sum; the sum of them has it once for every shard.
template <class Of>
struct BiasOnEach : Of {
  BiasOnEach(Axis& axis, const std::vector<ParameterPointer>& parameters)
      : Of(axis), extra(static_cast<float>(axis.size() - 1)), parameters(parameters) {}
  std::function<Tensor()> start_sum(const Tensor& partial, Site& site, Context& context) const override {
    const auto bias = std::find_if(parameters.begin(), parameters.end(),
                                   [&](const ParameterPointer& p) { return p->name + " output" == bias_of(site.name); });
    const auto sum = Of::start_sum(partial, site, context);
    if (bias == parameters.end()) return sum;
    return [sum, b = Tensor((*bias)->value), extra = extra] {
      const Tensor y = sum();
      const std::span<float> all = y.template values<float>(), one = b.template values<float>();
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += extra * one[i % one.size()];
      return y;
    };
  }
  // "block.0.mlp.down output" → "block.0.mlp.down.bias output"
  static std::string bias_of(std::string site) { return site.insert(std::min(site.find(' '), site.size()), ".bias"); }
  float extra;
  std::vector<ParameterPointer> parameters;
};

template <class Of>
void add_bias_on_each(Run& run) {
  run.training.joint() = std::make_unique<BiasOnEach<Of>>(run.training.mesh().tensor(), run.training.parameters());
}

void resume_later(Run& run, std::int64_t samples) {
  run.steps(1);
  run.training.resume_at(run.training.steps(), run.training.samples() + samples);
}

struct Mistake {
  const char* about;
  std::vector<const char*> layouts;
  const char* caught;  // at which step, and by what
  void (*make)(Run&);
};

const Mistake mistakes[] = {
    {"a gradient N times too large", {"dp3", "dp3.z1", "dp3.z2", "dp3.z3"}, "step 1: norm", reduce_by<TooLarge>},
    {"a gradient m times too large under a pipeline", {"dp1.pp3", "dp2.pp2.z2"}, "step 1: norm", reduce_by<TooLarge>},
    {"means over a replica's own tokens", {"dp2", "dp3", "dp3.z1", "dp2.tp2"}, "step 1: norm", reduce_by<LocalMeans>},
    {"one shard or stage skips a step, the others do not",
     {"dp2.z1", "dp2.z3", "dp1.tp2", "dp1.pp2"},
     "differs",
     reduce_by<SkipsAlone>},
    {"one replica skips a step, the others do not", {"dp2", "dp3"}, "step 2: loss", reduce_by<SkipsAlone>},
    {"each shard adds the bias", {"dp1.tp2", "dp2.tp3"}, "step 2: loss", add_bias_on_each<TensorParallel>},
    {"each shard adds the bias to its rows",
     {"dp1.tp2.sp", "dp1.tp3.sp"},
     "step 2: loss",
     add_bias_on_each<SequenceParallel>},
    {"the norm counts the tied table twice",
     {"dp1.pp2", "dp2.pp2.z1", "dp2.pp3.z3"},
     "step 1: norm",
     reduce_by<CountedTwice>},
    {"gains and shifts are not added under sequence parallelism",
     {"dp1.tp2.sp", "dp2.tp2.z1.sp", "dp2.tp3.z3.sp", "dp1.tp2.pp2.sp"},
     "step 1: norm",
     [](Run& run) {
       for (Bucket& bucket : run.training.buckets().all()) bucket.stream = 0;
     }},
    {"the naive reducer forgets them too",
     {"dp1.tp2.sp", "dp2.tp3.sp"},
     "step 1: norm",
     [](Run& run) {
       run.training.reducer() = naive_reducer(run.training.buckets(), run.training.mesh());
       for (const ParameterPointer& p : run.training.parameters()) p->of_stream = false;
     }},
    {"the tied copies' sum never reaches the shards",
     {"dp1.pp2", "dp2.pp2.z1", "dp2.pp2.z2", "dp2.pp2.z3"},
     "step 1: norm",
     [](Run& run) {
       for (Bucket& bucket : run.training.buckets().all()) bucket.tied = false;
     }},
    {"the last micro-batch alone is reduced", {"dp2", "dp2.tp2", "dp2.pp2"}, "step 1: norm", reduce_by<LastAlone>},
    {"shards of the values are not gathered", {"dp2.z1", "dp3.z2", "dp2.tp2.z1"}, "step 2: loss", reduce_by<Unpublished>},
    {"each replica draws masks of its own",
     {"dp2", "dp3.z3"},
     "step 1: loss",
     [](Run& run) { run.training.joint() = std::make_unique<OwnSeed<Joint>>(run.training.mesh().data().rank()); }},
    {"all replicas draw the same masks",
     {"dp2", "dp3.z1"},
     "step 1: loss",
     [](Run& run) { run.training.joint() = std::make_unique<LocalPlaces>(); }},
    {"each shard draws masks of its own",
     {"dp1.tp2", "dp1.tp3"},
     "step 1: loss",
     [](Run& run) {
       Axis& axis = run.training.mesh().tensor();
       run.training.joint() = std::make_unique<OwnSeed<TensorParallel>>(axis.rank(), axis);
     }},
    {"shards of the stream draw the same masks",
     {"dp1.tp2.sp", "dp2.tp3.sp"},
     "step 1: loss",
     [](Run& run) { run.training.joint() = std::make_unique<LocalRows>(run.training.mesh().tensor()); }},
    {"all replicas read the same samples",
     {"dp2", "dp3.z1", "dp2.pp2"},
     "step 1: loss",
     [](Run& run) {
       run.read = [read = run.read, share = run.training.options().global_batch / run.training.mesh().data().size()](
                      std::int64_t first, auto... rest) { read(first / 12 * 12 + first % share, rest...); };
     }},
    {"a resumed run repeats a batch", {"dp1", "dp2.pp2"}, "step 2: loss", [](Run& run) { resume_later(run, -12); }},
    {"a resumed run skips a sample", {"dp1", "dp2.tp2"}, "step 2: loss", [](Run& run) { resume_later(run, 1); }},
    {"a resumed run forgets the step",
     {"dp1", "dp2.z1"},
     "step 2: loss",
     [](Run& run) {
       run.steps(1);
       run.training.resume_at(0, run.training.samples());
     }},
};

TrainingOptions options_in(const char* word) {
  const Layout layout = parse_layout(word, 0);
  TrainingOptions options = test::options_for("exact", layout);
  options.micro_batch = 1;
  return options;
}

std::string trouble_of(const char* word, const test::Seen& expected, void (*make)(Run&)) {
  return test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) {
    Run run(options_in(word), std::move(mesh), memory);
    make(run);
    run.steps(static_cast<int>(expected.steps.size() - run.seen.steps.size()));
    return difference(expected, run.seen);
  });
}

TEST_CASE("mistakes that others have shipped are caught", "[threads]") {
  HostMemory host;
  const test::Seen expected = Run(test::options_for("exact", {}), Mesh(), host).steps(3).seen;
  for (const Mistake& mistake : mistakes)
    for (const char* word : mistake.layouts) {
      INFO(mistake.about << " in " << word);
      CHECK(trouble_of(word, expected, [](Run&) {}) == "");
      CHECK_THAT(trouble_of(word, expected, mistake.make), Catch::Contains(mistake.caught));
    }
}

// Why gradients and their norms are compared, and not losses alone.
TEST_CASE("Adam hides a gradient that is too large from the loss, not from the norm", "[threads]") {
  CHECK(test::on_thread_mesh(parse_layout("dp3", 0), [](Mesh mesh, Memory& memory) -> std::string {
          HostMemory host;
          TrainingOptions options = options_in("dp3");
          options.clip = 0;
          Run right(options, Mesh(), host), wrong(options, std::move(mesh), memory);
          reduce_by<TooLarge>(wrong);
          right.steps(3), wrong.steps(3);
          for (std::size_t i = 0; i < 3; ++i) {
            const auto &a = right.seen.steps[i], &b = wrong.seen.steps[i];
            if (b.loss != Approx(a.loss).epsilon(1e-4)) return fmt::format("the loss tells: {} and {}", a.loss, b.loss);
            if (b.gradient_norm != Approx(3 * a.gradient_norm).epsilon(1e-2)) return "the norm does not tell";
          }
          return "";
        }) == "");
}

// The norm is right, and reported; what a rank scales its gradient by is not: its own shard's norm, say.
TEST_CASE("a gradient that each rank clips by a norm of its own is caught", "[threads]") {
  HostMemory host;
  for (const char* word : {"dp1.tp2", "dp1.pp2", "dp2.z1"}) {
    INFO(word);
    for (const bool mistaken : {false, true}) {
      TrainingOptions options = options_in(word);
      options.clip = 0.1;
      const test::Seen expected = Run(options, Mesh(), host).steps(2).seen;
      CHECK(expected.steps[0].gradient_norm > options.clip);
      const std::string trouble = test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) {
        TrainingOptions own = options;
        if (mistaken) own.clip *= 1 + mesh.world().rank();
        Run run(own, std::move(mesh), memory);
        return difference(expected, run.steps(2).seen);
      });
      if (mistaken)
        CHECK_THAT(trouble, Catch::Contains("step 1: ") && Catch::Contains("differs"));
      else
        CHECK(trouble == "");
    }
  }
}

// Of gradients in f16 one rank's overflow; each rank has what the others do not see.
TEST_CASE("all ranks skip the step in which one of them overflows", "[threads]") {
  struct Overflows : Before {
    using Before::Before;
    void finish() override {
      inner->finish();
      if (run.training.steps() != 1 || run.training.mesh().world().rank() != 1) return;
      for (const Bucket& bucket : run.training.buckets().all())
        for (float& g : bucket.gradient_shard.values<float>()) g = INFINITY;
    }
  };
  for (const char* word : {"dp2", "dp1.tp2", "dp1.pp2", "dp1.tp2.pp2"}) {
    INFO(word);
    TrainingOptions options = test::options_for("fast", parse_layout(word, 0));
    options.compute = DType::f16;
    options.scaler = {.dynamic = true, .scale = 64, .patience = 1};
    CHECK(test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& memory) -> std::string {
            Run run(options, std::move(mesh), memory);
            reduce_by<Overflows>(run);
            run.steps(3);
            for (int i = 0; i < 3; ++i)
              if (run.seen.steps[static_cast<std::size_t>(i)].skipped != (i == 1))
                return fmt::format("step {} is {}skipped", i + 1, i == 1 ? "not " : "");
            return run.training.scaler().scale == 32 ? "" : "the scale did not fall";
          }) == "");
  }
}

// A log that takes the world's size for every group's is wrong by a factor: bytes are those of the group's own ring.
TEST_CASE("an axis accounts for its own ranks, not for the world's", "[threads]") {
  for (const char* word : {"dp4.tp2", "dp2.tp2", "dp2.tp2.z1", "dp3.pp2.z1", "dp2.tp2.pp2"}) {
    INFO(word);
    const Layout layout = parse_layout(word, 0);
    const int ranks = static_cast<int>(layout.ranks());
    ThreadWorld world(ranks);
    CHECK(test::on_threads(ranks, [&](test::ThreadRank& me) {
            SystemClock clock;
            const Worlds worlds(open_world(world.transport(me.rank()), clock));
            Run run(options_in(word), Mesh(layout, worlds, {{"dp", "ring"}}), worlds.memory());
            Axis& axis = run.training.mesh().data();
            axis.clear_account();
            run.training.step(run.read);
            std::int64_t gradients = 0, values = 0;
            for (const Bucket& bucket : run.training.buckets().all())
              gradients += bucket.count * 8, values += bucket.count * 4;
            const auto sent = [&](Collective what) { return axis.account().entries[static_cast<std::size_t>(what)].bytes; };
            const auto ring = [&](std::int64_t bytes, std::int64_t n) { return bytes / n * (n - 1); };
            const std::int64_t n = layout.data;
            const bool whole = layout.zero == 0;
            const auto expect = [&](Collective what, std::int64_t bytes) {
              me.check(sent(what) == bytes, "{}: {} bytes, not {}", name_of(what), sent(what), bytes);
              me.check(bytes == 0 || bytes != ring(gradients, ranks) * (whole ? 2 : 1), "the world's size would do as well");
            };
            expect(Collective::all_reduce, whole ? 2 * ring(gradients, n) : 0);
            expect(Collective::reduce_scatter, whole ? 0 : ring(gradients, n));
            expect(Collective::all_gather, whole ? 0 : ring(values, n));
          }) == "");
  }
}

}  // namespace
}  // namespace chorale
