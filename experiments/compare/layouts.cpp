#include "experiments/compare/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/compare/prepared.hpp"
#include "experiments/plan/candidates.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/layout_flags.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"

namespace chorale::compare {
namespace {

// Returns the layouts that `plan --layout all` lists for this number of ranks: every legal layout, without the pipeline
// schedules that another schedule of the same layout dominates.
std::vector<std::string> every_layout(std::vector<Setting> given, std::int64_t world) {
  train::Flags flags;
  train::LayoutFlags layout_flags;
  std::string load, load_hf;
  Options options("chorale train");
  flags.declare(options);
  layout_flags.take_all();
  layout_flags.declare(options);
  flags.declare_parallel(options, layout_flags);
  options.add("load", load, "");  // declared, because the model's shape can come from a stored model
  options.add("load-hf", load_hf, "");
  std::erase_if(given, [&](const Setting& setting) { return !options.find(setting.key); });
  given.push_back({"layout", "all", "command line", Source::command_line});
  const auto train = find_command("train").make();
  apply(options, given, train->presets(), train->foreign());

  const OptionsOf options_of = [&](const Layout& layout) { return flags.on(layout); };
  std::vector<plan::Candidate> candidates;
  for (const Layout& layout : plan::legal_layouts(flags.limits(world), options_of,
                                                  [&](const Layout& layout) { return layout_flags.allows(layout); }))
    candidates.push_back(plan::weigh({.options = options_of(layout), .layout = layout}));
  const std::vector<std::string> words =
      each(plan::in_order(std::move(candidates), 0).rows, [](const plan::Candidate& row) { return to_string(row.layout); });
  if (words.empty())
    usage_error("no layout is legal", fmt::format("on {} ranks, with this model, this batch and the given options", world),
                "start another number of ranks, or give another batch size");
  return words;
}

// The number of ranks of a layout. A layout without dp uses all ranks that were started.
int ranks_of(const std::string& word, const Launch& launch) {
  const Layout layout = parse_layout(word, 0);
  const std::int64_t ranks = layout.replicas() > 0 ? layout.ranks() : launch.size;
  if (ranks > launch.size)
    usage_error(
        fmt::format("layout {} needs {} ranks, {} {} started", word, ranks, launch.size, launch.size > 1 ? "were" : "was"),
        "--layouts lists this layout", command_on(ranks, "compare …"));
  return static_cast<int>(ranks);
}

// Throws the usage errors in the options of a run. Too little memory is not a usage error; a row of the comparison reports
// it.
void require_sound(const SuiteRun& run, const std::filesystem::path& parent, const Launch& launch) {
  try {
    prepare(run, parent, "", {.launcher = "compare", .rank = launch.rank, .size = run.processes(1)});
  } catch (const NoRoom&) {}
}

}  // namespace

std::string suite_of_layouts(const std::vector<std::string>& words, const std::vector<Setting>& given,
                             const std::filesystem::path& parent, std::int64_t fill_memory, const Launch& launch) {
  std::vector<Setting> settings = given;
  if (!find(given, "no-save") && !find(given, "save-interval")) settings.push_back({"no-save", "true", "compare --layouts"});
  const Setting* const backend = find(given, "backend");
  const bool simulated = backend && is_simulated(backend->text);
  const bool all = words == std::vector<std::string>{"all"};
  if (all && simulated)
    usage_error("the number of simulated ranks is not known", fmt::format("--layouts all --backend {}", backend->text),
                fmt::format("name layouts, or search: chorale plan --machine {} --ranks N --search",
                            simulated_machine(backend->text)));
  const std::vector<std::string> layouts = all ? every_layout(given, launch.size) : words;
  const Setting* const preset = find(given, "preset");
  const std::string model = preset ? preset->text : "this model";
  const std::string room =
      fill_memory > 0 ? fmt::format(" with the largest micro-batch in {} per rank", human_bytes(fill_memory)) : "";
  const std::string question = layouts.size() == 1
                                   ? fmt::format("How fast does {} train {}{}?", layouts[0], model, room)
                                   : fmt::format("Which of {} layouts trains {} fastest{}?", layouts.size(), model, room);
  std::string text = fmt::format("question = {}\nrepetitions = {}\n", quoted_toml(question), simulated ? 1 : 6);
  if (fill_memory > 0) text += fmt::format("fill-memory = {}\n", quoted_toml(std::to_string(fill_memory)));
  for (const std::string& word : layouts) {
    SuiteRun run{.name = word, .command = "train", .ranks = simulated ? 0 : ranks_of(word, launch), .settings = settings};
    run.settings.push_back({"layout", word, "--layouts", Source::command_line});
    require_sound(run, parent, launch);
    text += "\n[[runs]]\n";
    for (const Setting& setting : settings) text += fmt::format("{} = {}\n", setting.key, quoted_toml(setting.text));
    if (!simulated) text += fmt::format("ranks = {}\n", run.ranks);
    text += fmt::format("vary.layout = [{}]\n", quoted_toml(word));
  }
  return text;
}

}  // namespace chorale::compare
