// Imports a model from the Hugging Face format. The files are checked against the configuration; then a rank reads its parts
// of the mapped tensors. "theirs" denotes a tensor in the files, and "ours" denotes a Chorale tensor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "parallel/state/hugging_face.hpp"
#include "src/base/error.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/host.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_model(const fs::path& folder, const std::string& what) {
  usage_error("this model cannot be imported", fmt::format("{}: {}", folder.string(), shortened(what)),
              "fetch the folder again, or export it anew");
}

std::string text_in(const fs::path& path) {
  if (const std::string why = why_no_file(path); !why.empty()) refuse_model(path, why);
  auto text = contents_of(path);
  if (!text) refuse_model(path, "it cannot be read");
  return *std::move(text);
}

// A PyTorch pickle is a program that builds the tensors. Opening the pickle would run that program, so pickles are refused.
[[noreturn]] void refuse_pickle(const fs::path& pickle) {
  usage_error("the weights are a pickle", pickle.string() + " contains Python code, which would run when the file is opened",
              "if you trust it: AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OUT), then load OUT");
}

bool is_pickle(const fs::path& path) {
  const fs::path ending = path.extension();
  return ending == ".bin" || ending == ".pt" || ending == ".pth" || ending == ".ckpt";
}

std::vector<safetensors::File> files_of(const fs::path& folder) {
  std::vector<safetensors::File> files;
  const fs::path one = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (fs::exists(one)) {
    files.emplace_back(one);
    return files;
  }
  if (!fs::exists(index)) {
    for (const auto& entry : fs::directory_iterator(folder))
      if (is_pickle(entry.path())) refuse_pickle(entry.path());
    refuse_model(folder, "it has neither model.safetensors nor model.safetensors.index.json");
  }
  std::set<std::string> names;
  try {
    const auto text = nlohmann::json::parse(text_in(index));
    for (const auto& [tensor, name] : text.at("weight_map").get_ref<const nlohmann::json::object_t&>())
      names.insert(name.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    refuse_model(index, reason_of(error));
  }
  for (const std::string& name : names) {
    if (name.empty() || fs::path(name).filename() != name || name == ".." || name == ".")
      refuse_model(index, fmt::format("the shard \"{}\" is not in the folder", name));
    files.emplace_back(folder / name);
  }
  return files;
}

// Whether a tensor of the files can be ignored. Masks and frequencies can be ignored, because they follow from the model's
// shape. The second copy of a tied embedding table can also be ignored.
bool beside(const std::string& name, const ModelShape& shape) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq") ||
         (shape.tied && name == "lm_head.weight");
}

// Refuses a configuration that describes a larger model than the files can hold, before anything is allocated.
void require_room_for(const ModelShape& s, const std::vector<safetensors::File>& files, const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const safetensors::File& file : files) bytes += file.bytes();
  const auto [vocabulary, h, layers] = std::array<__int128, 3>{s.vocabulary, s.width, s.layers};
  const std::int64_t with_experts = s.expert_blocks();
  const __int128 columns = layers * s.heads * s.head_width() + (layers - with_experts) * s.ffn +
                           static_cast<__int128>(with_experts) * s.experts.count * s.experts.ffn;
  const __int128 least = h * (vocabulary + columns);
  if (least > bytes)
    refuse_model(folder, fmt::format("a model of {} layers, width {} and ffn {} does not fit into {} bytes", s.layers,
                                     s.width, s.ffn, bytes));
}

struct FoundEntry {
  const safetensors::File* file;
  const safetensors::Entry* entry;
};

std::map<std::string, FoundEntry> tensors_in(const std::vector<safetensors::File>& files, const ModelShape& shape,
                                             const fs::path& folder) {
  const std::string prefix = shape.llama() ? "model." : "transformer.";
  std::map<std::string, FoundEntry> found;
  for (const safetensors::File& file : files)
    for (const auto& [name, entry] : file.entries()) {
      if (beside(name, shape)) continue;
      // Names have no prefix if the model was saved without its head.
      const std::string full = name.starts_with(prefix) || name == "lm_head.weight" ? name : prefix + name;
      if (!found.emplace(full, FoundEntry{&file, &entry}).second)
        refuse_model(folder, fmt::format("the tensor \"{}\" occurs twice", name));
    }
  return found;
}

// A range of columns that are consecutive both in their tensor and in our part. The fields are the index of the first column
// in each of the two, and the number of columns.
struct ColumnRun {
  std::int64_t theirs, ours, length;
};

// Finds the columns of our tensor within [first, first + width) that come from the tensor `name.theirs`. Returns these
// columns as runs. ColumnRun::ours counts from `first`.
std::vector<ColumnRun> runs_of(const Renamed& name, std::int64_t first, std::int64_t width) {
  if (name.columns.empty()) return {{first, 0, width}};
  std::vector<ColumnRun> runs;
  for (std::size_t j = 0; j < name.columns.size(); ++j) {
    const std::int64_t column = name.columns[j] - first, theirs = static_cast<std::int64_t>(j);
    if (column < 0 || column >= width) continue;
    const bool goes_on = !runs.empty() && runs.back().theirs + runs.back().length == theirs &&
                         runs.back().ours + runs.back().length == column;
    if (goes_on)
      ++runs.back().length;
    else
      runs.push_back({theirs, column, 1});
  }
  return runs;
}

// Copies to `target` the elements of our part that come from the tensor `theirs`. An element has `size` bytes. Element e of
// the part is stored at index e of the target. `part` must come from resolved(). Elements are copied as bytes, because they
// can be unaligned in the mapped file.
template <std::size_t size>
void copy_part(const Renamed& name, const Part& part, const std::byte* theirs, std::byte* target) {
  const auto copy = [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::memcpy(target + static_cast<std::size_t>(to) * size, theirs + static_cast<std::size_t>(from) * size,
                static_cast<std::size_t>(count) * size);
  };
  const bool flat = name.shape_ours.size() == 1, columns_cut = part.shard.dim == (flat ? 0 : 1);
  const std::int64_t stored_rows = flat ? 1 : name.shape_ours[0], stored_columns = name.shape_ours.back();
  const std::int64_t their_columns = name.columns.empty() ? stored_columns : static_cast<std::int64_t>(name.columns.size());
  const std::int64_t first_row = part.shard.dim >= 0 && !columns_cut ? part.shard.first : 0;
  const std::int64_t width = columns_cut ? part.shard.length : stored_columns, end = part.first + part.count;
  if (part.count == 0) return;
  const std::vector<ColumnRun> runs = runs_of(name, columns_cut ? part.shard.first : 0, width);
  if (name.transposed) {
    // Returns the number of elements in this column of the shard whose index is less than `element`. The element in row r
    // has the index r·width + column.
    const auto rows_before = [&](std::int64_t element, std::int64_t column) {
      return std::max<std::int64_t>(0, (element - column + width - 1) / width);
    };
    for (const ColumnRun& run : runs)
      for (std::int64_t i = 0; i < run.length; ++i) {
        const std::int64_t column = run.ours + i;
        const std::int64_t from = (run.theirs + i) * stored_rows + first_row;
        for (std::int64_t row = rows_before(part.first, column), last = rows_before(end, column); row < last; ++row)
          copy(from + row, row * width + column - part.first, 1);
      }
    return;
  }
  for (std::int64_t row = part.first / width; row * width < end; ++row)
    for (const ColumnRun& run : runs) {
      const std::int64_t from = std::max(run.ours, part.first - row * width);
      const std::int64_t to = std::min(run.ours + run.length, end - row * width);
      if (from < to)
        copy((first_row + row) * their_columns + run.theirs + from - run.ours, row * width + from - part.first, to - from);
    }
}

}  // namespace

ModelShape shape_of_folder(const fs::path& folder) {
  if (fs::is_regular_file(folder) && is_pickle(folder)) refuse_pickle(folder);
  const fs::path config = folder / "config.json";
  return shape_of_config(text_in(config), config.string());
}

HuggingFaceModel::HuggingFaceModel(const fs::path& folder)
    : folder_(folder), shape_(shape_of_folder(folder)), files_(files_of(folder)) {
  const auto found = tensors_in(files_, shape_, folder);
  require_room_for(shape_, files_, folder);
  std::set<std::string> used;
  for (const Renamed& name : names_of(shape_)) {
    const bool joined = !found.contains(name.theirs) && found.contains(name.joined.name);
    const auto there = found.find(joined ? name.joined.name : name.theirs);
    if (there == found.end()) refuse_model(folder, fmt::format("the tensor \"{}\" is missing", name.theirs));
    const auto [file, entry] = there->second;
    if (const Shape& expected = joined ? name.joined.shape : name.shape;
        entry->shape != expected || !is_floating(entry->dtype))
      refuse_model(folder,
                   fmt::format("the tensor \"{}\" has shape {} and type {}, expected shape {} and a floating-point type",
                               there->first, to_string(entry->shape), name_of(entry->dtype), to_string(expected)));
    std::vector<Piece>& pieces = pieces_[name.ours];
    if (!pieces.empty() && pieces.front().entry->dtype != entry->dtype)
      refuse_model(folder, fmt::format("the parts of \"{}\" have different types", name.ours));
    pieces.push_back({name, file, entry, joined ? name.joined.first : 0});
    used.insert(there->first);
  }
  for (const auto& [name, there] : found)
    if (!used.contains(name)) refuse_model(folder, fmt::format("the tensor \"{}\" does not belong to this model", name));
}

const std::vector<HuggingFaceModel::Piece>& HuggingFaceModel::pieces(const std::string& ours) const {
  const auto found = pieces_.find(ours);
  require(found != pieces_.end(), "{} holds no \"{}\"", folder_.string(), ours);
  return found->second;
}

DType HuggingFaceModel::dtype(const std::string& ours) const { return pieces(ours).front().entry->dtype; }

void HuggingFaceModel::read(const std::string& ours, const Shape& shape, const Part& part,
                            std::span<std::byte> target) const {
  for (const Piece& piece : pieces(ours)) {
    const Shape& stored = piece.name.shape_ours;
    const bool shorter = ours == "position.weight" && shape.size() == 2 && shape[0] <= stored[0] && shape[1] == stored[1];
    require(shape == stored || shorter, "\"{}\" has shape {} in {}, but shape {} was requested", ours, to_string(stored),
            folder_.string(), to_string(shape));
    visit(piece.entry->dtype, [&]<class Element>(Type<Element>) {
      const Part whole = resolved(part, shape);
      require(static_cast<std::int64_t>(target.size()) == whole.count * size_of(piece.entry->dtype),
              "the target of {} elements of \"{}\" has {} bytes, which is not the size of these elements", whole.count, ours,
              target.size());
      const std::byte* const theirs = piece.file->data(*piece.entry).data() + piece.first * size_of(piece.entry->dtype);
      copy_part<sizeof(Element)>(piece.name, whole, theirs, target.data());
    });
  }
}

void HuggingFaceModel::forget(const std::string& ours) const {
  for (const Piece& piece : pieces(ours)) piece.file->forget(*piece.entry);
}

ImportedModel whole_of(const HuggingFaceModel& model, Allocator& allocator) {
  ImportedModel whole{model.shape(), {}};
  for (const Renamed& name : names_of(model.shape())) {
    Tensor& ours = whole.tensors[name.ours];
    if (ours) continue;  // it has already been read, because several tensors in the files form this tensor
    ours = Tensor(allocator, name.shape_ours, model.dtype(name.ours), Category::params);
    model.read(name.ours, name.shape_ours, {},
               {static_cast<std::byte*>(ours.slice().data), static_cast<std::size_t>(ours.bytes())});
  }
  return whole;
}

}  // namespace chorale
