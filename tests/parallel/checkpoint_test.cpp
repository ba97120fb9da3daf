#include "parallel/checkpoint.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <barrier>
#include <fstream>
#include <mutex>

#include "src/base/crc32c.hpp"
#include "tests/parallel/saved_state.hpp"
#include "tests/spmd.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

namespace fs = std::filesystem;

// Ranks as threads that exchange texts.
class Exchange {
 public:
  explicit Exchange(int size) : texts_(static_cast<std::size_t>(size)), meet_(size) {}
  Peers peers(int rank) {
    return {rank, static_cast<int>(texts_.size()), [this, rank](std::string mine) {
              texts_[static_cast<std::size_t>(rank)] = std::move(mine);
              meet_.arrive_and_wait();
              std::vector<std::string> all = texts_;
              meet_.arrive_and_wait();
              return all;
            }};
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> meet_;
};

void save_step(const fs::path& folder, std::int64_t step) {
  KnownState state = whole_state();
  state.fill(step);
  save_checkpoint(folder, known_metadata(step), state.tensors);
}

// The step that loads, whole; throws when none does.
std::int64_t step_loaded(const fs::path& path) {
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(path, log);
  KnownState state = whole_state();
  checkpoint.read(state.tensors);
  const std::int64_t step = checkpoint.metadata().step;
  if (state.wrong(step) != 0) throw std::logic_error("what was loaded is not what was saved");
  return step;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// A manifest with another body, and the right checksum for it.
void forge(const fs::path& manifest, const std::string& what, const std::string& by) {
  const std::string text = contents(manifest);
  std::string body = text.substr(32, text.size() - 34);
  const std::size_t at = body.find(what);
  REQUIRE(at != std::string::npos);
  body.replace(at, what.size(), by);
  put(manifest, fmt::format("{{\"crc32c\":\"{:08x}\",\"manifest\":{}}}\n", crc32c(std::as_bytes(std::span(body))), body));
}

}  // namespace

TEST_CASE("two cuts of a tensor meet in every element they share") {
  std::mt19937 chance(1);
  for (int round = 0; round < 300; ++round) {
    const Shape shape = known_tensors()[static_cast<std::size_t>(round) % known_tensors().size()].shape;
    const auto from = random_cover(shape, chance), to = random_cover(shape, chance);
    CHECK(flaw_in_cover(shape, from) == "");
    for (const Part& target : to) {
      std::vector<std::int64_t> got(static_cast<std::size_t>(target.count), -1);
      std::int64_t copied = 0;
      for (const Part& source : from) {
        const auto values = places(source, shape);
        copied +=
            copy_common(shape, 8, source, std::as_bytes(std::span(values)), target, std::as_writable_bytes(std::span(got)));
      }
      CHECK(copied == target.count);
      CHECK(got == places(target, shape));
    }
  }
}

TEST_CASE("parts that are not the whole tensor are found out") {
  const Shape shape = {4, 6};
  CHECK(flaw_in_cover(shape, {{{}, 0, 24}}) == "");
  CHECK(flaw_in_cover(shape, {{{}, 12, 12}, {{}, 0, 12}}) == "");
  CHECK(flaw_in_cover(shape, {{{0, 0, 4}, 0, 24}}) == "");
  CHECK(flaw_in_cover({0, 3}, {}) == "");
  CHECK_THAT(flaw_in_cover(shape, {}), says("no part"));
  CHECK_THAT(flaw_in_cover(shape, {{{}, 0, 12}}), says("12 of the 24"));
  CHECK_THAT(flaw_in_cover(shape, {{{}, 0, 12}, {{}, 10, 14}}), says("begins at 10"));
  CHECK_THAT(flaw_in_cover(shape, {{{}, 0, 24}, {{}, 0, 24}}), says("begins at 0 and the one before it ends at 24"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 12}, {{0, 2, 2}, 0, 12}}), says("along dim 1 and along dim 0"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 12}}), says("3 of 6 along dim 1"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 12}, {{1, 2, 4}, 0, 16}}), says("begins at 2"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 6}, {{1, 0, 6}, 6, 18}}), says("overlap"));
  CHECK_THROWS_WITH(resolved({{1, 3, 4}}, shape), says("not within the shape"));
  CHECK_THROWS_WITH(resolved({{}, 20, 5}, shape), says("more than the 24"));
}

TEST_CASE("any layout loads what any layout saved") {
  std::mt19937 chance(2);
  for (int round = 0; round < 25; ++round) {
    const TemporaryFolder folder;
    for (const bool saving : {true, false}) {
      const int size = std::uniform_int_distribution<int>(1, 5)(chance);
      std::vector<KnownState> states(static_cast<std::size_t>(size));
      for (std::size_t t = 0; t < known_tensors().size(); ++t) {
        const auto cover = random_cover(known_tensors()[t].shape, chance);
        for (std::size_t part = 0, rank = 0; part < cover.size(); ++part, ++rank) {
          while (saving && rank >= states.size()) states.emplace_back();  // a rank has one part of a tensor in its file
          states[rank % states.size()].add(t, cover[part]);
        }
      }
      const int ranks = static_cast<int>(states.size());
      Exchange exchange(ranks);
      const std::string failed = on_threads(ranks, [&](ThreadRank& me) {
        KnownState& mine = states[static_cast<std::size_t>(me.rank())];
        const Peers peers = exchange.peers(me.rank());
        if (saving) {
          mine.fill(7);
          save_checkpoint(folder / "checkpoints", known_metadata(7), mine.tensors, peers);
        } else {
          Log log = quiet();
          Checkpoint::open(folder, log, peers).read(mine.tensors);
          me.check(mine.wrong(7) == 0, "an element differs");
        }
      });
      CHECK(failed == "");
    }
    CHECK(step_loaded(folder) == 7);
  }
}

TEST_CASE("a checkpoint brings back what else a run needs") {
  const TemporaryFolder folder;
  save_step(folder / "c", 50);
  CHECK(names_in(folder / "c") == std::vector<std::string>{"latest", "step-50"});
  CHECK(fs::read_symlink(folder / "c" / "latest") == "step-50");
  CHECK((fs::status(folder / "c" / "step-50" / "rank-0.safetensors").permissions() & fs::perms(077)) == fs::perms::none);
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(folder / "c" / "latest", log);
  const Metadata expected = known_metadata(50), &got = checkpoint.metadata();
  CHECK((got.step == 50 && got.cursor == 400 && got.good_steps == 3 && got.patience == 1 && got.updates == 48));
  CHECK(got.seed == expected.seed);
  CHECK(got.loss_scale == expected.loss_scale);
  CHECK(got.blocks == expected.blocks);
  CHECK(got.config == expected.config);
  CHECK((got.model.layers == 2 && got.model.epsilon == 1e-6 && got.model.family == "gpt2"));
  CHECK(checkpoint.tensors().size() == known_tensors().size());
  checkpoint.require_model(expected.model);
}

TEST_CASE("two sets are kept, and none of a later step is removed") {
  const TemporaryFolder folder;
  using Names = std::vector<std::string>;
  for (const std::int64_t step : {10, 20, 30}) save_step(folder, step);
  CHECK(names_in(folder) == Names{"latest", "step-20", "step-30"});
  fs::create_directory(folder / "step-77.partial");
  fs::create_directory(folder / "step-x");
  save_step(folder, 25);  // taken back to 20, and on from there
  CHECK(names_in(folder) == Names{"latest", "step-20", "step-25", "step-30", "step-x"});
  CHECK(step_loaded(folder) == 25);
  save_step(folder, 30);
  CHECK(names_in(folder) == Names{"latest", "step-25", "step-30", "step-x"});
  CHECK(step_loaded(folder) == 30);
  CHECK(step_loaded(folder / "step-25") == 25);
}

TEST_CASE("the set before takes the place of a damaged one, and all are told why") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {10, 20}) save_step(folder, step);
  const fs::path newest = folder / "step-20", file = newest / "rank-0.safetensors", manifest = newest / "manifest.json";
  const std::string data = contents(file), text = contents(manifest);
  const auto expect_fallback = [&] {
    CHECK(step_loaded(folder) == 10);
    CHECK_THROWS_AS(step_loaded(newest), Error);
    put(file, data), put(manifest, text);
    CHECK(step_loaded(folder) == 20);
  };
  fs::remove(file), expect_fallback();
  fs::remove(manifest);
  CHECK(step_loaded(folder) == 10);
  put(manifest, text);
  put(file, data.substr(0, data.size() - 1)), expect_fallback();
  put(file, data + "x"), expect_fallback();
  put(file, ""), expect_fallback();
  put(manifest, text.substr(0, 20)), expect_fallback();
  fs::copy_file(folder / "step-10" / "rank-0.safetensors", file, fs::copy_options::overwrite_existing), expect_fallback();
  fs::rename(newest, folder / "elsewhere");  // and latest points nowhere
  CHECK(step_loaded(folder) == 10);
  fs::rename(folder / "elsewhere", newest);
  fs::rename(file, folder / "away"), fs::create_symlink("../away", file);
  CHECK_THROWS_WITH(step_loaded(newest), says("it is a link"));
  fs::rename(folder / "away", file);

  std::string flipped = data;
  flipped[data.size() - 300] ^= 4;
  put(file, flipped);
  CHECK_THROWS_WITH(step_loaded(newest),
                    says(file.string()) && says("tensor \"") && says("of rank 0 does not have its checksum"));
  put(folder / "step-10" / "manifest.json", "");
  CHECK_THROWS_WITH(step_loaded(folder), says("all 2 checkpoints are damaged") && says("of rank 0"));
}

TEST_CASE("no flipped bit of a checkpoint goes unseen") {
  const TemporaryFolder folder;
  save_step(folder, 1);
  const fs::path set = folder / "step-1";
  std::mt19937 chance(3);
  int silent = 0;
  for (const char* name : {"rank-0.safetensors", "manifest.json"}) {
    const std::string good = contents(set / name);
    for (int round = 0; round < 3000; ++round) {
      std::string bad = good;
      bad[std::uniform_int_distribution<std::size_t>(0, bad.size() - 1)(chance)] ^= static_cast<char>(1 << chance() % 8);
      put(set / name, bad);
      try {
        step_loaded(folder);
        ++silent;
      } catch (const Error&) {}
    }
    put(set / name, good);
  }
  CHECK(silent == 0);
  CHECK(step_loaded(folder) == 1);
}

TEST_CASE("a manifest that lies is refused even with the right checksum") {
  const TemporaryFolder folder;
  const fs::path manifest = folder / "step-1" / "manifest.json";
  const auto lie = [&](const std::string& what, const std::string& by) -> std::string {
    fs::remove_all(folder / "step-1");
    save_step(folder, 1);
    forge(manifest, what, by);
    try {
      step_loaded(folder / "step-1");
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(lie("chorale", "chorale") == "nothing");
  CHECK_THAT(lie("chorale checkpoint", "passacaglia"), says("something else"));
  CHECK_THAT(lie("\"version\":1", "\"version\":2"),
             says("the checkpoint is of a newer format") && says("version 2, this program reads up to 1"));
  CHECK_THAT(lie("\"rank\":0", "\"rank\":7"), says("file of rank 7, of 1"));
  CHECK_THAT(lie("\"rank\":0", "\"rank\":-1"), says("file of rank -1"));
  CHECK_THAT(lie("\"shape\":[31,4]", "\"shape\":[-31,-4]"), says("manifest.json"));
  CHECK_THAT(lie("\"shape\":[31,4]", "\"shape\":[9223372036854775807,4]"), says("64 bits"));
  CHECK_THAT(lie("\"shape\":[31,4]", "\"shape\":[30,4]"), says("manifest.json"));
  CHECK_THAT(lie("\"dtype\":\"f16\"", "\"dtype\":\"f32\""), says("not there as the manifest says"));
  CHECK_THAT(lie("\"dtype\":\"f16\"", "\"dtype\":\"f17\""), says("manifest.json"));
  CHECK_THAT(lie("norm.gain", "norm/gain"), says("not there as the manifest says"));
  CHECK_THAT(lie("\"step\":1", "\"step\":\"one\""), says("manifest.json"));
  CHECK_THAT(lie("\"parts\":[", "\"parts\":[[],"), says("manifest.json"));
}

TEST_CASE("a checkpoint of another model is refused by its first tensor that differs") {
  const TemporaryFolder folder;
  save_step(folder, 5);
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(folder, log);
  KnownState state = whole_state();
  state.tensors[2].shape = {18}, state.tensors[3].name = "other";
  CHECK_THROWS_WITH(checkpoint.read(state.tensors), says("of another model\n") && says("\"norm.gain\" is [17] of bf16 in") &&
                                                        says("and [18] of bf16 here\n"));
  state.tensors[2].shape = {17};
  CHECK_THROWS_WITH(checkpoint.read(state.tensors), says("\"other\" is not there in"));
  ModelShape here = checkpoint.metadata().model;
  here.heads = 3;
  CHECK_THROWS_WITH(checkpoint.require_model(here), says("its heads is 6, and 3 here"));
  CHECK_THROWS_WITH(step_loaded(folder / "none"), says("there is no checkpoint"));
}

TEST_CASE("a rank that cannot write makes the save fail on all, and the old set stays") {
  const TemporaryFolder folder;
  save_step(folder, 1);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit tight = before;
  tight.rlim_cur = 500;
  std::string told;
  setrlimit(RLIMIT_FSIZE, &tight);
  try {
    save_step(folder, 2);
  } catch (const Error& error) {
    told = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_THAT(told, says("step-2.partial/rank-0.safetensors: File too large"));
  CHECK(names_in(folder) == std::vector<std::string>{"latest", "step-1"});
  CHECK(step_loaded(folder) == 1);

  Exchange exchange(2);
  std::vector<std::string> errors(2);
  on_threads(2, [&](ThreadRank& me) {
    KnownState state = whole_state();
    if (me.rank() == 1) state.tensors[0].data.count = 1;
    try {
      save_checkpoint(folder, known_metadata(2), state.tensors, exchange.peers(me.rank()));
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(me.rank())] = error.what();
    }
  });
  CHECK_THAT(errors[0], says("not saved") && says("rank 1: tensor \"block.0.mlp.up.weight\" is saved from 60 elements"));
  CHECK_THAT(errors[1], says("is saved from 60 elements"));
  CHECK(step_loaded(folder) == 1);
}

TEST_CASE("parts that leave a gap are not saved") {
  const TemporaryFolder folder;
  KnownState state;
  state.add(0, {{0, 0, 5}});
  CHECK_THROWS_WITH(save_checkpoint(folder, known_metadata(1), state.tensors),
                    says("\"block.0.mlp.up.weight\" is not whole: 5 of 6 along dim 0"));
  CHECK(names_in(folder).empty());
}

// Programs for checkpoint_test.py: one saves step after step, one says which step loads from each folder in TEST_FOLDER.
TEST_CASE("save checkpoints into TEST_FOLDER", "[.checkpoint-writer]") {
  for (const std::int64_t step : {10, 20, 30, 40, 30}) {
    save_step(environment("TEST_FOLDER", "."), step);
    std::printf("saved %lld\n", static_cast<long long>(step)), std::fflush(stdout);
  }
}

TEST_CASE("load checkpoints below TEST_FOLDER", "[.checkpoint-reader]") {
  for (const auto& entry : fs::directory_iterator(environment("TEST_FOLDER", "."))) {
    std::string loaded;
    try {
      loaded = fmt::format("{}", step_loaded(entry.path()));
    } catch (const std::exception& error) {
      loaded = error.what();
      std::replace(loaded.begin(), loaded.end(), '\n', ' ');
    }
    std::printf("loaded %s %s\n", entry.path().filename().c_str(), loaded.c_str());
  }
}

}  // namespace chorale::test
