// Tests models with experts in the Hugging Face format, namely Mixtral and Qwen3-MoE.
#include <fstream>

#include "tests/parallel/state/hugging_face_shapes.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {

namespace fs = std::filesystem;

TEST_CASE("the matrices of experts are exported to where Hugging Face expects them") {
  Host host;
  const auto check = [&](const ModelShape& shape, const std::string& block, const char* gate, const char* up,
                         const char* down, const char* router) {
    const NamedTensors tensors = distinct(shape, DType::f32, host.allocator);
    const TemporaryFolder folder;
    export_folder(folder / "m", shape, tensors, DType::f32);
    const safetensors::File file(folder / "m" / "model.safetensors");
    const auto ours = [&](const std::string& name, std::int64_t row, std::int64_t column) {
      const Tensor& tensor = tensors.at("block.1.mlp." + name + ".weight");
      return tensor.values<float>()[static_cast<std::size_t>(row * tensor.shape().back() + column)];
    };
    const auto theirs = [&](const std::string& name, std::int64_t row, std::int64_t column) {
      return value_in(file, "model.layers.1." + block + name + ".weight", row, column);
    };
    const auto same = [](float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; };
    // A unit has 3 gate columns and 3 up columns, stored as [gate 3 | up 3]. Gate column 7 has index 1 in unit 2.
    CHECK(same(theirs(std::string(".experts.2.") + gate, 7, 5), ours("expert.2.up", 5, 2 * 6 + 1)));
    CHECK(same(theirs(std::string(".experts.2.") + up, 7, 5), ours("expert.2.up", 5, 2 * 6 + 3 + 1)));
    CHECK(same(theirs(std::string(".experts.1.") + down, 4, 11), ours("expert.1.down", 11, 4)));
    CHECK(same(theirs(router, 2, 6), ours("router", 6, 2)));
  };
  check(mixtral(), "block_sparse_moe", "w1", "w3", "w2", ".gate");
  check(qwen3_moe(), "mlp", "gate_proj", "up_proj", "down_proj", ".gate");
}

// Rewrites the folder in the format that version 5 of the transformers library writes with save_original_format=False.
void join_experts(const fs::path& folder, const ModelShape& shape, const fs::path& joined) {
  const safetensors::File file(folder / "model.safetensors");
  const std::int64_t f = shape.experts.ffn, h = shape.width, count = shape.experts.count;
  std::vector<safetensors::Entry> entries;
  std::map<std::string, std::vector<std::byte>> data;
  const auto append = [&](const std::string& name, const safetensors::Entry& entry, Shape whole) {
    if (!data.contains(name)) entries.push_back({name, entry.dtype, std::move(whole)});
    const auto bytes = file.data(entry);
    data[name].insert(data[name].end(), bytes.begin(), bytes.end());
  };
  for (const Renamed& name : names_of(shape)) {  // for each expert: gate, up and down
    const std::size_t block = name.theirs.find(".", std::string("model.layers.").size());
    const std::string start = name.theirs.substr(0, block);
    const safetensors::Entry& entry = *file.find(name.theirs);
    const bool of_expert = name.theirs.find(".experts.") != std::string::npos;
    if (of_expert && entry.shape == Shape{f, h})
      append(start + ".mlp.experts.gate_up_proj", entry, {count, 2 * f, h});
    else if (of_expert)
      append(start + ".mlp.experts.down_proj", entry, {count, h, f});
    else if (name.theirs.ends_with("block_sparse_moe.gate.weight"))
      append(start + ".mlp.gate.weight", entry, entry.shape);
    else
      append(name.theirs, entry, entry.shape);
  }
  fs::create_directories(joined);
  fs::copy_file(folder / "config.json", joined / "config.json");
  safetensors::Writer writer(joined / "model.safetensors", entries);
  for (const auto& entry : entries) writer.write(data.at(entry.name));
  writer.finish();
}

TEST_CASE("experts that are joined in one tensor are read, and parts of them too") {
  Host host;
  for (const ModelShape& shape : {mixtral(), qwen3_moe()}) {
    const TemporaryFolder folder;
    const NamedTensors tensors = distinct(shape, DType::bf16, host.allocator);
    export_folder(folder / "m", shape, tensors, DType::bf16);
    join_experts(folder / "m", shape, folder / "joined");
    const HuggingFaceModel model(folder / "joined");
    CHECK(same_bits(whole_of(model, host.allocator).tensors, tensors));
    const Tensor& up = tensors.at("block.1.mlp.expert.1.up.weight");
    std::vector<std::byte> part(2 * 8 * 6);  // columns 6 to 11 of 8 rows, the part of one of four tensor ranks
    model.read("block.1.mlp.expert.1.up.weight", up.shape(), {.shard = {1, 6, 6}, .first = 0, .count = 8 * 6}, part);
    for (std::size_t row = 0; row < 8; ++row)
      CHECK(std::memcmp(part.data() + row * 12, static_cast<std::byte*>(up.slice().data) + (row * 24 + 6) * 2, 12) == 0);
  }
}

TEST_CASE("an unsupported model with experts is refused, and the error names the unsupported option") {
  const auto refusal = [](const ModelShape& model, const std::string& what, const std::string& by) {
    std::string config = config_of_shape(model, DType::f32);
    const std::size_t at = config.find(what);
    REQUIRE(at != std::string::npos);
    config.replace(at, what.size(), by);
    return refused([&] { shape_of_config(config, "there/config.json"); });
  };
  CHECK_THAT(refusal(mixtral(), "\"num_local_experts\": 3", "\"num_local_experts\": 0"), says("num_local_experts"));
  CHECK_THAT(refusal(mixtral(), "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 4"),
             says("num_experts_per_tok") && says("only 3 experts"));
  CHECK_THAT(refusal(mixtral(), "\"sliding_window\": null", "\"sliding_window\": 4"), says("all earlier tokens"));
  CHECK(refusal(mixtral(), "\"sliding_window\": null", "\"sliding_window\": 5") == "accepted");
  CHECK_THAT(refusal(mixtral(), "\"attention_bias\"", "\"router_jitter_noise\": 0.1, \"attention_bias\""), says("only 0.0"));
  CHECK(refusal(qwen3_moe(), "\"num_experts\"", "\"num_local_experts\"") == "accepted");
  CHECK_THAT(refusal(qwen3_moe(), "\"num_experts\"", "\"experts\""), says("\"num_local_experts\" is missing"));
  CHECK_THAT(refusal(qwen3_moe(), "\"moe_intermediate_size\"", "\"size\""), says("moe_intermediate_size"));
  CHECK_THAT(refusal(qwen3_moe(), "\"attention_bias\"", "\"use_sliding_window\": true, \"attention_bias\""),
             says("only false"));
  CHECK_THAT(refusal(qwen3_moe(), "\"mlp_only_layers\": []", "\"mlp_only_layers\": [\"1\"]"), says("wrong type"));
}

TEST_CASE("which blocks of a Qwen3-MoE have experts must be every n-th") {
  const auto interval = [](std::int64_t layers, std::int64_t step, const std::string& dense) {
    ModelShape shape = qwen3_moe();
    shape.layers = layers;
    shape.experts.every = step;
    std::string config = config_of_shape(shape, DType::f32);
    config.replace(config.find("\"mlp_only_layers\": []"), 21, "\"mlp_only_layers\": " + dense);
    return shape_of_config(config, "there/config.json").experts;
  };
  CHECK(interval(6, 1, "[]").every == 1);
  CHECK(interval(6, 3, "null").every == 3);
  CHECK(interval(6, 1, "[0,2,4]").every == 2);
  CHECK(interval(3, 2, "[1]").count == 0);
  CHECK(interval(3, 1, "[0,1,2]").count == 0);
  CHECK_THAT(refused([&] { interval(6, 1, "[0]"); }), says("every n-th block") && says("block 2 has experts"));
  CHECK_THAT(refused([&] { interval(6, 2, "[3]"); }), says("block 3 has none"));
}

TEST_CASE("a model with experts that Hugging Face does not have is not exported") {
  const auto refusal = [](ModelShape shape, auto change) {
    change(shape);
    return refused([&] { model_type_of(shape); });
  };
  CHECK(refusal(mixtral(), [](ModelShape&) {}) == "accepted");
  CHECK_THAT(refusal(mixtral(), [](ModelShape& s) { s.experts.every = 2; }),
             says("expert-interval 2") && says("qk-layernorm"));
  CHECK_THAT(refusal(mixtral(), [](ModelShape& s) { s.experts.before_choice = true; }), says("pre-softmax true"));
  CHECK_THAT(refusal(qwen3_moe(), [](ModelShape& s) { s.experts.shared_ffn = 8; }), says("shared-expert"));
  CHECK_THAT(refusal(qwen3_moe(), [](ModelShape& s) { s.experts.score = ScoreFunction::sigmoid; }), says("sigmoid"));
  CHECK_THAT(refusal(mixtral(), [](ModelShape& s) { s.experts.scale = 2; }), says("scaling-factor 2"));
  CHECK_THAT(refusal(mixtral(), [](ModelShape& s) { s.experts.groups = 3; }), says("num-groups 3"));
  CHECK_THAT(refusal(mixtral(), [](ModelShape& s) { s.family = ModelFamily::gpt2; }), says("a GPT-2 has no experts"));
  CHECK_THAT(refusal(small_dense(ModelFamily::gpt2), [](ModelShape& s) { s.head = 6; }), says("4 of width 6 are not 8"));
}

// The transformers library computes one loss over all blocks together. The shares in this loss add up to k.
TEST_CASE("the coefficient of the balance loss is converted") {
  ModelShape shape = mixtral();
  shape.layers = 4;
  const std::string config = config_of_shape(shape, DType::f32);
  CHECK(config.find("\"router_aux_loss_coef\": 0.5,") != std::string::npos);  // 0.25 · 4 blocks / 2 choices per token
  CHECK(config.find("\"output_router_logits\": true") != std::string::npos);
  CHECK(shape_of_config(config, "there/config.json").experts.balance == 0.25);
}

}  // namespace chorale::test
