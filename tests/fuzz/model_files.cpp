// Fuzz targets for weights and checkpoints.
#include <fmt/format.h>

#include <cstring>

#include "parallel/state/manifest.hpp"
#include "src/base/crc32c.hpp"
#include "src/record/safetensors.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/parallel/state/hugging_face_shapes.hpp"
#include "tests/parallel/state/saved_state.hpp"

namespace chorale::test {

namespace {

const std::filesystem::path set = "checkpoint/step-1", manifest = set / "manifest.json", shard = file_of(set, 0);
const std::filesystem::path model = "model", config = model / "config.json", weights = model / "model.safetensors";

// The first call in a process saves a checkpoint set (a step folder). Later calls only restore the files of this set.
void restore_set() {
  static const std::string text = [] {
    std::filesystem::remove_all("checkpoint");
    save_step("checkpoint", 1);
    return bytes_in(manifest);
  }();
  static const std::string data = bytes_in(shard);
  std::filesystem::create_directories(set);  // a child process works in a different folder
  put_bytes(manifest, text);
  put_bytes(shard, data);
}

void restore_model() {
  static const std::string text = [] {
    Host host;
    std::filesystem::remove_all(model);
    export_folder(model, small_dense(ModelFamily::gpt2),
                  distinct(small_dense(ModelFamily::gpt2), DType::bf16, host.allocator), DType::bf16);
    return bytes_in(config);
  }();
  static const std::string data = bytes_in(weights);
  std::filesystem::create_directories(model);
  put_bytes(config, text);
  put_bytes(weights, data);
}

// Loads the checkpoint set without comparing values. The expected values depend on the step, and a forged manifest can state
// a different step.
void load_set() {
  Log log = quiet();
  KnownState state = whole_state();
  Checkpoint::open(set, log).read(state.tensors);
}

// Returns the part of a manifest between its checksum and the last brace.
std::string body_of(const std::string& text) { return text.substr(32, text.size() - 34); }

}  // namespace

void fuzz_safetensors(std::string_view input) {
  put_bytes("weights.safetensors", input);
  const safetensors::File file("weights.safetensors");
  std::uint32_t sum = 0;
  for (const auto& [name, entry] : file.entries()) sum = crc32c(file.data(entry), sum);
}

std::vector<std::string> safetensors_samples() {
  restore_set();
  restore_model();
  return {bytes_in(shard), bytes_in(weights)};
}

// The input is the body of a manifest. The target adds a valid checksum, as an attacker would, and the data files are valid.
void fuzz_manifest(std::string_view input) {
  restore_set();
  put_bytes(manifest,
            fmt::format("{{\"crc32c\":\"{:08x}\",\"manifest\":{}}}\n", crc32c(std::as_bytes(std::span(input))), input));
  load_set();
}

std::vector<std::string> manifest_samples() {
  restore_set();
  return {body_of(bytes_in(manifest))};
}

// The first byte of the input selects a file of a checkpoint. The remaining bytes replace the contents of this file.
void fuzz_checkpoint(std::string_view input) {
  restore_set();
  put_bytes(input.starts_with('m') ? manifest : shard, input.substr(std::min<std::size_t>(1, input.size())));
  load_set();
}

std::vector<std::string> checkpoint_samples() {
  restore_set();
  return {"m" + bytes_in(manifest), "s" + bytes_in(shard)};
}

// The first byte of the input selects a file of a model in Hugging Face's format. The remaining bytes replace the contents
// of this file.
void fuzz_model(std::string_view input) {
  restore_model();
  put_bytes(input.starts_with('c') ? config : weights, input.substr(std::min<std::size_t>(1, input.size())));
  Host host;
  whole_of(HuggingFaceModel(model), host.allocator);
}

std::vector<std::string> model_samples() {
  restore_model();
  return {"c" + bytes_in(config), "w" + bytes_in(weights)};
}

}  // namespace chorale::test
