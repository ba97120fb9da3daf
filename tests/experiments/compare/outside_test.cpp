// Tests how `compare` finds a number in the output of an outside program, and the placeholders in that program's command.
#include "experiments/compare/outside.hpp"

#include "tests/catch.hpp"

namespace chorale::compare {
namespace {

TEST_CASE("the number beside tokens/s is found in a program's output") {
  for (const auto& [output, number] :
       std::vector<std::pair<std::string, double>>{{"step 1\ntokens/s = 1234.5\ndone", 1234.5},
                                                   {"tokens/s: 1,234", 1234},
                                                   {"throughput 1_234.25 tokens/s, loss 5.1", 1234.25},
                                                   {"torch 2.1 ranks=1 step=12ms tokens/s=803 loss=8.3", 803},
                                                   {"Tokens/s 1.5e3", 1500},
                                                   {"10 %\r20 %\r99 tokens/s\n", 99},
                                                   {"tokens/sec: 7.", 7},
                                                   {"step 10, tokens/s: 5210", 5210},
                                                   {"step 20 tokens/s=803", 803},
                                                   {"ranks=4, tokens/s = 803 in 2 s", 803},
                                                   {"5,210 tokens/sec", 5210},
                                                   {"max_tokens/s off\n5 tokens/s/GPU\n6 tokens/s", 6}}) {
    INFO(output);
    const Measured found = number_in(output, "");
    CHECK(found.trouble == "");
    CHECK(found.tokens_per_s == number);
  }
  CHECK(number_in("speed: 12 in units", "speed: (\\d+)").tokens_per_s == 12);
  CHECK(number_in("a=1 tokens/s\nb=2", "b=(\\d+)").tokens_per_s == 2);
}

TEST_CASE("a program's output without one positive number is refused with a reason") {
  const auto trouble = [](const std::string& output) { return number_in(output, "").trouble; };
  CHECK(trouble("") == "no line has tokens/s beside a number");
  CHECK(trouble("1.2k tokens/s") == "no line has tokens/s beside a number");
  CHECK(trouble("tokens/s: 1.2k") == "no line has tokens/s beside a number");
  CHECK_THAT(trouble("1 tokens/s\n2 tokens/s"), says("2 times tokens/s beside a number, the last 2: print one result"));
  CHECK(trouble("tokens/s: nan") == "nan is no positive number of tokens/s");
  CHECK(trouble("tokens/s: -3") == "-3 is no positive number of tokens/s");
  CHECK_THAT(trouble("step 20 tokens/s 803"), says("\"step 20 tokens/s 803\" has a number on both sides of tokens/s"));
  CHECK(trouble("0 tokens/s") == "0 is no positive number of tokens/s");
  CHECK_FALSE(trouble(std::string(100'000, '7') + " tokens/s").empty());  // a long line must not exhaust the stack
  CHECK(number_in("x", "y=(\\d+)").trouble == "no line has a match of y=(\\d+)");
  CHECK(why_no_pattern("(\\d+) of (\\d+)") == "it has 2 groups in parentheses, and must have one, for the number");
  CHECK_FALSE(why_no_pattern("speed: (").empty());
  CHECK(why_no_pattern("speed: (.*)").empty());
}

TEST_CASE("varied settings fill the command of another program, and each has a place there") {
  const auto run_of = [](const std::string& text, std::vector<Mistake>& mistakes) {
    const Suite suite = parse_suite("s.toml", text, mistakes);
    return suite.runs;
  };
  std::vector<Mistake> mistakes;
  const auto runs = run_of(
      "[[runs]]\ncommand = 'my.py  --lr={lr} {\"a\":1}'\nvary.lr = [0.1, 0.2]\n"
      "[[runs]]\ncommand = ['sh', '-c', 'echo {ranks} $HOME']\nlabel = 'mine'\nranks = 3\n",
      mistakes);
  CHECK(mistakes.empty());
  REQUIRE(runs.size() == 3);
  CHECK(runs[1].outside->words == std::vector<std::string>{"my.py", "--lr=0.2", "{\"a\":1}"});
  CHECK(runs[1].outside->label == "my.py --lr=0.2 {\"a\":1}");
  CHECK(runs[2].outside->words == std::vector<std::string>{"sh", "-c", "echo 3 $HOME"});
  CHECK(runs[2].outside->label == "mine");
  run_of("[[runs]]\ncommand = 'a b {rate}'\nvary.lr = [0.1]\n", mistakes);
  REQUIRE(mistakes.size() == 2);
  CHECK_THAT(mistakes[0].text, says("the command has {rate}, but the run sets no rate"));
  CHECK_THAT(mistakes[1].text, says("lr has no effect: the command has no {lr}"));
  mistakes.clear();
  run_of("[[runs]]\ncommand = 'a b'\n[[runs]]\ncommand = 'a b'\nenvironment = ['X=1']\n", mistakes);
  REQUIRE(mistakes.size() == 1);
  CHECK_THAT(mistakes[0].text, says("two runs are called \"a b\": name them apart with label = …"));
}

}  // namespace
}  // namespace chorale::compare
