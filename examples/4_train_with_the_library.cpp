// 4. Repeats the training of 3_train_by_hand with the library's training step, on any layout: data, tensor and pipeline
// parallelism, and ZeRO. The losses are bit-identical on every layout.
//
//   mpirun -np 4 ./4_train_with_the_library                   4 replicas
//   mpirun -np 4 ./4_train_with_the_library dp2.tp2.z1.sp     or any other layout of 4 ranks
#include <chorale/parallel/train.hpp>
#include <cstdio>
#include <numeric>

using namespace chorale;

int main(int argc, char** argv) {
  return mpi::run_ranks([&](const mpi::Runtime& runtime) {
    // Step 1: choose the model, the batch and the optimizer. With exact numerics, the results do not depend on the layout.
    TrainingOptions options;
    options.shape = {.layers = 2, .heads = 4, .groups = 4, .width = 64, .ffn = 256, .sequence = 32, .vocabulary = 256};
    options.numerics = NumericsKind::exact;
    options.batch.global = 12;
    options.optimizer.clip = 0;
    options.optimizer.rate = {.peak = 3e-3, .warmup = 5, .steps = 20};
    options.seed = 1234;

    // Step 2: choose the layout. A layout word such as tp2.z1 says how the ranks share the work. If it does not name dp, the
    // size of dp is the number of ranks divided by the other sizes.
    const Layout layout = parse_layout(argc > 1 ? argv[1] : "", runtime.size());
    require_fits(layout, {options.shape, runtime.size(), options.batch.global});
    // A pipeline needs several micro-batches.
    options.batch.micro = layout.stages() > 1 ? 1 : options.batch.global / layout.replicas();

    // Step 3: arrange the ranks as a mesh on the fastest backend, and set up the training on this mesh.
    SystemClock clock;
    const Worlds worlds(open_world("auto", runtime, clock));
    Training training(options, Mesh(layout, worlds, {{"", "auto"}}), worlds.memory(), clock);

    // Step 4: define the function that reads samples. On each rank, the training step calls `read` for this rank's part of
    // the batch.
    const SyntheticLanguage language(options.shape.vocabulary, options.seed);
    const auto read = [&](std::int64_t first, std::int64_t count, const SampleRows& rows) {
      std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
      std::iota(samples.begin(), samples.end(), first);
      fill_batch(language, samples, options.shape.sequence, rows);
    };

    // Step 5: train.
    double first_loss = 0, loss = 0;
    while (training.steps() < options.optimizer.rate.steps) {
      const StepResult result = training.step(read);
      loss = result.loss;
      if (result.step == 1) first_loss = loss;
      if (runtime.rank() == 0) std::printf("step %2ld  loss %.17g\n", static_cast<long>(result.step), loss);
    }
    if (!(loss < first_loss - 0.1))
      throw Error(Exit::check, "nothing was learned", "the loss did not fall by 0.1", "try other options");

    // Step 6: print the memory peak of rank 0.
    if (runtime.rank() == 0)
      std::printf("%s: rank 0 held %.2f MiB at most\n", to_string(layout).c_str(),
                  static_cast<double>(training.memory().ledger().total_peak()) / 0x1p20);
  });
}
