#include "parallel/state/checkpoint.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <mutex>
#include <numeric>

#include "tests/layers/changed_shape.hpp"
#include "tests/parallel/state/saved_state.hpp"
#include "tests/refused.hpp"
#include "tests/spmd.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

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
          while (saving && rank >= states.size()) states.emplace_back();  // a rank saves at most one part of each tensor
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

// Memory that behaves like device memory or a file: its elements must be copied to the host and back. Counts the copied
// bytes.
class Far final : public Memory {
 public:
  Device device() const override { return {Device::Kind::file, 0}; }
  void* take(std::int64_t bytes) override { return host_.take(bytes); }
  void give_back(void* place, std::int64_t bytes) noexcept override { host_.give_back(place, bytes); }
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override {
    written += bytes;
    largest = std::max(largest, bytes);
    host_.copy_in(to, from_host, bytes);
  }
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override {
    read += bytes;
    largest = std::max(largest, bytes);
    host_.copy_out(to_host, from, bytes);
  }
  std::int64_t read = 0, written = 0, largest = 0;

 private:
  HostMemory host_;
};

TEST_CASE("tensors that are not on the host are saved and loaded in small pieces, each read or written once") {
  const TemporaryFolder folder;
  Far far;
  Ledger ledger;
  Allocator memory(far, ledger);
  const Shape shape{1000, 700};
  const auto elements_of_tensor = [](const Tensor& t) {
    return std::span(static_cast<float*>(t.slice().data), static_cast<std::size_t>(t.count()));
  };
  const Tensor whole(memory, shape, DType::f32, Category::params);
  std::iota(elements_of_tensor(whole).begin(), elements_of_tensor(whole).end(), 1.0f);
  save_checkpoint(folder / "checkpoints", known_metadata(3), {{"table", shape, {}, whole.slice()}});
  CHECK((far.read == whole.bytes() && far.largest <= 1 << 20));
  const Part part{.shard = {1, 100, 500}, .first = 1234, .count = 450'000};
  const Tensor loaded(memory, {part.count}, DType::f32, Category::params);
  Log log = quiet();
  Checkpoint::open(folder, log).read({{"table", shape, part, loaded.slice()}});
  CHECK((far.written == loaded.bytes() && far.largest <= 1 << 20));
  const std::vector<std::int64_t> expected = places(part, shape);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong += elements_of_tensor(loaded)[i] != static_cast<float>(expected[i] + 1);
  CHECK(wrong == 0);
}

TEST_CASE("ranks with file systems of their own save to each of them, and load once the files are copied together") {
  const TemporaryFolder one, two;
  const std::vector<fs::path> sees = {one, two, two, one, two};  // the file system of each rank
  constexpr int ranks = 5;
  const auto state_of_rank = [&](int rank) {
    KnownState state;
    for (std::size_t t = 0; t < known_tensors().size(); ++t)
      if (static_cast<int>(t) % ranks == rank) state.add(t, {});
    return state;
  };
  Exchange exchange(ranks);
  for (const std::int64_t step : {3, 4})
    REQUIRE(on_threads(ranks, [&](ThreadRank& me) {
              KnownState mine = state_of_rank(me.rank());
              mine.fill(step);
              const SavedSet set = save_checkpoint(sees[static_cast<std::size_t>(me.rank())] / "checkpoints",
                                                   known_metadata(step), mine.tensors, exchange.peers(me.rank()));
              me.check(set.file_systems == 2, "{} file systems were found", set.file_systems);
            }) == "");
  const std::vector<std::string> names = {"rank-0.safetensors", "rank-1.safetensors", "rank-2.safetensors",
                                          "rank-3.safetensors", "rank-4.safetensors"};
  const fs::path here = one.path() / "checkpoints/step-4", there = two.path() / "checkpoints/step-4";
  CHECK(names_in(here) == std::vector<std::string>{"manifest.json", names[0], names[3]});
  CHECK(names_in(there) == std::vector<std::string>{"manifest.json", names[1], names[2], names[4]});
  CHECK(names_in(here.parent_path()) == std::vector<std::string>{"latest", "step-3", "step-4"});
  CHECK(names_in(there.parent_path()) == std::vector<std::string>{"latest", "step-3", "step-4"});

  const auto load = [&] {
    return on_threads(ranks, [&](ThreadRank& me) {
      KnownState mine = state_of_rank(me.rank());
      Log log = quiet();
      Checkpoint::open(sees[static_cast<std::size_t>(me.rank())], log, exchange.peers(me.rank())).read(mine.tensors);
      me.check(mine.wrong(4) == 0, "an element differs");
    });
  };
  for (const std::string& name : {names[0], names[3], std::string()}) {
    const std::string refused = load();
    INFO(refused);
    CHECK(refused.find("hosts lack files of the checkpoint") != std::string::npos);
    CHECK(refused.find(names[4]) != std::string::npos);
    CHECK((refused.find(names[0]) == std::string::npos) == (name != names[0]));
    if (!name.empty()) fs::copy(here / name, there / name);
  }
  for (const int rank : {1, 2, 4}) fs::copy(there / names[static_cast<std::size_t>(rank)], here);
  CHECK(load() == "");
  fs::remove(here / names[1]);
  fs::remove(there / names[1]);                                 // if no host has a file, the previous set is loaded
  CHECK(load().find("hosts lack files") != std::string::npos);  // files of step 3 are still on two file systems
}

TEST_CASE("the umask sets the permissions of a checkpoint") {
  for (const mode_t mask : {027, 077}) {
    const TemporaryFolder folder;
    const mode_t before = umask(mask);
    save_step(folder / "c", 50);
    umask(before);
    const fs::path set = folder / "c" / "step-50";
    for (const fs::path& path : {set.parent_path(), set}) CHECK(fs::status(path).permissions() == fs::perms(0777 & ~mask));
    for (const char* file : {"manifest.json", "rank-0.safetensors"})
      CHECK(fs::status(set / file).permissions() == fs::perms(0666 & ~mask));
  }
}

TEST_CASE("a checkpoint restores the metadata of a run") {
  const TemporaryFolder folder;
  save_step(folder / "c", 50);
  CHECK(names_in(folder / "c") == std::vector<std::string>{"latest", "step-50"});
  CHECK(fs::read_symlink(folder / "c" / "latest") == "step-50");
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(folder / "c" / "latest", log);
  const Metadata expected = known_metadata(50), &got = checkpoint.metadata();
  CHECK((got.step == 50 && got.cursor == 400 && got.good_steps == 3 && got.patience == 1 && got.updates == 48));
  CHECK(got.seed == expected.seed);
  CHECK(got.loss_scale == expected.loss_scale);
  CHECK(got.blocks == expected.blocks);
  CHECK(got.config == expected.config);
  CHECK((got.model.layers == 2 && got.model.epsilon == 1e-6 && got.model.family == ModelFamily::gpt2));
  CHECK(checkpoint.tensors().size() == known_tensors().size());
  checkpoint.require_model(expected.model);
}

TEST_CASE("two sets of files are kept, and sets of later steps are not removed") {
  const TemporaryFolder folder;
  using Names = std::vector<std::string>;
  for (const std::int64_t step : {10, 20, 30}) save_step(folder, step);
  CHECK(names_in(folder) == Names{"latest", "step-20", "step-30"});
  fs::create_directory(folder / "step-77.partial");
  fs::create_directory(folder / "step-x");
  save_step(folder, 25);  // as if the run had resumed from step 20
  CHECK(names_in(folder) == Names{"latest", "step-20", "step-25", "step-30", "step-x"});
  CHECK(step_loaded(folder) == 25);
  save_step(folder, 30);
  CHECK(names_in(folder) == Names{"latest", "step-25", "step-30", "step-x"});
  CHECK(step_loaded(folder) == 30);
  CHECK(step_loaded(folder / "step-25") == 25);
}

TEST_CASE("a checkpoint keeps every field of the model, and a change of a field is another model or is allowed") {
  const TemporaryFolder folder;
  Metadata metadata = known_metadata(5);
  metadata.model = changed_shape();
  KnownState state = whole_state();
  state.fill(5);
  save_checkpoint(folder, metadata, state.tensors);
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(folder, log);
  CHECK(checkpoint.metadata().model == metadata.model);
  std::string allowed;
  const auto check_each = [&](auto of) {
    each_field(of(metadata.model), [&](const ShapeField& field, auto& value) {
      const auto before = value;
      change(value);
      if (value != before && refused([&] { checkpoint.require_model(metadata.model); }) == "accepted")
        allowed += std::string(field.option) + " ";
      value = before;
    });
  };
  check_each([](ModelShape& shape) -> ModelShape& { return shape; });
  check_each([](ModelShape& shape) -> Experts& { return shape.experts; });
  CHECK(allowed == "dropout moe-aux-loss-coeff moe-z-loss-coeff moe-router-bias-update-rate ");
}

TEST_CASE("a checkpoint of another model is refused, and the error names the first tensor that differs") {
  const TemporaryFolder folder;
  save_step(folder, 5);
  Log log = quiet();
  const Checkpoint checkpoint = Checkpoint::open(folder, log);
  KnownState state = whole_state();
  state.tensors[2].shape = {18};
  state.tensors[3].name = "other";
  CHECK_THROWS_WITH(checkpoint.read(state.tensors), says("of another model\n") &&
                                                        says("\"norm.gain\": shape [17] and type bf16 in") &&
                                                        says("but shape [18] and type bf16 here\n"));
  state.tensors[2].shape = {17};
  CHECK_THROWS_WITH(checkpoint.read(state.tensors), says("\"other\": no such tensor in"));
  ModelShape here = checkpoint.metadata().model;
  here.heads = 3;
  CHECK_THROWS_WITH(checkpoint.require_model(here), says("its num-attention-heads is 6, but 3 here"));
  here = checkpoint.metadata().model;
  here.experts.count = 8;
  CHECK_THROWS_WITH(checkpoint.require_model(here), says("its num-experts is 0, but 8 here"));
  CHECK_THROWS_WITH(step_loaded(folder / "none"), says("there is no checkpoint"));
}

TEST_CASE("if one rank cannot write, saving fails on all ranks and the old set remains") {
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
  CHECK_THAT(errors[0],
             says("not saved") && says("rank 1: the part of tensor \"block.0.mlp.up.weight\" to save has 60 elements"));
  CHECK_THAT(errors[1], says("to save has 60 elements"));
  CHECK(step_loaded(folder) == 1);
}

TEST_CASE("parts that leave a gap are not saved") {
  const TemporaryFolder folder;
  KnownState state;
  state.add(0, {{0, 0, 5}});
  CHECK_THROWS_WITH(save_checkpoint(folder, known_metadata(1), state.tensors),
                    says("\"block.0.mlp.up.weight\" is not whole: its shards cover only 5 of 6 indices along dim 0"));
  CHECK(names_in(folder).empty());
}

// Programs for checkpoint_test.py. The first program saves several steps. The second program loads a step from each folder
// in TEST_FOLDER and prints the step.
TEST_CASE("save checkpoints into TEST_FOLDER", "[.checkpoint-writer]") {
  for (const std::int64_t step : {10, 20, 30, 40, 30}) {
    save_step(needed("TEST_FOLDER"), step);
    std::printf("saved %lld\n", static_cast<long long>(step));
    std::fflush(stdout);
  }
}

TEST_CASE("load checkpoints below TEST_FOLDER", "[.checkpoint-reader]") {
  for (const auto& entry : fs::directory_iterator(needed("TEST_FOLDER"))) {
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
