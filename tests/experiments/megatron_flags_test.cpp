// Tests Megatron's flags on the command line, in the environment and in a config file. Covers the options that these flags
// set, and errors.
#include "experiments/train/megatron_flags.hpp"

#include <fstream>
#include <iterator>
#include <set>

#include "experiments/common/command.hpp"
#include "src/base/text.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using Words = std::vector<std::string>;

namespace {

// The values of the options of `chorale train` after all sources of settings are combined.
struct Resolved {
  explicit Resolved(const Words& arguments, const Words& variables = {}) {
    resolve(train.options, arguments, variables, {}, train.command->presets(), train.command->foreign());
  }
  std::string operator[](const std::string& name) const { return train.options.find(name)->text; }
  std::string notes() const { return join(train.options.notes(), "\n"); }
  DeclaredCommand train{find_command("train")};
};

std::string refused(const Words& arguments, const Words& variables = {}) {
  return test::refused([&] { Resolved(arguments, variables); });
}

}  // namespace

TEST_CASE("the flags of a Megatron script for Llama select Llama here") {
  const Resolved r(split(
      "--family llama --num-layers 4 --hidden-size 96 --ffn-hidden-size 256 --num-attention-heads 8 --group-query-attention "
      "--num-query-groups 4 --seq-length 24 --max-position-embeddings 24 --normalization RMSNorm --swiglu "
      "--disable-bias-linear --position-embedding-type rope --rotary-base 500000 --untie-embeddings-and-output-weights "
      "--attention-dropout 0.0 --hidden-dropout 0 --init-method-std 0.02 --bf16 --micro-batch-size 1 --global-batch-size 8 "
      "--train-iters 50 --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-decay-iters 40 --lr-warmup-fraction .1 "
      "--clip-grad 1.0 --optimizer adam --adam-beta1 0.9 --adam-beta2 0.95 --weight-decay 0.1 "
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer "
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --use-flash-attn "
      "--transformer-impl transformer_engine --no-gradient-accumulation-fusion --use-mcore-models "
      "--data-path x_text_document --split 99,1,0 --log-interval 1 --save-interval 10 --eval-interval 10",
      ' '));
  CHECK((r["dtype"] == "bf16" && r["untie-embeddings"] == "true" && r["recompute"] == "full" && r["optimizer"] == "adamw"));
  CHECK((r["tp"] == "2" && r["pp"] == "2" && r["data"] == "x_text_document" && r["dropout"] == "0"));
  CHECK(r.train.options.origin("dtype") == "bf16 (command line)");
  CHECK_THAT(r.notes(), says("use-flash-attn (command line) has no effect: attention never stores scores here"));
}

TEST_CASE("Megatron's names work in the environment and in config files") {
  CHECK(Resolved({}, {"CHORALE_BF16=true"})["dtype"] == "bf16");
  CHECK(Resolved({"--bf16=false"})["dtype"] == "f32");
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "a.toml").string();
  std::ofstream(file) << "fp16 = true\nrecompute_granularity = 'selective'\n";
  const Resolved r({"--config", file});
  CHECK(
      (r["dtype"] == "f16" && r["recompute"] == "selective" && r.train.options.origin("dtype") == "fp16 (" + file + ":1)"));
  CHECK(Resolved({"--config", file, "--dtype", "f32"})["dtype"] == "f32");  // the command line overrides the config file
}

TEST_CASE("two names of one option cannot have different values in one source") {
  CHECK_THAT(refused({"--bf16", "--fp16"}), says("two values for dtype") && says("f16 from fp16 (command line)"));
  CHECK_THAT(refused({"--bf16", "--dtype", "f32"}), says("f32 from command line"));
  CHECK_THAT(refused({"--hidden-dropout", "0.1", "--attention-dropout", "0"}), says("two values for dropout"));
}

TEST_CASE("Megatron's flags that describe the model must agree with the model") {
  CHECK_THAT(refused({"--swiglu"}), says("requires family = llama, but family = gpt2 (default)") && says("--family llama"));
  CHECK_THAT(refused({"--family", "llama", "--normalization", "LayerNorm"}), says("requires family = gpt2"));
  CHECK_THAT(refused({"--position-embedding-type", "none"}), says("rope or learned_absolute is accepted"));
  CHECK_THAT(refused({"--group-query-attention"}), says("requires num-query-groups other than 0"));
  CHECK_THAT(refused({"--max-position-embeddings", "4096", "--seq-length", "2048"}),
             says("seq-length = 2048 (command line)"));
  CHECK_THAT(refused({"--overlap-grad-reduce", "--reducer", "naive"}), says("requires reducer = bucketed"));
  CHECK_THAT(refused({"--accumulate-allreduce-grads-in-fp32", "--grad-dtype", "bf16"}),
             says("requires grad-dtype other than bf16"));
  CHECK(refused({"--accumulate-allreduce-grads-in-fp32", "--grad-dtype", "f32"}) == "accepted");
  CHECK(Resolved({"--grad-reduce-in-bf16"})["grad-dtype"] == "bf16");
  CHECK_THAT(refused({"--cp-comm-type", "p2p"}), says("all_gather is accepted; use --context-scheme"));
  CHECK(refused({"--rotary-percent", "1", "--context-parallel-size", "1", "--split", "99,1,0"}) == "accepted");
  CHECK(Resolved({"--recompute_granularity", "full"})["recompute"] == "full");  // underscores, as in Megatron-DeepSpeed
}

TEST_CASE("all unsupported Megatron flags are refused together, with replacements") {
  CHECK_THAT(refused({"--eval-iters", "10"}), says("eval-iters belongs to another program") && says("--eval-samples"));
  CHECK_THAT(refused({"--vocab-file", "v", "--merge-file", "m", "--tokenizer-model", "c", "--split", "969,30,1"}),
             says("4 settings of chorale train cannot be used\n") &&
                 says("\n  split 969,30,1 (command line): 99,1,0 is accepted; ") &&
                 says("\n  merge-file m (command line): ") && says("\n  tokenizer-model c (command line): ") &&
                 says("docs/other_programs.md"));
  // Combines refused flags with unknown flags, wrong values, and a flag that contradicts the model.
  const std::string all = refused({"--vocab-file", "v", "--frobnicate", "7", "--dtype", "fp16", "--swiglu", "--epochs=3"});
  CHECK_THAT(all, says("5 settings of chorale train") && says("\n  vocab-file v (command line): training reads") &&
                      says("\n  unknown flag --frobnicate\n") && says("did you mean f16?") &&
                      says("\n  swiglu (command line) requires family = llama, but family = gpt2 (default)") &&
                      says("\n  unknown flag --epochs: did you mean --train-iters? a run has steps"));
  CHECK(Resolved({"--family", "llama", "--no-position-embedding"})["family"] == "llama");
  CHECK_THAT(refused({"--no-position-embedding"}), says("requires family = llama"));
  CHECK_THAT(refused({"--rampup-batch-size", "16", "16", "1000"}), says("--global-batch-size is the same in every step"));
  CHECK_THAT(refused({}, {"CHORALE_TOKENIZER_TYPE=GPT2BPETokenizer"}), says("CHORALE_TOKENIZER_TYPE"));
}

TEST_CASE("every row of Megatron's table is valid and documented") {
  const DeclaredCommand train(find_command("train"));
  std::set<std::string> seen;
  for (const Word& word : train::megatron_flags()) {
    INFO(word.name);
    CHECK(seen.insert(word.name).second);
    const Option* const ours = train.options.find(word.name);
    CHECK((ours != nullptr) == (word.means == Word::Means::same));
    if (ours) CHECK(ours->name == word.option);
    if (!word.option.empty()) CHECK(train.options.find(word.option));
    if (word.means == Word::Means::refused || word.means == Word::Means::nothing) CHECK(!word.about.empty());
  }
  std::ifstream file("docs/other_programs.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& row : split(train::megatron_table(), '\n')) CHECK_THAT(page, says(row));
  CHECK(seen.size() > 100);
}
