// `chorale report FILE.h5…` shows records, in six ways.
//
//   report runs/latest                 a summary of one screen; --all: every group as a table with its newest rows
//   report suite.h5 --html             a page with figures, in the record's folder or in a given file that ends in .html
//   report run.h5 --svg DIR            its figures, one SVG file each
//   report run.h5 --tensorboard DIR    event files for TensorBoard, one per run
//   report A.h5 B.h5 --compare         the differences of their conditions, then of each common metric
//   report new.h5 --check old.h5       the same; exits with 3 if a speed fell significantly and beyond the threshold
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/parse_number.hpp"
#include "experiments/report/comparison.hpp"
#include "experiments/report/conditions.hpp"
#include "experiments/report/csv_rows.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/record_tables.hpp"
#include "experiments/report/repeated.hpp"
#include "experiments/report/run_summary.hpp"
#include "experiments/report/suite_summary.hpp"
#include "experiments/report/tensorboard.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;

// Reads a threshold: "5%", "5 %" and "0.05" have the same meaning. "5" is refused, because it could mean 5 % or 500 %.
double share_in(const std::string& text) {
  std::string number = trim(text);
  const bool percent = !number.empty() && number.back() == '%';
  if (percent) number = trim(number.substr(0, number.size() - 1));
  const auto value = parse_number(number);
  if (!value || !(*value >= 0 && *value < (percent ? INFINITY : 1)))
    usage_error("invalid threshold", fmt::format("--threshold {}", text), "write 5% or 0.05");
  return percent ? *value / 100 : *value;
}

class Report final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional(
        "file", files_,
        "records, folders of runs, and rows that were measured elsewhere (*.csv); default: runs/latest; with "
        "--html, also the page to write (*.html)");
    options.add("html", html_, "write a page with figures; default: report.html beside the first record");
    options.add("svg", svg_, "write the figures of the page into this folder, one SVG file each").words("DIR");
    options.add("tensorboard", tensorboard_, "write TensorBoard's event files into this folder: tensorboard --logdir DIR")
        .words("DIR");
    options.add("compare", compare_, "compare the second record with the first");
    options
        .add("check", reference_,
             "compare the records with these; exit with 3 if a speed fell by more than the threshold and more than chance, "
             "with 2 if there are too few launches to tell")
        .words("FILE.h5,…");
    options.add("threshold", threshold_, "the largest slowdown that --check accepts").words("PERCENT");
    options.add("all", all_, "print every group as a table, instead of a summary");
    options.add("group", group_, "print this group only, such as ranks or train").words("NAME");
    options.add("warm-up", warm_up_, "first steps to exclude from speeds; -1: as the suite says, else a tenth, at most ten")
        .range(-1, 1e9);
    report::add_metric(options, metric_);
    options
        .add("rows", rows_,
             "print this many of the newest rows of each table, and lines of each text; 0: all, the default for csv, json "
             "and md")
        .range(0, 1e9);
    options.add("format", format_, "output format").one_of(TextTable::formats());
  }

  void check(const Launch&) override {
    const auto names_page = [](const std::string& file) { return fs::path(file).extension() == ".html"; };
    for (const std::string& file : files_)
      if (html_ && names_page(file)) page_ = file;
    if (html_) std::erase_if(files_, names_page);
    if (std::ranges::all_of(files_, report::is_csv)) files_.insert(files_.begin(), "runs/latest");
    for (std::vector<std::string>* const files : {&files_, &reference_})
      for (std::string& file : *files) file = record_named(file).string();
    if (html_ + compare_ + !reference_.empty() + !tensorboard_.empty() + !svg_.empty() > 1)
      usage_error("--html, --svg, --tensorboard, --compare and --check exclude one another", "several of them were given",
                  "give one at a time");
    if (compare_ && files_.size() != 2)
      usage_error("--compare needs two records", fmt::format("{} given: {}", files_.size(), join(files_, " ")),
                  program() + " report A.h5 B.h5 --compare");
    if (!tensorboard_.empty()) require_writable(tensorboard_, "--tensorboard");
    if (!svg_.empty()) require_writable(svg_, "--svg");
    if (!compare_) report::leave_out_repeated(files_);
    report::leave_out_repeated(reference_);
    share_ = share_in(threshold_);
    if (html_ || compare_ || !reference_.empty() || !tensorboard_.empty() || !svg_.empty())
      return;  // with these options, the records are read as runs
    for (const std::string& file : files_)
      if (!report::is_csv(file)) records_.push_back({file, Reader(file)});
    for (const report::RecordFile& record : records_)
      if (!group_.empty()) report::require_group(record, group_);
  }

  int run(Session& session) override {
    if (html_) return write_page();
    if (!svg_.empty()) return write_pictures();
    if (!tensorboard_.empty()) {
      fmt::print("{}\n", join(report::write_tensorboard(report::read_records(files_), tensorboard_), "\n"));
      return 0;
    }
    if (compare_) {
      compared({files_[0]}, {files_[1]});
      return 0;
    }
    if (!reference_.empty()) return check_speed();
    const bool default_rows = session.options.origin("rows") == "default";
    if (format_ != "text" && default_rows) rows_ = 0;  // programs get all rows
    const bool are_suites =
        std::ranges::all_of(records_, [](const report::RecordFile& record) { return report::holds_summary(record.reader); });
    if (format_ != "text" && are_suites && !all_ && group_.empty()) group_ = "summary";
    const report::WantedTables wanted{group_, rows_ == 0 ? -1 : rows_, format_, screen_columns()};
    if (format_ != "text" || !group_.empty() || all_ || !default_rows) {
      take_rows();
      report::print_tables(records_, wanted);
      return 0;
    }
    for (std::size_t r = 0; r < records_.size(); ++r) {
      const std::vector<std::string> files = with_rows(records_[r].name);
      const bool compares = files.size() > 1 || report::holds_runs(records_[r].reader);
      fmt::print("{}{}", r > 0 ? "\n" : "",
                 compares ? report::suite_summary(files, warm_up_, metric_, screen_columns())
                          : report::run_summary(records_[r].name, warm_up_, screen_columns()));
    }
    return 0;
  }

 private:
  // Returns the record, and the CSV files in its folder. Reports show the rows of these files together with the runs of the
  // record.
  std::vector<std::string> with_rows(const std::string& record) const {
    std::vector<std::string> files{record};
    std::ranges::copy_if(files_, std::back_inserter(files), report::is_csv);
    return report::with_rows_beside(files);
  }

  // Adds to each suite the rows of the CSV files in its folder. Refuses CSV files if no printed table shows their rows.
  void take_rows() {
    for (report::RecordFile& record : records_)
      if (const auto files = with_rows(record.name); files.size() > 1 && report::holds_summary(record.reader))
        for (report::RecordedRun& run : report::read_records(files).runs)
          if (!run.source) record.rows.push_back(std::move(run));
    const auto csv = std::ranges::find_if(files_, report::is_csv);
    const bool prints_summary = group_.empty() || group_ == "summary" || group_ == "/summary";
    for (const report::RecordFile& record : records_)
      if (csv != files_.end() && (!prints_summary || !report::holds_summary(record.reader)))
        usage_error("the rows of a CSV file stand in /summary, the table of a suite",
                    prints_summary ? fmt::format("{} is no suite, so it has no such table", record.name)
                                   : fmt::format("--group {} is printed, with {}", group_, *csv),
                    fmt::format("leave out {}, or print it as text: {} report {} {}", *csv, program(), record.name, *csv));
  }

  int write_page() const {
    const fs::path beside = fs::path(files_.front()).parent_path() / "report.html";
    const fs::path page = page_.empty() ? beside : fs::path(page_);
    const std::string html = report::page_of(report::read_records(files_, warm_up_, metric_));
    const bool has_folder = fs::is_directory(fs::absolute(page).parent_path());
    const std::string why_not = has_folder ? replace_file(page, html) : std::strerror(ENOENT);
    if (!why_not.empty())
      usage_error("cannot write the page", fmt::format("{}: {}", page.string(), why_not),
                  "name a page in a writable folder: --html out.html");
    fmt::print("{}\n", page.string());
    return 0;
  }

  int write_pictures() const {
    const auto pictures = report::figure_files_of(report::read_records(files_, warm_up_, metric_));
    std::error_code trouble;  // ignored: if the folder cannot be made, writing the files reports it
    fs::create_directories(svg_, trouble);
    for (const report::FigureFile& picture : pictures) {
      const fs::path file = fs::path(svg_) / picture.file;
      if (const std::string why_not = replace_file(file, picture.svg); !why_not.empty())
        usage_error("cannot write a figure", fmt::format("{}: {}", file.string(), why_not),
                    "name a folder with room: --svg DIR");
      fmt::print("{}\n", file.string());
    }
    if (pictures.empty()) fmt::print(stderr, "no figures: no run has recorded a step or a measurement yet\n");
    return 0;
  }

  // Prints the conditions that differ, then the table. With formats other than text, only the table is written to stdout,
  // because programs read stdout.
  report::Comparison compared(const std::vector<std::string>& one, const std::vector<std::string>& other) const {
    const auto before = report::read_records(one, warm_up_), after = report::read_records(other, warm_up_);
    if (const std::string how = report::how_equal(one, other); !how.empty())
      throw Error(Exit::usage, "these are the same launches, so there is nothing to compare",
                  {fmt::format("A is {} B", how), "A: " + join(one, " "), "B: " + join(other, " "),
                   "give records of different launches"});
    const auto found = report::compare(report::metrics_of(before), report::metrics_of(after));
    if (found.differences.empty())
      usage_error(
          "the records have no metric in common",
          "training runs are compared by layout, unless each side has only one; benchmarks by operation, backend, algorithm "
          "and size",
          program() + " report FILE.h5 shows what a record holds");
    const bool is_text = format_ == "text";
    const auto say = [&](const std::string& text) { std::fputs(text.c_str(), is_text ? stdout : stderr); };
    say(fmt::format("A: {}\nB: {}\n", join(one, " "), join(other, " ")));
    if (const TextTable differing = report::differing_conditions(before, after); differing.rows() > 0)
      say(differing.print("text", screen_columns()));
    if (is_text) fmt::print("\n");
    fmt::print("{}", report::table_of(found.differences, format_).print(format_, screen_columns()));
    if (is_text) fmt::print("{}", report::legend_of(found.differences));
    return found;
  }

  int check_speed() const {
    const auto [differences, missing] = compared(reference_, files_);
    const auto slower = report::slower(differences, share_);
    for (const report::MetricDifference& d : slower)
      fmt::print(stderr, "slower: {}, by {:.1f} % compared with {} (p = {:.2g})\n", d.name, 100 * d.loss,
                 join(reference_, ", "), d.p);
    for (const std::string& name : missing)
      fmt::print(stderr, "not compared: {}, which only {} has\n", name, join(reference_, ", "));
    if (!slower.empty()) return static_cast<int>(Exit::check);
    std::int64_t speeds = 0, told = 0;
    for (const report::MetricDifference& d : differences) {
      if (!d.is_speed) continue;
      ++speeds;
      told += d.contrast.enough();
    }
    if (told == 0)
      usage_error(
          "too few runs to tell whether a speed fell",
          fmt::format("launches: A has {}, B has {}", differences[0].launches_of_one, differences[0].launches_of_other),
          fmt::format(
              "give {0} records of each: report new-1.h5 … new-{0}.h5 --check old-1.h5,…,old-{0}.h5; for benchmarks, one "
              "record of bench --launches {0} is enough",
              fewest_blocks));
    const auto perhaps = report::perhaps_slower(differences, share_);
    const auto worst = std::ranges::max_element(perhaps, {}, &report::MetricDifference::fall);
    fmt::print(stderr, "no speed fell by more than {:.4g} %{}{}\n", 100 * share_,
               perhaps.empty() ? ""
                               : fmt::format(" and more than chance; {} of {} may have fallen by more, at worst by {:.4g} % "
                                             "(95 % interval): more launches may tell",
                                             perhaps.size(), speeds, 100 * worst->fall),
               told < speeds ? fmt::format("; {} of {} have too few launches to tell", speeds - told, speeds) : "");
    return static_cast<int>(Exit::ok);
  }

  std::vector<std::string> files_;
  std::vector<report::RecordFile> records_;
  std::vector<std::string> reference_;
  std::string group_, metric_ = report::by_settings, format_ = "text", page_, svg_, tensorboard_, threshold_ = "5%";
  bool html_ = false, compare_ = false, all_ = false;
  double share_ = 0;
  std::int64_t rows_ = 10, warm_up_ = report::by_rule;
};

}  // namespace

std::unique_ptr<Command> make_report() { return std::make_unique<Report>(); }

}  // namespace chorale
