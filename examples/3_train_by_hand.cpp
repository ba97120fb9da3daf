// 3. Trains a small GPT with data parallelism written by hand. Every rank has the complete model and computes the gradients
// of its part of the batch. Then the gradients of all ranks are added. The losses are bit-identical on 1, 2, 3 and 4 ranks,
// and bit-identical to those of 4_train_with_the_library.
//
//   mpirun -np 4 ./3_train_by_hand
//
//   rank 0   samples 0–2 ── forward ── backward ──┐                    ┌── update ── the same weights
//   rank 1   samples 3–5 ── forward ── backward ──┼── all_reduce of ───┼── update ── the same weights
//   …                                             ┘   all gradients    └── …
#include <chorale/parallel/train.hpp>
#include <cstdio>
#include <cstring>
#include <numeric>

using namespace chorale;

std::int64_t hash_of(const Model& model) {
  std::int64_t hash = 0;
  for (const ParameterPointer& p : model.parameters())
    for (const float value : p->value.values<float>()) {
      std::int32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      hash = hash * 31 % 1'000'000'007 + bits;
    }
  return hash;
}

int main() {
  return mpi::run_ranks([](const mpi::Runtime& runtime) {
    // Step 1: join all ranks, and give each rank an equal part of the batch.
    SystemClock clock;
    Communicator world = open_world("auto", runtime, clock);
    Allocator& memory = world.allocator();  // allocates memory that peers can read directly
    const std::int64_t batch = 12, steps = 20, share = batch / world.size(), first = share * world.rank();
    if (batch % world.size() != 0)
      usage_error("the batch cannot be divided evenly among the ranks", std::to_string(batch) + " sequences",
                  "start 1, 2, 3, 4, 6 or 12 ranks");

    // Step 2: build the model, which is a list of layers. Every rank starts with the same weights, because they depend only
    // on the seed. Exact numerics stores gradients as integer multiples of a small unit. So sums of gradients are
    // bit-identical in any order and on any number of ranks.
    const ModelShape shape{.layers = 2, .heads = 4, .groups = 4, .width = 64, .ffn = 256, .sequence = 32, .vocabulary = 256};
    const std::int64_t tokens = batch * shape.sequence;
    const std::uint64_t seed = 1234;
    const std::unique_ptr<Numerics> numerics = exact_numerics();
    Model model = build_gpt(shape, Recompute::none);
    allocate(model, memory, *numerics, DType::f32, tokens);
    std::vector<Owned> all;
    for (const ParameterPointer& p : model.parameters()) all.push_back({p, 0, p->value.count(), p->value, p->gradient});
    Optimizer optimizer(adamw_rule(0.9, 0.95, 1e-8, 0.1), all, memory, seed);
    const LearningRate rate{.peak = 3e-3, .warmup = 5, .steps = steps};
    const SyntheticLanguage language(shape.vocabulary, seed);

    const Tensor loss(memory, {1}, numerics->gradient_type(DType::f32), Category::workspace);
    double first_mean = 0, mean = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      // Step 3: set the gradients to zero, because the layers add to them.
      for (const ParameterPointer& p : model.parameters()) clear(p->gradient);
      clear(loss);

      // Step 4: make the context that is passed to every layer. The tape keeps the activations for the backward pass.
      Tape tape;
      Context context{{.queue = {}, .memory = memory, .numerics = *numerics}};
      context.tokens = {.first_sample = first, .sequence = shape.sequence, .first_token = 0, .tokens = shape.sequence};
      context.stream = context.tokens;
      context.tape = &tape;
      context.loss = loss;
      context.step_tokens = tokens;

      // Step 5: read this rank's samples. The target of token t is token t + 1.
      const Tensor ids(memory, {share * shape.sequence}, DType::i32, Category::data);
      context.targets = Tensor(memory, ids.shape(), DType::i32, Category::data);
      std::vector<std::int64_t> samples(static_cast<std::size_t>(share));
      std::iota(samples.begin(), samples.end(), step * batch + first);
      fill_batch(language, samples, shape.sequence, {ids.values<std::int32_t>(), context.targets.values<std::int32_t>()});

      // Step 6: run all layers forward, then backward. The last layer, the head, adds the tokens' losses to `loss`.
      Tensor x = ids, dx;
      for (const LayerPointer& layer : model.layers.layers()) x = layer->forward(x, context);
      for (auto layer = model.layers.layers().rbegin(); layer != model.layers.layers().rend(); ++layer)
        dx = (*layer)->backward(dx, context);

      // Step 7: sum the gradients over the ranks (data parallelism). Otherwise each rank would train a different model.
      for (const ParameterPointer& p : model.parameters()) world.all_reduce(p->gradient.slice());
      world.all_reduce(loss.slice());

      // Step 8: update the weights with AdamW. The gradients are sums over all tokens of the batch. Dividing them by the
      // number of tokens gives means.
      for (const ParameterPointer& p : model.parameters()) numerics->check(p->site);  // throws if a sum was too large
      mean = static_cast<double>(loss.values<std::int64_t>()[0]) * numerics->unit(model.head->loss_site()) /
             static_cast<double>(tokens);
      if (step == 0) first_mean = mean;
      optimizer.step(rate.at(step), 1.0 / static_cast<double>(tokens), *numerics, {});
      if (world.rank() == 0) std::printf("step %2ld  loss %.17g\n", static_cast<long>(step + 1), mean);
    }

    // Step 9: check that the weights of all ranks are bit-identical.
    std::int64_t low = hash_of(model), high = low;
    world.all_reduce({&low, 1, DType::i64}, Redop::min);
    world.all_reduce({&high, 1, DType::i64}, Redop::max);
    if (low != high) throw Error(Exit::check, "replicas differ", "their weights have different hashes", "see step 7");
    if (!(mean < first_mean - 0.1)) throw Error(Exit::check, "nothing was learned", "the loss is too high", "see step 8");
    if (world.rank() == 0)
      std::printf("%d replicas with the same %.2f million weights, bit for bit; the loss cannot fall below %.4f\n",
                  world.size(), static_cast<double>(shape.parameters()) / 1e6, language.floor(shape.sequence));
  });
}
