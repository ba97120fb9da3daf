// `chorale show COLLECTIVE ALGORITHM` shows the schedules of an algorithm without running them. The command prints the
// contents of every rank after each round, the number of elements sent, the cost, and the order of the sums. The option
// --steps prints one line per step. The option --svg writes a space-time diagram. Without an algorithm, show lists all
// algorithms of the collective with their costs. `show pipeline SCHEDULE` does the same for pipeline schedules.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>

#include "collectives/analysis/drawing.hpp"
#include "collectives/schedule/chunking.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/hosts_option.hpp"
#include "experiments/show/show.hpp"
#include "experiments/show/show_pipeline.hpp"
#include "parallel/layout/layout.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

class Show final : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.add_positional("algorithm", words_, "a collective or `pipeline`, and an algorithm for it; default: all")
        .words("COLLECTIVE ALGORITHM")
        .suggest(known_words());
    options.add("ranks", ranks_, "number of ranks").range(1, most_ranks_shown);
    options.add("count", count_, "elements of the whole vector; 0: two per rank, or one per rank and chunk").range(0, 1e6);
    options.add("root", root_, "root of a broadcast, reduce, gather or scatter").range(0, 255);
    options.add("in-place", in_place_, "input and output are one buffer");
    hosts_.declare(options, "the ranks of each host, such as 2,3,1; default: all on one host");
    options.add("stages", stages_, "stages of a pipeline").range(1, 64);
    options.add("micro-batches", micro_batches_, "micro-batches per step of a pipeline").range(1, 512);
    options
        .add("chunks", chunks_,
             "number of chunks into which an algorithm, or a stage of a pipeline, is cut; 0: as few as possible")
        .range(0, 64);
    options.add("steps", steps_, "print the steps of every rank, one line each, instead of the picture");
    options.add("machine", machine_, "machine file whose prices are used instead of the default one's").words("FILE");
    options.add("svg", svg_, "write a space-time diagram to this file").words("FILE");
  }

  void check(const Launch&) override {
    if (words_.size() > 2)
      usage_error("show takes a collective and an algorithm", fmt::format("{} words were given", words_.size()),
                  "for example: " + program() + " show all_reduce ring");
    if (of_pipeline())
      refuse("a pipeline", {"ranks", "hosts", "count", "root", "in-place"}, "it has --stages, --micro-batches and --chunks");
    else
      refuse("a collective", {"stages", "micro-batches"}, "it has --ranks, --hosts, --count, --root and --in-place");
    hosts_.resolve(ranks_);
    if (root_ >= ranks_)
      usage_error("the root is not a rank", fmt::format("root {} of {} ranks", root_, ranks_), "choose 0 to ranks − 1");
    if (words_.size() < 2 && (steps_ || (chunks_ > 1 && !of_pipeline()) || !svg_.empty()))
      usage_error("--steps, --chunks and --svg are for one algorithm", fmt::format("{} words were given", words_.size()),
                  "for example: " + program() + " show all_reduce ring --steps");
    if (of_pipeline()) return require_answer(question());
    find_algorithms();
    if (words_.size() == 2 && !fits(*chosen_[0], problem(chosen_[0]->what)))
      usage_error(fmt::format("{} does not fit", join(words_, " ")), fmt::format("{} ranks", ranks_),
                  fmt::format("{} show {} --ranks {} lists those that do", program(), words_[0], ranks_));
  }

  int run(Session&) override {
    if (!svg_.empty()) write_svg();  // first, so that nothing is printed if writing fails
    if (of_pipeline())
      fmt::print("{}", answer_in_text(question(), steps_));
    else if (words_.size() == 2)
      fmt::print(
          "{}{}", describe_algorithm(*chosen_[0], plan(), steps_),
          on_screen(times_of(*chosen_[0], problem(chosen_[0]->what), static_cast<int>(std::max<std::int64_t>(1, chunks_)),
                             Selector({}, machine_for(machine_)))));
    else
      fmt::print("{}", on_screen(fmt::format("{} ranks{}, {} elements{}; {}", ranks_,
                                             hosts_.given() ? fmt::format(" ({})", hosts_.topology().text()) : "", count(),
                                             in_place_ ? ", in place" : "",
                                             list_algorithms(chosen_, [&](Collective what) { return problem(what); }))));
    if (!svg_.empty()) fmt::print("picture {}\n", svg_);
    return 0;
  }

 private:
  static std::vector<std::string> known_words() {
    std::vector<std::string> words{std::begin(collective_names), std::end(collective_names)};
    words.emplace_back("pipeline");
    for (const Algorithm& algorithm : all_algorithms())
      if (!std::ranges::count(words, algorithm.name)) words.emplace_back(algorithm.name);
    for (const PipelineAlgorithm& row : all_pipeline_schedules()) words.emplace_back(row.name);
    return words;
  }

  bool of_pipeline() const { return !words_.empty() && words_[0] == "pipeline"; }
  PipelineQuestion question() const { return {words_, {stages_, micro_batches_, chunks_}}; }

  // Refuses flags on the command line that do not apply. Settings from other sources can be meant for a different command.
  void refuse(const char* subject, std::initializer_list<const char*> flags, const char* fix) const {
    for (const char* flag : flags)
      if (options_->origin(flag) == "command line")
        usage_error(fmt::format("{} has no {}", subject, flag),
                    fmt::format("--{} {} was given for \"{}\"", flag, options_->find(flag)->text, join(words_, " ")), fix);
  }

  void find_algorithms() {
    std::vector<std::string> known;
    for (const Algorithm& algorithm : all_algorithms()) {
      const std::string what = name_of(algorithm.what), words = join(words_, " ");
      if (words_.size() == 2)
        known.push_back(fmt::format("{} {}", what, algorithm.name));
      else if (std::find(known.begin(), known.end(), what) == known.end())
        known.push_back(what);
      if (words_.empty() || words == (words_.size() == 2 ? known.back() : what)) chosen_.push_back(&algorithm);
    }
    if (!chosen_.empty()) return;
    if (words_.size() == 1) known.push_back("pipeline");
    const std::string subject = subject_of(words_[0]);
    if (words_.size() == 1 && !subject.empty())
      usage_error(fmt::format("{} is an algorithm, and show needs its collective too", words_[0]),
                  fmt::format("it is an algorithm of {}", subject),
                  fmt::format("{} show {} {}", program(), split(subject, ',').front(), words_[0]));
    if (words_.size() == 2 && subject_of(words_[0], words_[1]))
      usage_error("the collective comes first", fmt::format("\"{}\" was given", join(words_, " ")),
                  fmt::format("{} show {} {}", program(), words_[1], words_[0]));
    const std::string words = join(words_, " ");
    std::vector<std::string> own = known;  // the known algorithms of the given collective
    std::erase_if(own, [&](const std::string& name) { return !name.starts_with(words_[0] + " "); });
    usage_error(fmt::format("no {} \"{}\"", words_.size() == 2 ? "algorithm" : "collective", words),
                "there are " + join(own.empty() ? known : own, ", "), did_you_mean(words, known, otherwise()));
  }

  std::string otherwise() const {
    try {
      parse_layout(words_[0], 0);
      return fmt::format("a layout is drawn by: {} info --layout {}", program(), words_[0]);
    } catch (const Error&) {
      return "name one of these";
    }
  }

  // Whether `subject`, a collective or "pipeline", has an algorithm or a schedule of this name.
  static bool subject_of(const std::string& algorithm, const std::string& subject) {
    return std::ranges::count(split(subject_of(algorithm), ','), subject) > 0;
  }

  // The collectives that have an algorithm of this name, such as "all_reduce,all_gather"; "pipeline" for a pipeline
  // schedule.
  static std::string subject_of(const std::string& algorithm) {
    std::vector<std::string> subjects;
    for (const Algorithm& row : all_algorithms())
      if (algorithm == row.name) subjects.emplace_back(name_of(row.what));
    for (const PipelineAlgorithm& row : all_pipeline_schedules())
      if (algorithm == row.name) subjects.emplace_back("pipeline");
    return join(subjects, ",");
  }

  std::int64_t count() const { return count_ ? count_ : std::max<std::int64_t>(2, chunks_) * ranks_; }

  Problem problem(Collective what) const {
    return Problem::even(what, count(), static_cast<int>(ranks_), static_cast<int>(root_), in_place_,
                         hosts_.topology().host_of);
  }

  std::vector<Schedule> plan() const {
    std::vector<Schedule> ranks = plan_all_ranks(*chosen_[0], problem(chosen_[0]->what));
    for (Schedule& schedule : ranks)
      schedule = cut_into_chunks(schedule, static_cast<int>(std::max<std::int64_t>(1, chunks_)));
    return ranks;
  }

  std::string diagram() const {
    if (of_pipeline()) return answer_in_svg(question());
    const double n = std::max<double>(1, static_cast<double>(count()));
    const Price visible{1, 2 / n, 1 / n};  // with these prices, every step is visible, whatever the vector's length
    return draw_svg(plan(),
                    fmt::format("{}, {} ranks{}", join(words_, " "), ranks_,
                                hosts_.given() ? fmt::format(" ({})", hosts_.topology().text()) : ""),
                    1, visible);
  }

  void write_svg() const {
    const bool has_folder = std::filesystem::is_directory(std::filesystem::absolute(svg_).parent_path());
    const std::string why_not = has_folder ? replace_file(svg_, diagram()) : std::strerror(ENOENT);
    if (!why_not.empty())
      usage_error("cannot write the picture", fmt::format("{}: {}", svg_, why_not), "name a file that can be written");
  }

  const Options* options_ = nullptr;
  std::vector<std::string> words_;
  std::int64_t ranks_ = 4, count_ = 0, root_ = 0, stages_ = 4, micro_batches_ = 8, chunks_ = 0;
  bool in_place_ = false, steps_ = false;
  std::string svg_, machine_;
  HostsOption hosts_;
  std::vector<const Algorithm*> chosen_;
};

}  // namespace

std::unique_ptr<Command> make_show() { return std::make_unique<Show>(); }

}  // namespace chorale
