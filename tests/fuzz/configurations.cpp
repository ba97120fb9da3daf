// Fuzz targets for config files and command lines. These targets read and check the input as the program does before MPI
// starts.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/choice/tuning.hpp"
#include "experiments/common/command.hpp"
#include "experiments/plan/published_series.hpp"
#include "parallel/state/hugging_face.hpp"
#include "src/base/error.hpp"
#include "src/base/machine_file.hpp"
#include "src/base/text.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/target.hpp"

namespace chorale::test {

void check_command(const std::string& command, const std::vector<std::string>& arguments) {
  DeclaredCommand(find_command(command)).take(arguments, {}, {}, {});
}

void fuzz_toml(std::string_view input) {
  put_bytes("config.toml", input);
  check_command("train", {"--config", "config.toml", "--run-dir", "."});
}

void fuzz_json(std::string_view input) {
  put_bytes("config.json", input);
  check_command("train", {"--config", "config.json", "--run-dir", "."});
}

void fuzz_deepspeed(std::string_view input) {
  put_bytes("ds.json", input);
  check_command("train", {"--ds-config", "ds.json", "--run-dir", "."});
}

// Each line of the input is a word of the command line, and the first line is the command. Lines of the form CHORALE_NAME=…
// are environment variables.
void fuzz_command_line(std::string_view input) {
  std::vector<std::string> arguments, variables;
  for (std::string& line : split(std::string(input), '\n')) {
    std::ranges::replace(line, '/', '_');  // without slashes, no command can create folders elsewhere
    if (!line.empty()) (line.starts_with("CHORALE_") ? variables : arguments).push_back(line);
  }
  if (arguments.empty()) arguments.emplace_back();
  DeclaredCommand(find_command(arguments[0])).take({arguments.begin() + 1, arguments.end()}, variables, {}, {});
}

void fuzz_suite(std::string_view input) {
  put_bytes("suite.toml", input);
  check_command("compare", {"suite.toml", "--run-dir", "."});
}

// If a machine file is accepted, the machine must be unchanged after it is written and read again.
void fuzz_machine(std::string_view input) {
  const Machine machine = parse_machine(std::string(input), "machine.toml");
  const std::string text = to_toml(machine);
  if (to_toml(parse_machine(text, "machine.toml")) != text) throw std::logic_error("the machine has changed:\n" + text);
}

void fuzz_tuning(std::string_view input) {
  const TuningTable table = parse_tuning(std::string(input), "tuning.json");
  for (const Tuned& choice : table.choices) choice.why();
  parse_tuning(text_of(table), "tuning.json");
}

void fuzz_assumptions(std::string_view input) {
  put_bytes("assumptions.toml", input);
  plan::read_series("assumptions.toml");
}

void fuzz_model_config(std::string_view input) {
  const ModelShape shape = shape_of_config(std::string(input), "config.json");
  config_of_shape(shape, DType::f32);
}

}  // namespace chorale::test
