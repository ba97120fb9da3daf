// Exports a model: a configuration, and all tensors in one file.
#include "parallel/state/hugging_face.hpp"

#include "src/base/error.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

// Calls copy(theirs, ours) for every element. `theirs` is the element's index in the Hugging Face tensor, and `ours` is its
// index in the Chorale tensor. A vector is treated as one row.
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
          out[theirs] = value;  // keeps every bit, even of a NaN
        else
          out[theirs] = To(static_cast<float>(value));
      });
    });
  });
  return bytes;
}

}  // namespace

void export_folder(const fs::path& folder, const ModelShape& shape, const NamedTensors& tensors, DType dtype) {
  require(is_floating(dtype), "models are exported in floating-point types, not in {}", name_of(dtype));
  const std::vector<Renamed> names = names_of(shape);
  std::vector<safetensors::Entry> entries;
  for (const Renamed& name : names) {
    const auto found = tensors.find(name.ours);
    require(found != tensors.end() && found->second.shape() == name.shape_ours && is_floating(found->second.dtype()),
            "\"{}\" must be a floating-point tensor of shape {}", name.ours, to_string(name.shape_ours));
    entries.push_back({name.theirs, dtype, name.shape});
  }
  fs::create_directories(folder);
  write_durably(folder / "config.json", config_of_shape(shape, dtype));
  safetensors::Writer writer(folder / "model.safetensors", std::move(entries), {{"format", "pt"}});
  for (const Renamed& name : names) writer.write(theirs_of(name, tensors.at(name.ours), dtype));
  writer.finish();
}

}  // namespace chorale
