// Tests command lines that new users may type if they know PyTorch, Megatron-LM, DeepSpeed or nccl-tests. Every error must
// suggest a correction.
#include "experiments/common/command.hpp"
#include "src/base/text.hpp"
#include "tests/refused.hpp"

using namespace chorale;

namespace {

// A command line, such as "train --steps 5", and the text that the error must contain.
struct Typed {
  const char *line, *answer;
};

constexpr Typed typed[] = {
    {"train --steps 5", "did you mean --train-iters?"},
    {"train --batch-size 8", "did you mean --global-batch-size? it counts the sequences of all ranks"},
    {"train --epochs 3", "did you mean --train-iters? a run has steps, not epochs"},
    {"train tiny", "did you mean --preset tiny?"},
    {"train dp2.tp2", "did you mean --layout dp2.tp2?"},
    {"train lr=1e-3", "did you mean --lr 1e-3?"},
    {"train my.toml", "did you mean --config my.toml?"},
    {"train —preset tiny", "did you mean --preset?"},
    {"train --lr", "give it: --lr X: highest learning rate"},
    {"train --dtype fp16", "did you mean f16?"},
    {"train --dtype bfloat16", "did you mean bf16?"},
    {"train --device gpu", "did you mean cuda?"},
    {"train --optimizer AdamW", "did you mean adamw?"},
    {"train --schedule 1F1B", "did you mean 1f1b?"},
    {"train --train-iters 1e3", "did you mean 1000?"},
    {"train --train-iters 2k", "did you mean 2000?"},
    {"train --layout dp=2,tp=2", "did you mean dp2.tp2?"},
    {"train --layout DP2xTP2", "did you mean dp2.tp2?"},
    {"train --layout fsdp", "did you mean z3?"},
    {"bench all_reduce -o sum", "did you mean --op?"},
    {"train --fsdp", "did you mean --zero? FSDP is ZeRO-3"},
    {"train --nproc-per-node 4", "mpirun -n 4"},
    {"train --scheduler cosine", "did you mean --lr-decay-style?"},
    {"train --hlep", "did you mean --help?"},
    {"train --trace-steps 3-4", "did you mean --trace-steps 3:4?"},
    {"plan --gpus 8", "did you mean --ranks?"},
    {"generate hello", "did you mean --prompt \"hello\"?"},
    {"show ring", "show all_reduce ring"},
    {"show ring all_reduce", "show all_reduce ring"},
    {"show 1f1b", "show pipeline 1f1b"},
    {"show dp2.tp2", "info --layout dp2.tp2"},
    {"show all_reduce rnig", "there are all_reduce ring, all_reduce binomial_tree"},
    {"bench all_reduce --iters 10", "did you mean --repetitions?"},
    {"bench all_reduce -g 1", "mpirun -n 4"},
    {"bench all_reduce -d float", "did you mean --dtype?"},
    {"bench all_reduce --dtype float", "did you mean \"f32\"?"},
    {"bench ring", "did you mean --algorithm ring?"},
    {"bench --size 1M", "did you mean --end? -b 1M -e 1M measures one size"},
    {"prove dp2", "did you mean --layouts dp2?"},
    {"compare dp2 tp2", "did you mean --layouts dp2,tp2?"},
    {"info --json", "did you mean --format?"},
    {"data train-bpe x.txt --vocab 1000", "did you mean --vocabulary?"},
};

}  // namespace

TEST_CASE("what a newcomer types by habit is answered with the fix") {
  for (const auto& [line, answer] : typed) {
    INFO(line);
    std::vector<std::string> words = split(line, ' ');
    DeclaredCommand declared(find_command(words[0]));
    words.erase(words.begin());
    CHECK_THAT(test::refused([&] { declared.take(words, {}, {}, {}); }), says(answer));
  }
  for (const auto& [command, answer] : {std::pair{"run", " train?"},
                                        {"torchrun", " launch?"},
                                        {"all_reduce_perf", " bench all_reduce times it, "},
                                        {"all-gather", " bench all_gather times it, "},
                                        {"--preset", "name a command first: "},
                                        {"trian", "did you mean \"train\"?"}}) {
    INFO(command);
    CHECK_THAT(test::refused([&] { find_command(command); }), says(answer));
  }
}
