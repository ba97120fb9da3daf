#include "parallel/state/hugging_face.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "parallel/state/stored_weights.hpp"
#include "src/record/safetensors.hpp"
#include "tests/parallel/state/hugging_face_shapes.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {

namespace fs = std::filesystem;

TEST_CASE("a model exported to Hugging Face's format and read back has the same bits") {
  Host host;
  for (ModelShape shape : all_shapes())
    for (const bool tied : {true, false})
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
        const TemporaryFolder folder;
        shape.tied = tied;
        const NamedTensors tensors = distinct(shape, dtype, host.allocator);
        export_folder(folder / "model", shape, tensors, dtype);
        const ImportedModel back = whole_of(HuggingFaceModel(folder / "model"), host.allocator);
        CHECK(same_bits(back.tensors, tensors));
        CHECK(config_of_shape(back.shape, dtype) == config_of_shape(shape, dtype));
        CHECK(back.tensors.contains("head.weight") == !tied);
      }
}

TEST_CASE("columns are exported to where Hugging Face expects them") {
  Host host;
  const TemporaryFolder folder;
  const auto numbered = [&](const ModelShape& shape) {  // element (row, column) is 1000·row + column
    NamedTensors tensors = distinct(shape, DType::f32, host.allocator);
    for (auto& [name, tensor] : tensors) {
      const auto values = tensor.values<float>();
      const std::int64_t columns = tensor.shape().back();
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] =
            static_cast<float>(1000 * (static_cast<std::int64_t>(i) / columns) + static_cast<std::int64_t>(i) % columns);
    }
    return tensors;
  };
  // With 2 columns per head, Chorale stores q of head 1 at column 6, k at column 8 and v at column 10.
  const ModelShape gpt2 = small_dense(ModelFamily::gpt2);
  export_folder(folder / "gpt2", gpt2, numbered(gpt2), DType::f32);
  const safetensors::File g(folder / "gpt2" / "model.safetensors");
  CHECK(g.metadata().at("format") == "pt");
  CHECK(value_in(g, "transformer.h.1.attn.c_attn.weight", 3, 2) == 3006);       // q of head 1
  CHECK(value_in(g, "transformer.h.1.attn.c_attn.weight", 3, 8 + 3) == 3009);   // k of head 1, second column
  CHECK(value_in(g, "transformer.h.1.attn.c_attn.weight", 7, 16 + 6) == 7022);  // v of head 3
  CHECK(value_in(g, "transformer.h.1.attn.c_attn.bias", 0, 16 + 6) == 22);
  CHECK(value_in(g, "transformer.h.0.mlp.c_fc.weight", 7, 11) == 7011);
  // Chorale stores two groups of two query heads. The columns of a group are [q0 q1 k v] with 2 columns each, so group 1
  // begins at column 8. A feed-forward unit has 3 gate columns and 3 up columns, stored as [gate 3 | up 3].
  const ModelShape llama = small_dense(ModelFamily::llama);
  export_folder(folder / "llama", llama, numbered(llama), DType::f32);
  const safetensors::File l(folder / "llama" / "model.safetensors");
  CHECK(value_in(l, "model.layers.0.self_attn.q_proj.weight", 2 * 3 + 1, 5) == 5011);  // head 3 = group 1, query 1
  CHECK(value_in(l, "model.layers.0.self_attn.k_proj.weight", 2, 5) == 5012);          // group 1
  CHECK(value_in(l, "model.layers.0.self_attn.v_proj.weight", 1, 5) == 5007);          // group 0, second column
  CHECK(value_in(l, "model.layers.0.self_attn.o_proj.weight", 3, 6) == 6003);
  CHECK(value_in(l, "model.layers.1.mlp.gate_proj.weight", 4, 7) == 7007);  // unit 1, second column
  CHECK(value_in(l, "model.layers.1.mlp.up_proj.weight", 4, 7) == 7010);
  CHECK(value_in(l, "model.layers.1.mlp.down_proj.weight", 7, 4) == 4007);
}

TEST_CASE("import accepts shards, names without a prefix, and tensors that the shape makes redundant") {
  Host host;
  const TemporaryFolder folder;
  const ModelShape shape = small_dense(ModelFamily::gpt2);
  const NamedTensors tensors = distinct(shape, DType::f32, host.allocator);
  export_folder(folder / "whole", shape, tensors, DType::f32);
  fs::create_directory(folder / "shards");
  fs::copy_file(folder / "whole" / "config.json", folder / "shards" / "config.json");
  const safetensors::File whole(folder / "whole" / "model.safetensors");
  std::vector<safetensors::Entry> halves[2];
  for (const auto& [name, entry] : whole.entries()) halves[halves[0].size() > 12].push_back(entry);
  std::string map;
  for (int half : {0, 1}) {
    const std::string file = fmt::format("model-{}.safetensors", half);
    std::vector<safetensors::Entry> renamed = halves[half];
    for (auto& entry : renamed) {
      map += fmt::format("\"{}\":\"{}\",", entry.name, file);
      entry.name = entry.name.substr(12);
    }
    if (half == 1) renamed.push_back({"h.0.attn.bias", DType::u8, {2}});
    safetensors::Writer writer(folder / "shards" / file.c_str(), renamed);
    for (const auto& entry : halves[half]) writer.write(whole.data(entry));
    if (half == 1) writer.write(std::as_bytes(std::span("x")));
    writer.finish();
  }
  const auto index = [&](const std::string& text) {
    std::ofstream(folder / "shards" / "model.safetensors.index.json") << text;
  };
  index("{\"weight_map\":{" + map.substr(0, map.size() - 1) + "}}");
  CHECK(same_bits(whole_of(HuggingFaceModel(folder / "shards"), host.allocator).tensors, tensors));
  for (const char* outside : {"../whole/model.safetensors", "/etc/passwd", "..", ""}) {
    index(fmt::format(R"({{"weight_map":{{"x":"{}"}}}})", outside));
    CHECK_THROWS_WITH(whole_of(HuggingFaceModel(folder / "shards"), host.allocator), says("is not in the folder"));
  }
  index(R"({"weight_map":{"x":"model-0.safetensors"}})");
  CHECK_THROWS_WITH(whole_of(HuggingFaceModel(folder / "shards"), host.allocator), says("is missing"));
  index("[]");
  CHECK_THROWS_WITH(whole_of(HuggingFaceModel(folder / "shards"), host.allocator), says("index.json"));
}

TEST_CASE("an unsupported model is refused, and the error names the unsupported option") {
  const auto refusal = [](const char* family, const std::string& what, const std::string& by) -> std::string {
    std::string config = config_of_shape(small_dense(named<ModelFamily>(family)), DType::f32);
    const std::size_t at = config.find(what);
    REQUIRE(at != std::string::npos);
    config.replace(at, what.size(), by);
    return test::refused([&] { shape_of_config(config, "there/config.json"); });
  };
  CHECK(refusal("gpt2", "gelu_new", "gelu_new") == "accepted");
  CHECK_THAT(refusal("gpt2", "gelu_new", "relu"),
             says("\"activation_function\" is \"relu\" in there/config.json") && says("only \"gelu_new\""));
  CHECK_THAT(refusal("gpt2", "\"n_layer\": 2", "\"n_layer\": -2"), says("a size from 1"));
  CHECK_THAT(refusal("gpt2", "\"n_layer\": 2", "\"n_layer\": \"2\""), says("wrong type"));
  CHECK_THAT(refusal("gpt2", "\"n_layer\"", "\"layers\""), says("\"n_layer\" is missing"));
  CHECK_THAT(refusal("gpt2", "\"n_head\": 4", "\"n_head\": 3"), says("must divide n_embd"));
  CHECK(refusal("gpt2", "gelu_new", "gelu_pytorch_tanh") == "accepted");
  CHECK(refusal("gpt2", "\"attn_pdrop\": 0.0", "\"attn_pdrop\": 0.5") ==
        "accepted");  // the option --dropout sets the dropout; the file does not
  CHECK_THAT(refusal("gpt2", "\"model_type\": \"gpt2\"", "\"model_type\": \"mamba\""), says("gpt2, llama, mixtral"));
  CHECK_THAT(refusal("llama", "\"silu\"", "\"gelu\""), says("hidden_act"));
  CHECK_THAT(refusal("llama", "\"attention_bias\": false", "\"attention_bias\": true"), says("attention_bias"));
  const auto rope = [&](const std::string& value) { return refusal("llama", "\"mlp_bias\"", value + ", \"mlp_bias\""); };
  for (const char* unscaled : {"null", "{}", R"({"type": "default"})", R"({"rope_type": "default", "factor": 1.0})",
                               R"({"rope_type": "default", "type": null})"})
    CHECK(rope(fmt::format("\"rope_scaling\": {}", unscaled)) == "accepted");
  for (const char* scaled :
       {R"({"factor": 8})", R"({"type": "linear", "factor": 2})", R"({"rope_type": "llama3"})", "\"default\"", "8"})
    CHECK_THAT(rope(fmt::format("\"rope_scaling\": {}", scaled)), says("positions are scaled") && says("not 3.1"));
  CHECK_THAT(rope(R"("rope_parameters": {"rope_type": "yarn"})"), says("positions are scaled"));
  CHECK_THAT(rope(R"("rope_parameters": {"rope_theta": "much"})"), says("must be a number"));
  CHECK_THAT(refusal("llama", "\"head_dim\": 2", "\"head_dim\": 3"), says("\"head_dim\" is 3") && says("even width"));
  CHECK_THAT(refusal("llama", "\"head_dim\": 2", "\"head_dim\": 0"), says("a size from 1"));
  CHECK_THAT(refusal("llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"), says("must divide"));
  CHECK_THAT(refusal("llama", "{", "["), says("not a JSON object"));
  const std::string newer =
      R"({"model_type":"llama","num_hidden_layers":1,"num_attention_heads":2,"hidden_size":8,"intermediate_size":8,
    "max_position_embeddings":9,"vocab_size":7,"rope_parameters":{"rope_type":"default","rope_theta":5e5}})";
  const ModelShape shape = shape_of_config(newer, "config.json");
  CHECK((shape.rotary_base == 5e5 && shape.groups == 2 && !shape.tied && shape.epsilon == 1e-6));
}

TEST_CASE("a folder whose configuration contradicts its weights is refused") {
  Host host;
  const TemporaryFolder folder;
  ModelShape shape = small_dense(ModelFamily::llama);
  export_folder(folder / "m", shape, distinct(shape, DType::f32, host.allocator), DType::f32);
  const auto promise = [&] {
    fs::remove(folder / "m" / "config.json");
    std::ofstream(folder / "m" / "config.json") << config_of_shape(shape, DType::f32);
    return whole_of(HuggingFaceModel(folder / "m"), host.allocator).tensors.size();
  };
  CHECK(promise() == 2 * 6 + 3);
  shape.ffn = 999'999'999;
  CHECK_THROWS_WITH(promise(), says("does not fit into"));
  shape.ffn = 16;
  CHECK_THROWS_WITH(promise(),
                    says("\"model.layers.0.mlp.gate_proj.weight\" has shape [12, 8] and type f32, expected shape [16, 8]"));
  shape.ffn = 12;
  shape.layers = 1;
  CHECK_THROWS_WITH(promise(), says("does not belong to this model"));
  shape.layers = 2;
  shape.tied = true;
  CHECK(promise() == 2 * 6 + 2);
}

TEST_CASE("pickled weights are refused, and the error says what to do instead") {
  Host host;
  const TemporaryFolder folder;
  const ModelShape shape = small_dense(ModelFamily::gpt2);
  export_folder(folder / "m", shape, distinct(shape, DType::f32, host.allocator), DType::f32);
  fs::rename(folder / "m" / "model.safetensors", folder / "m" / "pytorch_model.bin");
  const std::string text = refused([&] { HuggingFaceModel(folder / "m"); });
  CHECK_THAT(text, says("the weights are a pickle") && says("pytorch_model.bin") && says("save_pretrained"));
  CHECK_THAT(refused([&] { shape_of_folder(folder / "m" / "pytorch_model.bin"); }), says("the weights are a pickle"));
  fs::remove(folder / "m" / "pytorch_model.bin");
  CHECK_THAT(refused([&] { HuggingFaceModel(folder / "m"); }), says("neither model.safetensors nor"));
}

TEST_CASE("any part of a tensor is read without the rest") {
  Host host;
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama}) {
    const TemporaryFolder folder;
    const ModelShape shape = small_dense(family);
    const NamedTensors tensors = distinct(shape, DType::bf16, host.allocator);
    export_folder(folder / "m", shape, tensors, DType::bf16);
    const HuggingFaceModel model(folder / "m");
    for (const auto& [name, whole] : tensors)
      for (int dim = -1; dim < static_cast<int>(whole.shape().size()); ++dim)
        for (const std::int64_t cut : {0, 1, 2}) {
          Shard shard{.dim = dim};
          if (dim >= 0) {
            const std::int64_t length = whole.shape()[static_cast<std::size_t>(dim)];
            shard.first = length * cut / 3;
            shard.length = length * (cut + 1) / 3 - shard.first;
          }
          const std::int64_t all = resolved({.shard = shard}, whole.shape()).count;
          for (const auto& [first, count] :
               {std::pair<std::int64_t, std::int64_t>{0, all}, {all / 3, all / 2}, {all - 1, 1}}) {
            const Part part{.shard = shard, .first = first, .count = count};
            std::vector<std::byte> read(static_cast<std::size_t>(count * 2)), expected(read.size());
            model.read(name, whole.shape(), part, read);
            copy_common(whole.shape(), 2, resolved({}, whole.shape()),
                        {static_cast<std::byte*>(whole.slice().data), static_cast<std::size_t>(whole.bytes())}, part,
                        expected);
            INFO(name << " dim " << dim << " cut " << cut << " elements " << first << " + " << count);
            CHECK(read == expected);
          }
        }
    model.forget("embedding.weight");  // the next read loads the tensor again
    std::vector<std::byte> row(static_cast<std::size_t>(shape.width * 2));
    model.read("embedding.weight", {shape.vocabulary, shape.width}, {.count = shape.width}, row);
    CHECK(std::memcmp(row.data(), tensors.at("embedding.weight").slice().data, row.size()) == 0);
    if (!shape.llama()) {  // a model with a shorter sequence uses the first positions
      std::vector<std::byte> last(row.size());
      model.read("position.weight", {3, shape.width}, {.first = 2 * shape.width, .count = shape.width}, last);
      CHECK(std::memcmp(last.data(), static_cast<std::byte*>(tensors.at("position.weight").slice().data) + 2 * row.size(),
                        row.size()) == 0);
    }
  }
}

TEST_CASE("weights are read one MiB at a time and converted to any type") {
  Host host;
  const TemporaryFolder folder;
  ModelShape shape = small_dense(ModelFamily::gpt2);
  shape.vocabulary = 50'000;  // the table has 1.5 MiB in f32
  const NamedTensors tensors = distinct(shape, DType::f32, host.allocator);
  const auto numbers = tensors.at("embedding.weight").values<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  export_folder(folder / "m", shape, tensors, DType::f32);
  Log log({.level = "off"});
  Ledger reading;
  Allocator memory(host.memory, reading);
  const StoredWeights stored(folder / "m", memory, log);
  const auto parameter = std::make_shared<Parameter>(
      Parameter{.name = "embedding.weight", .shape = {shape.vocabulary, shape.width}, .shard = {0, 1000, 49'000}});
  Owned owned{parameter, 8, 49'000 * 8 - 16, Tensor(host.allocator, {49'000 * 8 - 16}, DType::f64, Category::params), {}};
  stored.read({owned}, {});
  const auto values = owned.value.values<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != static_cast<double>(8008 + i)) FAIL("element " << i << " is " << values[i]);
  CHECK(reading.total_peak() == 1 << 20);
  CHECK(reading.total() == 0);
}

}  // namespace chorale::test
