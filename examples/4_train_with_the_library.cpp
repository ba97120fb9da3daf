// 4. Repeats the training of 3_train_by_hand with the library's training step, on any layout: data, tensor and pipeline
// parallelism, and ZeRO. The losses are bit-identical on every layout.
//
//   mpirun -np 4 ./4_train_with_the_library                   4 replicas
//   mpirun -np 4 ./4_train_with_the_library dp2.tp2.z1.sp     or any other layout of 4 ranks
#include <chorale/train.hpp>
#include <cstdio>

using namespace chorale;

int main(int argc, char** argv) {
  return mpi::run_ranks([&](const mpi::Runtime& runtime) {
    // Step 1: choose the model, the batch and the optimizer. With exact numerics, the results do not depend on the layout.
    TrainingOptions options;
    options.shape = {.layers = 2, .heads = 4, .groups = 4, .width = 64, .ffn = 256, .sequence = 32, .vocabulary = 256};
    options.numerics = NumericsKind::exact;
    options.batch = {.global = 12, .micro = 0};  // 0: the layout determines the micro-batch
    options.optimizer.clip = 0;
    options.optimizer.rate = {.peak = 3e-3, .warmup = 5, .steps = 20};
    options.seed = 1234;

    // Step 2: choose the layout, and create a Trainer on the fastest available backend. A layout string such as tp2.z1 says
    // how the ranks share the work. If the string does not name dp, the size of dp is the number of ranks divided by the
    // product of the other sizes.
    SystemClock clock;
    Trainer trainer(options, argc > 1 ? argv[1] : "", runtime, clock);

    // Step 3: define where samples come from. On each rank, the trainer calls `read` for this rank's part of the batch.
    const std::unique_ptr<TokenSource> language = synthetic_language(options.shape.vocabulary, options.seed);
    const ReadSamples read = in_order(*language, options.shape.sequence);

    // Step 4: train.
    double first_loss = 0, loss = 0;
    while (trainer.steps() < options.optimizer.rate.steps) {
      const StepResult result = trainer.step(read);
      loss = result.loss;
      if (result.step == 1) first_loss = loss;
      if (runtime.rank() == 0) std::printf("step %2ld  loss %.17g\n", static_cast<long>(result.step), loss);
    }
    if (!(loss < first_loss - 0.1))
      throw Error(Exit::check, "nothing was learned", "the loss did not fall by 0.1", "try other options");

    // Step 5: compare the peak memory of rank 0 with a plan. A plan runs the same code, but allocates no memory and sends
    // nothing.
    if (runtime.rank() == 0) {
      const RankPlan plan = plan_step(options, trainer.layout(), runtime.size(), 0);
      std::printf("%s: rank 0 held %.2f MiB at most, %.2f MiB were planned\n", trainer.layout().c_str(),
                  static_cast<double>(trainer.measured().peak_bytes) / 0x1p20,
                  static_cast<double>(plan.peak_bytes) / 0x1p20);
    }
  });
}
