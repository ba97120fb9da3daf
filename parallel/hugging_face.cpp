#include "parallel/hugging_face.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/error.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

// Calls copy(theirs, ours) with the place of every element in both; vectors are one row.
template <class Copy>
void for_each_element(const Renamed& name, Copy&& copy) {
  const bool flat = name.shape_ours.size() == 1;
  const std::int64_t rows = flat ? 1 : name.shape_ours[0], our_columns = name.shape_ours.back();
  const std::int64_t columns = name.columns.empty() ? our_columns : static_cast<std::int64_t>(name.columns.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t column = name.columns.empty() ? j : name.columns[static_cast<std::size_t>(j)];
      copy(name.transposed ? j * rows + row : row * columns + j, row * our_columns + column);
    }
}

std::vector<std::byte> theirs_of(const Renamed& name, const Tensor& ours, DType dtype) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements_of(name.shape) * size_of(dtype)));
  visit(ours.dtype(), [&]<class From>(Type<From>) {
    visit(dtype, [&]<class To>(Type<To>) {
      const auto values = ours.values<From>();
      auto* const out = reinterpret_cast<To*>(bytes.data());
      for_each_element(name, [&](std::int64_t theirs, std::int64_t here) {
        const From value = values[static_cast<std::size_t>(here)];
        if constexpr (std::is_same_v<From, To>)
          out[theirs] = value;  // every bit of it, also of a NaN
        else
          out[theirs] = To(static_cast<float>(value));
      });
    });
  });
  return bytes;
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& what) {
  usage_error("this model cannot be imported", fmt::format("{}: {}", folder.string(), what),
              "fetch the folder again, or export it anew");
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "it cannot be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<safetensors::File> files_of(const fs::path& folder) {
  std::vector<safetensors::File> files;
  const fs::path one = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (fs::exists(one) || !fs::exists(index)) {
    files.emplace_back(one);
    return files;
  }
  std::set<std::string> names;
  try {
    const auto text = nlohmann::json::parse(text_of(index));
    for (const auto& [tensor, name] : text.at("weight_map").get_ref<const nlohmann::json::object_t&>())
      names.insert(name.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    refuse(index, error.what());
  }
  for (const std::string& name : names) {
    if (name.empty() || fs::path(name).filename() != name || name == ".." || name == ".")
      refuse(index, fmt::format("the shard \"{}\" is not in the folder", name));
    files.emplace_back(folder / name);
  }
  return files;
}

// What their files may have besides the parameters: masks and frequencies that follow from the shape, the head a second time.
bool beside(const std::string& name, const ModelShape& shape) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq") ||
         (shape.tied && name == "lm_head.weight");
}

// Nothing is allocated for what a configuration promises before the files are as large as that.
void require_room_for(const ModelShape& s, const std::vector<safetensors::File>& files, const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const safetensors::File& file : files) bytes += file.bytes();
  const __int128 least =
      static_cast<__int128>(s.vocabulary) * s.width + static_cast<__int128>(s.layers) * s.width * (s.width + s.ffn);
  if (least > bytes)
    refuse(folder, fmt::format("a model of {} layers, width {} and ffn {} does not fit into {} bytes", s.layers, s.width,
                               s.ffn, bytes));
}

struct Found {
  const safetensors::File* file;
  const safetensors::Entry* entry;
};

std::map<std::string, Found> tensors_in(const std::vector<safetensors::File>& files, const ModelShape& shape,
                                        const fs::path& folder) {
  const std::string prefix = shape.llama() ? "model." : "transformer.";
  std::map<std::string, Found> found;
  for (const safetensors::File& file : files)
    for (const auto& [name, entry] : file.entries()) {
      if (beside(name, shape)) continue;
      // A model that was saved without its head has no prefix.
      const std::string full = name.starts_with(prefix) || name == "lm_head.weight" ? name : prefix + name;
      if (!found.emplace(full, Found{&file, &entry}).second)
        refuse(folder, fmt::format("the tensor \"{}\" is there twice", name));
    }
  return found;
}

}  // namespace

void export_folder(const fs::path& folder, const ModelShape& shape, const NamedTensors& tensors, DType dtype) {
  require(is_floating(dtype), "models are exported in floating types, not in {}", name_of(dtype));
  const std::vector<Renamed> names = names_of(shape);
  std::vector<safetensors::Entry> entries;
  for (const Renamed& name : names) {
    const auto found = tensors.find(name.ours);
    require(found != tensors.end() && found->second.shape() == name.shape_ours && is_floating(found->second.dtype()),
            "\"{}\" is exported from floats of the shape {}", name.ours, to_string(name.shape_ours));
    entries.push_back({name.theirs, dtype, name.shape});
  }
  fs::create_directories(folder);
  write_durably(folder / "config.json", config_of_shape(shape, dtype));
  safetensors::Writer writer(folder / "model.safetensors", std::move(entries), {{"format", "pt"}});
  for (const Renamed& name : names) writer.write(theirs_of(name, tensors.at(name.ours), dtype));
  writer.finish();
}

ModelShape shape_of_folder(const fs::path& folder) {
  const fs::path config = folder / "config.json";
  return shape_of_config(text_of(config), config.string());
}

ImportedModel import_folder(const fs::path& folder, Allocator& allocator) {
  ImportedModel model{shape_of_folder(folder), {}};
  const std::vector<safetensors::File> files = files_of(folder);
  auto found = tensors_in(files, model.shape, folder);
  require_room_for(model.shape, files, folder);
  for (const Renamed& name : names_of(model.shape)) {
    const auto there = found.find(name.theirs);
    if (there == found.end()) refuse(folder, fmt::format("the tensor \"{}\" is missing", name.theirs));
    const auto [file, entry] = there->second;
    if (entry->shape != name.shape || !is_floating(entry->dtype))
      refuse(folder, fmt::format("the tensor \"{}\" is {} of {} instead of {}", name.theirs, to_string(entry->shape),
                                 name_of(entry->dtype), to_string(name.shape)));
    Tensor& ours = model.tensors[name.ours];
    if (!ours) ours = Tensor(allocator, name.shape_ours, entry->dtype, Category::params);
    if (ours.dtype() != entry->dtype) refuse(folder, fmt::format("the parts of \"{}\" have two types", name.ours));
    const auto size = static_cast<std::size_t>(size_of(entry->dtype));
    const auto data = file->data(*entry);
    auto* const target = static_cast<std::byte*>(ours.slice().data);
    for_each_element(name, [&](std::int64_t theirs, std::int64_t here) {
      std::memcpy(target + static_cast<std::size_t>(here) * size, data.data() + static_cast<std::size_t>(theirs) * size,
                  size);
    });
    found.erase(there);
  }
  if (!found.empty()) refuse(folder, fmt::format("the tensor \"{}\" is none of this model's", found.begin()->first));
  return model;
}

}  // namespace chorale
