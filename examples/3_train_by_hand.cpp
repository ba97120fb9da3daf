// 3. Trains a small GPT with data parallelism written by hand. Every rank has the complete model and computes the gradients
// of its part of the batch. Then the gradients of all ranks are added. The losses are bit-identical on 1, 2, 3 and 4 ranks,
// and bit-identical to those of 4_train_with_the_library.
//
//   mpirun -np 4 ./3_train_by_hand
//
//   rank 0   samples 0–2 ── forward ── backward ──┐                    ┌── update ── the same weights
//   rank 1   samples 3–5 ── forward ── backward ──┼── all_reduce of ───┼── update ── the same weights
//   …                                             ┘   all gradients    └── …
#include <chorale/train.hpp>
#include <cstdio>
#include <cstring>

using namespace chorale;

std::int64_t hash_of(const LocalModel& model) {
  std::int64_t hash = 0;
  for (const LocalParameter& p : model.parameters())
    for (std::int64_t i = 0; i < p.value.count; ++i) {
      std::int32_t bits = 0;
      std::memcpy(&bits, static_cast<const float*>(p.value.data) + i, sizeof bits);
      hash = hash * 31 % 1'000'000'007 + bits;
    }
  return hash;
}

int main() {
  return mpi::run_ranks([](const mpi::Runtime& runtime) {
    // Step 1: choose the model, the batch and the optimizer. Exact numerics stores gradients as integer multiples of a small
    // unit. So a sum of gradients is bit-identical in any order and on any number of ranks.
    TrainingOptions options;
    options.shape = {.layers = 2, .heads = 4, .groups = 4, .width = 64, .ffn = 256, .sequence = 32, .vocabulary = 256};
    options.numerics = NumericsKind::exact;
    options.batch.global = 12;
    options.optimizer.clip = 0;
    options.optimizer.rate = {.peak = 3e-3, .warmup = 5, .steps = 20};
    options.seed = 1234;

    // Step 2: join all ranks, and give each rank an equal part of the batch.
    SystemClock clock;
    Communicator world = open_world("auto", runtime, clock);
    if (options.batch.global % world.size() != 0)
      usage_error("the batch cannot be divided evenly among the ranks", std::to_string(options.batch.global) + " sequences",
                  "start 1, 2, 3, 4, 6 or 12 ranks");
    const std::int64_t share = options.batch.global / world.size(), first = share * world.rank();

    // Step 3: build the model, in memory that peers read directly. Every rank begins with the same weights, which are
    // generated from the seed.
    LocalModel model(options, world.allocator());
    const std::unique_ptr<TokenSource> language = synthetic_language(options.shape.vocabulary, options.seed);
    const ReadSamples read = in_order(*language, options.shape.sequence);

    double first_loss = 0, loss = 0;
    for (std::int64_t step = 1; step <= options.optimizer.rate.steps; ++step) {
      // Step 4: pass this rank's samples through the model, forward and backward. The backward pass adds to the gradients.
      model.begin();
      model.pass(read, first, share);

      // Step 5: data parallelism. Without the sum of the gradients, every rank would train a different model.
      for (const LocalParameter& p : model.parameters()) world.all_reduce(p.gradient);
      world.all_reduce(model.loss());

      // Step 6: update the weights with AdamW.
      loss = model.update();
      if (step == 1) first_loss = loss;
      if (world.rank() == 0) std::printf("step %2ld  loss %.17g\n", static_cast<long>(step), loss);
    }

    // Step 7: check that all ranks hold the same weights, bit for bit.
    std::int64_t low = hash_of(model), high = low;
    world.all_reduce({&low, 1, DType::i64}, Redop::min);
    world.all_reduce({&high, 1, DType::i64}, Redop::max);
    if (low != high) throw Error(Exit::check, "replicas differ", "their weights have different hashes", "see step 5");
    if (!(loss < first_loss - 0.1)) throw Error(Exit::check, "nothing was learned", "the loss is too high", "see step 6");
    if (world.rank() == 0)
      std::printf("%d replicas with the same %.2f million weights, bit for bit\n", world.size(),
                  static_cast<double>(options.shape.parameters()) / 1e6);
  });
}
