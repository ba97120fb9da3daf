#include "src/base/options.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "src/base/launch.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using Words = std::vector<std::string>;

namespace {

struct Fields {
  std::int64_t ranks = 2;
  double rate = 0.5;
  bool check = false;
  std::int64_t most = 1024;
  std::optional<std::int64_t> limit;
  double budget = 0;
  std::string dtype = "f32";
  Words backends{"mpi"}, files;
  Options options{"chorale test"};

  Fields() {
    options.add("ranks", ranks, "ranks").range(1, 64).alias("world-size");
    options.add("rate", rate, "a rate");
    options.add("check", check, "a switch");
    options.add("dtype", dtype, "a type").one_of({"f32", "bf16"});
    options.add("backend", backends, "backends").one_of({"mpi", "ucx", "shm"});
    options.add_bytes("most", most, "the largest size").alias("e");
    options.add_bytes("limit", "auto", limit, "a size; auto: all that is available").range(0, 1e6);
    options.add_seconds("budget", budget, "a time");
    options.add("config", "a file");
    options.add("preset", "a set");
    options.add_positional("file", files, "files");
  }
  void resolve(const Words& arguments, const Words& variables = {}, const Words& known = {}) {
    chorale::resolve(options, arguments, variables, known, {{"tiny", "small", {{"ranks", "8"}, {"rate", "0.1"}}}});
  }
};

std::string refused(const Words& arguments, const Words& variables = {}) {
  return test::refused([&] { Fields().resolve(arguments, variables, {"ranks", "seed"}); });
}

// Writes a file with the given text into a temporary folder.
struct FileWith {
  FileWith(const char* name, const std::string& text) : path((folder / name).string()) { std::ofstream(path) << text; }
  operator const std::string&() const { return path; }
  test::TemporaryFolder folder;
  std::string path;
};

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("options take values from the command line in every notation") {
  Fields f;
  f.resolve({"a.h5", "--ranks", "3", "--rate=-2.5e-1", "--check", "--backend", "ucx,shm", "b,c.h5"});
  CHECK(f.ranks == 3);
  CHECK(f.rate == -0.25);
  CHECK(f.check);
  CHECK(f.backends == Words{"ucx", "shm"});
  CHECK(f.files == Words{"a.h5", "b,c.h5"});
  Fields g;
  g.resolve({"--world-size", "5", "--check=false", "--backend", "ucx", "--backend", "mpi", "--rate", "-3"});
  CHECK((g.ranks == 5 && !g.check && g.rate == -3 && g.backends == Words{"ucx", "mpi"}));
}

TEST_CASE("the command line beats the environment, which beats the file, the preset and the default") {
  const FileWith file("a.toml", "ranks = 4\nrate = 0.4\ndtype = \"bf16\"\n");
  Fields f;
  f.resolve({"--config", file.path, "--ranks", "6"}, {"CHORALE_RANKS=5", "CHORALE_RATE=0.3", "HOME=/"});
  CHECK((f.ranks == 6 && f.rate == 0.3 && f.dtype == "bf16" && !f.check));
  CHECK(f.options.origin("ranks") == "command line");
  CHECK(f.options.origin("rate") == "CHORALE_RATE");
  CHECK(f.options.origin("dtype") == file.path + ":3");
  CHECK(f.options.origin("check") == "default");
  Fields g;
  g.resolve({"--preset", "tiny", "--config", file.path});
  CHECK((g.ranks == 4 && g.rate == 0.4));
  Fields h;
  h.resolve({}, {"CHORALE_PRESET=tiny"});
  CHECK((h.ranks == 8 && h.options.origin("ranks") == "preset tiny"));
}

TEST_CASE("JSON and TOML files can give the same settings, lists and switches included") {
  const FileWith toml("b.toml", "# first\nRanks = 7\ncheck = true\nbackend = [\"ucx\", \"mpi\"]\nrate = 2\n");
  const FileWith json("b.json", "{\n\"ranks\": 7,\n\"check\": true,\n\"backend\": [\"ucx\",\"mpi\"], \"rate\": 2}");
  for (const std::string& file : {toml.path, json.path}) {
    Fields f;
    f.resolve({"--config", file});
    CHECK((f.ranks == 7 && f.check && f.rate == 2 && f.backends == Words{"ucx", "mpi"}));
    CHECK(f.options.origin("ranks") == file + ":2");
  }
}

TEST_CASE("a run saves a config file that reproduces its settings") {
  Fields f;
  f.resolve({"--ranks", "009", "--rate", ".125", "--check", "--backend", "ucx,shm"});
  Fields g;
  g.resolve({"--config", FileWith("kept.toml", f.options.toml()).path});
  CHECK((g.ranks == 9 && g.rate == 0.125 && g.check && g.backends == Words{"ucx", "shm"}));
}

TEST_CASE("an option that is on by default takes yes, no and their like; the help says yes and no") {
  bool check = true, fast = false;
  std::string place = "both";
  Options options("chorale test");
  options.add("check", check, "whether results are checked");
  options.add("fast", fast, "go fast");
  options.add("place", place, "where").one_of({"both", "yes", "no"});
  options.add("limit", place, "a limit").only_with(options.option("fast"), true);
  const auto with = [&](const std::string& key, const std::string& text) {
    options.set({key, text, "command line", Source::command_line});
  };
  CHECK(contains(options.help_text(), "--check yes|no              whether results are checked (default yes)\n"));
  CHECK(contains(options.help_text(), ", only with fast yes\n"));
  for (const char* word : {"no", "false", "off", "0"}) {
    check = true;
    with("check", word);
    with("place", word);
    CHECK((!check && place == "no"));
  }
  CHECK(contains(options.toml(), "check = \"no\"\n"));
  for (const char* word : {"yes", "true", "on", "1"}) {
    check = fast = false;
    with("check", word);
    with("place", word);
    with("fast", word);
    CHECK((check && fast && place == "yes"));
  }
  CHECK_THROWS_WITH(with("check", "maybe"), says("check takes one of yes, no"));
}

TEST_CASE("invalid settings are refused in three lines, with the nearest name and the origin") {
  CHECK(contains(refused({"--rnaks", "3"}), "did you mean --ranks?"));
  CHECK(contains(refused({"--ranks", "0"}), "ranks takes 1 to 64"));
  CHECK(contains(refused({"--ranks", "3.5"}), "ranks takes a whole number"));
  CHECK(contains(refused({"--ranks", "99999999999999999999"}), "a whole number"));
  CHECK(contains(refused({"--ranks"}), "--ranks"));
  CHECK(contains(refused({"--rate", "fast"}), "rate takes a number"));
  CHECK(contains(refused({"--rate", "nan"}), "rate takes a number"));
  CHECK(contains(refused({"--check=maybe"}), "yes or no"));
  CHECK(contains(refused({"--dtype", "f16"}), "one of f32, bf16"));
  CHECK(contains(refused({"--backend", "mpi,tcp"}), "one of mpi, ucx, shm"));
  CHECK(contains(refused({"--preset", "tyni"}), "did you mean \"tiny\"?"));
  CHECK(contains(refused({}, {"CHORALE_RNAKS=3"}), "did you mean CHORALE_RANKS?"));
  CHECK(refused({}, {"CHORALE_SEED=3"}) == "accepted");  // the option `seed` belongs to a different command
}

TEST_CASE("mistakes in a file are named with their line") {
  const auto in_file = [](const char* name, const std::string& text) {
    const FileWith file(name, text);
    return refused({"--config", file.path});
  };
  CHECK(contains(in_file("c.toml", "ranks = 2\n\nrnaks = 3\n"), "c.toml:3"));
  CHECK(contains(in_file("c.json", "{\"ranks\": 2,\n\"rnaks\": 3}"), "c.json:2"));
  CHECK(contains(in_file("d.toml", "ranks = 2\nrate = \n"), "d.toml:2"));
  CHECK(contains(in_file("d.json", "{\"ranks\": 2,\n oops}"), "d.json:2"));
  CHECK(contains(in_file("e.toml", "[model]\nranks = 2\n"), "\"model\" cannot be a table"));
  CHECK(contains(in_file("f.json", "[1, 2]"), "one object"));
  CHECK(contains(in_file("g.toml", "config = 'x.toml'\n"), "cannot name another"));
  CHECK(contains(refused({"--config", "/nowhere/x.toml"}), "no such file"));
  CHECK(contains(refused({"--config", "/tmp"}), "it is a folder"));
}

TEST_CASE("sizes take suffixes, and an option may have a one-letter name") {
  Fields f;
  f.resolve({"-e", "64K"});
  CHECK(f.most == 65536);
  f.resolve({"--most", "1M"});
  CHECK((f.most == 1 << 20 && contains(f.options.toml(), "most = 1048576")));
  CHECK(contains(refused({"-e", "1X"}), "most takes a size such as 8, 64K or 1M"));
  CHECK(contains(refused({"-q", "1"}), "unknown flag -q"));
  CHECK(contains(f.options.help_text(), "also -e"));
}

TEST_CASE("a size may be auto: then the program chooses it") {
  Fields f;
  CHECK((!f.limit && contains(f.options.toml(), "limit = \"auto\"") && contains(f.options.help_text(), "(default auto)")));
  f.resolve({"--limit", "64K"});
  CHECK((f.limit == 65536 && contains(f.options.toml(), "limit = \"65536\"")));
  f.resolve({"--limit", "auto"});
  CHECK(!f.limit);
  f.resolve({"--limit", "0"});
  CHECK(f.limit == 0);
  CHECK(contains(refused({"--limit", "2M"}), "limit takes 0 to 1000000, or auto"));
  CHECK(contains(refused({"--limit", "some"}), "limit takes a size such as 8, 64K or 1M, or auto"));
}

namespace {

// Options for the tests below. `momentum` has an effect only with some update rules, and `floor` can be given as a multiple
// of the learning rate. The function add_words() maps another program's option names to these options.
struct Rules {
  std::string rule = "adam", model = "one";
  double rate = 2, momentum = 0.9;
  Relative floor{0.5};
  Options options{"chorale test"};

  Rules() {
    options.add("rate", rate, "a rate");
    options.add_relative("floor", "rate", floor, "the lowest").range(0, 10);
    const Option& which = options.add("rule", rule, "the rule").one_of({"adam", "sgd", "lion"}).also("Adam", "adam");
    options.add("momentum", momentum, "of sgd").only_with(which, "sgd", "lion");
    options.add("model", model, "the model").only_where("momentum", [this] { return momentum > 0 ? "" : "momentum is 0"; });
    options.add("config", "a file");
    options.add("preset", "a set");
    options.add("other", "a file of another program's");
    options.add_words({{"sgd-rule", Word::Means::sets, "rule", {{"true", "sgd"}}},
                       {"old-floor", Word::Means::expects, "floor"},
                       {"gone", Word::Means::refused, "", {}, "use --rule"},
                       {"fused", Word::Means::nothing, "", {{"true", ""}}, "all rules are fused"},
                       {"not-here", Word::Means::sets, "depth"}});
  }
  Rules& resolve(const Words& arguments, const Words& variables = {}) {
    const ForeignConfig other{"other", [](const std::filesystem::path& file) {
                                return Foreign{{{"momentum", "0.5", "x.json: m", Source::foreign},
                                                {"rate", file.string(), "x.json: default of r"},
                                                {"depth", "7", "x.json: d", Source::foreign}},
                                               {"x.json: z has no effect"}};
                              }};
    chorale::resolve(options, arguments, variables, {}, {{"small", "", {{"momentum", "0.3"}, {"rate", "3"}}}}, {other});
    return *this;
  }
};

std::string refused_rules(const Words& arguments, const Words& variables = {}) {
  return test::refused([&] { Rules().resolve(arguments, variables); });
}

}  // namespace

TEST_CASE("several mistakes are reported at once, each in a line of its own") {
  const std::string text = refused({"--rnaks", "3", "--dtype", "f16", "--rate=fast", "--nonsense"}, {"CHORALE_RNAKS=3"});
  INFO(text);
  CHECK(split(text, '\n') == Words{"5 settings of chorale test cannot be used",  //
                                   "  unknown variable CHORALE_RNAKS: did you mean CHORALE_RANKS?",
                                   "  unknown flag --rnaks: did you mean --ranks?",  // 3 is the flag's value, not a mistake
                                   "  unknown flag --nonsense", "  rate = fast (command line): rate takes a number",
                                   "  dtype = f16 (command line): did you mean bf16? dtype takes one of f32, bf16",
                                   "  chorale test --help lists all options"});
  CHECK(contains(refused({"--nonsense", "--nonsense"}), "unknown flag --nonsense\n"));  // reported once, not as a list
  const std::string two = refused({"--preset", "tyni", "--nonsense"});
  CHECK((contains(two, "2 settings") && contains(two, "unknown preset") && contains(two, "flag --nonsense")));
  // A setting can lack an effect only because another setting is wrong. So the error for the wrong setting does not mention
  // the missing effect.
  CHECK(!contains(refused_rules({"--rule", "sdg", "--momentum", "0.9", "--nonsense"}), "no effect"));
}

TEST_CASE("names of other programs are answered with ours") {
  CHECK(contains(refused({"--nproc-per-node", "4"}), "did you mean --ranks?"));
  CHECK(contains(refused({"--precision", "bf16"}), "did you mean --dtype?"));
  CHECK(contains(refused({"--dtype", "float32"}), "did you mean f32?"));
  CHECK(contains(refused({"--dtype", "torch.bfloat16"}), "did you mean bf16?"));
  CHECK(contains(refused({"--dtype", "BF16"}), "did you mean bf16?"));
  CHECK(contains(refused({}, {"CHORALE_RATE=fast", "CHORALE_BACKEND=UCX"}), "did you mean ucx?"));
}

TEST_CASE("a setting without effect is refused, unless it comes from a preset") {
  const FileWith file("a.toml", "momentum = 0.5\n");
  for (const auto& [said, place] :
       {std::pair{refused_rules({"--momentum", "0.9"}), "momentum = 0.9 (command line); rule = adam (default)"},
        {refused_rules({}, {"CHORALE_MOMENTUM=0.9"}), "(CHORALE_MOMENTUM)"},
        {refused_rules({"--config", file.path}), "a.toml:1"}})
    CHECK_THAT(said, says("momentum has no effect here") && says(place) && says("only with rule sgd or lion"));
  CHECK_THAT(refused_rules({"--rule", "sgd", "--momentum", "0", "--model", "two"}), says("momentum is 0"));
  CHECK(Rules().resolve({"--rule", "sgd", "--momentum", "0.5"}).momentum == 0.5);
  CHECK(Rules().resolve({"--preset", "small"}).momentum == 0.3);  // a preset may set an option that has no effect
  CHECK_THAT(Rules().options.help_text(), says("of sgd (default 0.9), only with rule sgd or lion"));
}

TEST_CASE("a condition that names a missing option or an impossible value is an error of the declaration") {
  Rules r;
  bool on = false;
  std::string text;
  Option& option = r.options.add("more", text, "more");
  const Option& rule = r.options.option("rule");
  CHECK_THROWS_WITH(option.only_with(rule, "sdg"), says("but rule never has this value"));
  CHECK_THROWS_WITH(option.only_with(rule, true), says("but rule never has this value"));
  CHECK_THROWS_WITH(option.only_with(r.options.option("rate"), "fast"), says("rate never has this value"));
  CHECK_THROWS_WITH(option.only_with(r.options.option("ruel"), "sgd"), says("has no option called ruel"));
  CHECK_THROWS_WITH(option.only_with(r.options.add("on", on, "on"), "yes"), says("on never has this value"));
  CHECK(option.conditions.empty());
  option.only_with(rule, "sgd", "adam").only_with(r.options.option("rate"), "2").only_with(r.options.option("on"), false);
  CHECK((option.conditions.size() == 3 && r.options.why_idle(option).empty()));
}

TEST_CASE("a run's config file can be read again; options without effect are comments in it") {
  const std::string kept = Rules().resolve({"--preset", "small"}).options.toml();
  CHECK_THAT(kept, says("# no effect: momentum = 0.3\n") && says("\nrule = \"adam\"\n"));
  CHECK(Rules().resolve({"--config", FileWith("kept.toml", kept).path}).rate == 3);
  // Older versions of the program also saved settings that had no effect. So a config file may contain such a setting if its
  // value is the option's default.
  CHECK(Rules().resolve({"--config", FileWith("older.toml", "momentum = 0.9\n").path}).rate == 2);
}

TEST_CASE("a setting without effect in another program's file is reported and reset; that program's defaults are not") {
  Rules r;
  r.resolve({"--other", "7"});
  CHECK((r.momentum == 0.9 && r.rate == 7 && r.options.origin("momentum") == "default"));
  CHECK(r.options.origin("rate") == "x.json: default of r");
  CHECK(r.options.notes() ==
        Words{"x.json: z has no effect", "momentum = 0.5 (x.json: m) has no effect: rule = adam (default)"});
  Rules s;
  s.resolve({"--other", "7", "--rule", "sgd", "--preset", "small", "--rate", "8"});
  CHECK((s.momentum == 0.5 && s.rate == 8));
}

TEST_CASE("an option's number may be a multiple of another option's") {
  CHECK(Rules().resolve({"--floor", "0.25"}).floor.of(8) == 0.25);
  Rules r;
  CHECK(r.resolve({"--floor", ".25*rate"}).floor.of(8) == 2);
  CHECK_THAT(r.options.toml(), says("floor = \"0.25*rate\""));
  CHECK_THAT(refused_rules({"--floor", "1*lr"}), says("a number, or a share such as 0.1*rate"));
  CHECK_THAT(refused_rules({"--floor", "11"}), says("0 to 10"));
}

TEST_CASE("another program's names set our options, expect values, do nothing or are refused") {
  Rules r;
  r.resolve({"--sgd-rule", "--momentum", "0.5", "--fused"});
  CHECK((r.rule == "sgd" && r.options.origin("rule") == "sgd-rule (command line)"));
  CHECK(r.options.notes() == Words{"fused (command line) has no effect: all rules are fused"});
  CHECK(Rules().resolve({"--rule", "Adam"}).rule == "adam");
  CHECK(Rules().resolve({"--sgd-rule=false"}).rule == "adam");
  CHECK(Rules().resolve({"--rule", "lion"}, {"CHORALE_SGD_RULE=1"}).rule == "lion");
  CHECK(Rules().resolve({"--old-floor", "0.50"}).floor.value == 0.5);
  CHECK_THAT(refused_rules({"--old-floor", "0.7"}),
             says("old-floor (command line) requires floor = 0.7, but floor = 0.5 (default)"));
  CHECK_THAT(refused_rules({"--sgd-rule", "--rule", "lion"}), says("two values for rule"));
  CHECK_THAT(refused_rules({"--gone", "1", "2"}), says("gone belongs to another program") && says("use --rule"));
  // "not-here" sets `depth`, an option of a different command.
  CHECK_THAT(refused_rules({"--not-here", "1"}), says("unknown flag --not-here"));
  CHECK_THAT(refused_rules({"--gome", "1"}), says("did you mean --gone?"));
}

TEST_CASE("the help shows names, choices and defaults") {
  const std::string help = Fields().options.help_text();
  CHECK(contains(help, "--dtype f32|bf16"));
  CHECK(contains(help, "a type (default f32)"));
  CHECK(contains(help, "also --world-size"));
  CHECK(contains(help, "FILE…"));
}

TEST_CASE("the launcher is read from the environment") {
  const auto with = [](std::vector<std::pair<std::string, std::string>> variables) {
    return read_launch([=](const char* name) -> std::optional<std::string> {
      for (const auto& [key, value] : variables)
        if (key == name) return value;
      return std::nullopt;
    });
  };
  CHECK(with({}).size == 1);
  CHECK(with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).rank == 2);
  CHECK(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}).launcher == "MPICH's mpirun");
  CHECK(with({{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}).size == 1);
  CHECK(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size == 1);  // a batch script, which is not a job step

  CHECK(with({}).one_host());
  CHECK_FALSE(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}).one_host());  // the number of hosts is unknown
  CHECK(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "3"}}).one_host());
  CHECK_FALSE(
      with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}).one_host());

  const Launch launch = with({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  CHECK_NOTHROW(require_same_world(launch, 3, "MPICH"));
  CHECK_THROWS_WITH(require_same_world(launch, 1, "Open MPI v4"),
                    says("3 processes were launched, but each sees a world of size 1") && says("mpirun.openmpi -np 3"));
}
