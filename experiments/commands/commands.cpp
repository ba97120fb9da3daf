#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <chorale/problem.hpp>
#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/each.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/text.hpp"

namespace chorale {

MakeCommand make_bench, make_completion, make_compare, make_data, make_explain, make_export, make_generate, make_info,
    make_keep, make_kernels, make_launch, make_man, make_plan, make_prove, make_report, make_resize, make_show, make_train,
    make_tune, make_verify, make_watch;

// To add a subcommand, add a file to this folder, its function above, and a line here.
const std::vector<CommandRow>& all_commands() {
  static const std::vector<CommandRow> table{
      {"bench", "time collectives, and check every element", "build/chorale bench all_reduce --backend threads -e 64K", true,
       make_bench, "collectives"},
      {"compare", "run many configurations in turns, in one launch, and report how they differ",
       "mpirun -np 2 build/chorale compare small", true, make_compare, "training"},
      {"completion", "print a shell script that completes commands, options and their values",
       "build/chorale completion bash", false, make_completion, "the program"},
      {"data", "tokenize text, learn a vocabulary, show token files; print the floor of the synthetic language",
       "build/chorale data floor --vocabulary 4096", false, make_data, "training"},
      {"explain", "say why a run ended or hung, and show the last calls of every rank", "build/chorale explain runs/latest",
       false, make_explain, "records"},
      {"export", "write a run's weights as a folder that Hugging Face's libraries load",
       "build/chorale export --load runs/latest --out model", false, make_export, "training"},
      {"generate", "generate text with a trained model", "build/chorale generate --load runs/latest --tokens 20", true,
       make_generate, "training"},
      {"info", "show what is built in, what works on this machine, and why other parts do not",
       "build/chorale info --format json", true, make_info, "the program"},
      {"keep", "hold snapshots on a host, for chorale launch, which starts it", "build/chorale keep NAME HOST", false,
       make_keep, "training"},
      {"kernels",
       "time each kernel of a training step on the host, beside the time of its flops or bytes at the peak (bench kernels)",
       "build/chorale bench kernels --preset tiny --steps 2", true, make_kernels, "training"},
      {"launch", "train, and go on after a rank or a host is lost, on another layout and with the same result",
       "build/chorale launch --ranks 2 --run-dir runs -- train --preset tiny --train-iters 20", false, make_launch,
       "training"},
      {"man", "print the manual page", "build/chorale man", false, make_man, "the program"},
      {"plan", "predict memory, traffic and arithmetic of a step on any layout, without running it",
       "build/chorale plan --preset gpt3-175b --layout dp64.tp8.pp16.z1.sp", false, make_plan, "training"},
      {"prove", "train on every layout, and prove that all give the same bits as one rank",
       "build/chorale prove --steps 2 --run-dir runs", true, make_prove, "training"},
      {"report", "sum up records, print their tables, draw their figures, compare them", "build/chorale report runs/latest",
       false, make_report, "records"},
      {"resize", "change the number of ranks of a launch that runs", "build/chorale resize 4 runs/latest", false,
       make_resize, "training"},
      {"show", "draw a collective algorithm: its rounds, its cost, the order of its sums; or a pipeline schedule",
       "build/chorale show all_reduce ring --ranks 4", false, make_show, "collectives"},
      {"train", "train a transformer, and record every step",
       "build/chorale train --preset tiny --train-iters 20 --lr 3e-3 --run-dir runs", true, make_train, "training"},
      {"tune", "find the fastest algorithm for every size, for --algorithm auto",
       "build/chorale tune all_reduce --backend threads -e 4K --tuning tuning.json", true, make_tune, "collectives"},
      {"verify", "prove every collective algorithm and every pipeline schedule", "build/chorale verify --ranks 16", false,
       make_verify, "collectives"},
      {"watch", "live status of a run: loss, speed, memory, waiting", "build/chorale watch runs/latest --once", false,
       make_watch, "records"},
  };
  return table;
}

namespace {

// Suggests a replacement for an unknown command. Users of other programs can type the name of such a program, for example
// all_reduce_perf.
std::string instead_of(const std::string& name, const std::vector<std::string>& names) {
  if (name.starts_with("-")) return fmt::format("name a command first: {} train {} …", program(), name);
  std::string operation = replace_all(lower(name), '-', '_');  // nccl-tests has all_reduce_perf
  if (operation.ends_with("_perf")) operation.resize(operation.size() - 5);
  for (const char* const collective : collective_names)
    if (operation == collective)
      return fmt::format("{0} bench {1} times it, {0} show {1} draws its algorithms", program(), operation);
  const std::pair<std::vector<std::string>, const char*> others[] = {
      {{"run", "start", "fit", "pretrain", "finetune"}, "train"},
      {{"torchrun", "deepspeed", "elastic"}, "launch"},
      {{"benchmark", "perf", "osu", "nccl-tests", "time"}, "bench"},
      {{"test", "check", "selftest"}, "prove"},
      {{"sweep", "search", "suite"}, "compare"},
      {{"version"}, "--version"},
      {{"list", "devices", "env"}, "info"},
      {{"sample", "infer", "chat"}, "generate"},
      {{"draw", "visualize", "viz"}, "show"},
      {{"convert", "save"}, "export"},
      {{"tokenize", "prepare"}, "data tokenize"},
      {{"logs", "summary", "results", "print"}, "report"},
      {{"monitor", "top", "status"}, "watch"},
      {{"estimate", "predict"}, "plan"}};
  for (const auto& [theirs, ours] : others)
    if (std::ranges::count(theirs, lower(name))) return fmt::format("did you mean {} {}?", program(), ours);
  return did_you_mean(name, names, program() + " --help explains them");
}

}  // namespace

const CommandRow& find_command(const std::string& name) {
  for (const CommandRow& row : all_commands())
    if (name == row.name) return row;
  const std::vector<std::string> names = names_of_rows(all_commands());
  usage_error(fmt::format("unknown command \"{}\"", name), "the commands are " + join(names, ", "), instead_of(name, names));
}

std::vector<std::vector<const CommandRow*>> commands_by_group() {
  return grouped(all_commands(), [](const CommandRow& row) { return std::string_view(row.group); });
}

std::vector<std::string> names_of_all_commands() {
  std::vector<std::string> names{"bf16-attention", "cuda-plugin", "cuda-aware", "guard", "supervisor", "keeper", "timeout"};
  for (const CommandRow& row : all_commands())
    for (std::string& name : DeclaredCommand(row).options.names()) names.push_back(std::move(name));
  return names;
}

DeclaredCommand::DeclaredCommand(const CommandRow& row) : command(row.make()), options(fmt::format("chorale {}", row.name)) {
  command->declare(options);
  options.section("every command", Effect::output);
  options.add("log-level", log_level, "what the console shows; log files keep everything").one_of(Log::levels());
  options.add("config", "read options from a TOML or JSON file").words("FILE");
}

void DeclaredCommand::take(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
                           const std::vector<std::string>& known, const Launch& launch) try {
  resolve(options, arguments, variables, known, command->presets(), command->foreign());
  command->check(launch);
} catch (const std::filesystem::filesystem_error& error) {
  usage_error("a path cannot be used", fmt::format("{}: {}", error.path1().string(), error.code().message()),
              "check the paths among the options");
}

}  // namespace chorale
