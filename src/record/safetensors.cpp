#include "src/record/safetensors.hpp"
#include "src/base/foreign_text.hpp"
#include "src/base/round_up.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace chorale::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little endian, and values are used without conversion");

constexpr std::size_t longest_header = 100'000'000;  // the limit of the reference implementation of the format

constexpr std::pair<DType, const char*> names[] = {{DType::f32, "F32"},   {DType::f64, "F64"}, {DType::f16, "F16"},
                                                   {DType::bf16, "BF16"}, {DType::i32, "I32"}, {DType::i64, "I64"},
                                                   {DType::u8, "U8"}};

const char* format_name(DType dtype) {
  return std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == dtype; })->second;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw Error(Exit::runtime, "a tensor file cannot be read", fmt::format("{}: {}", path.string(), shortened(reason)),
              "it is damaged, or not a safetensors file: fetch or write it again");
}

// Returns the number of bytes of a tensor of this shape, or −1 if a dim is negative or the number overflows 64 bits.
std::int64_t bytes_of(const Shape& shape, DType dtype) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  return bytes;
}

// Returns a non-negative integer. On failure, throws a std::exception, as the JSON library does; read_header() adds the file
// name.
std::int64_t count_in(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX)
    throw std::runtime_error("a size is not a non-negative integer");
  return value.get<std::int64_t>();
}

Entry entry_in(const std::string& name, const nlohmann::json& value) {
  Entry entry{.name = name};
  const auto& dtype = value.at("dtype").get_ref<const std::string&>();
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return dtype == n.second; });
  if (found == std::end(names)) throw std::runtime_error("values of type " + dtype + " are not supported");
  entry.dtype = found->first;
  for (const auto& dim : value.at("shape").get_ref<const nlohmann::json::array_t&>()) entry.shape.push_back(count_in(dim));
  const auto& offsets = value.at("data_offsets").get_ref<const nlohmann::json::array_t&>();
  if (offsets.size() != 2) throw std::runtime_error("data_offsets must be two numbers");
  entry.first = count_in(offsets[0]);
  entry.bytes = count_in(offsets[1]) - entry.first;  // both are non-negative, so this cannot overflow
  return entry;
}

}  // namespace

File::File(const std::filesystem::path& path) : path_(path) {
  if (const std::string why = why_no_file(path); !why.empty()) refuse(path_, why);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) refuse(path_, std::strerror(errno));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < 8) refuse(path_, fmt::format("{} bytes are too few for a header", bytes));
  void* const place = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (place == MAP_FAILED) refuse(path_, std::strerror(errno));
  map_ = {static_cast<const std::byte*>(place), bytes};
  try {
    read_header();
  } catch (...) {
    munmap(place, bytes);
    throw;
  }
}

File::~File() {
  if (!map_.empty()) munmap(const_cast<std::byte*>(map_.data()), map_.size());
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      map_(std::exchange(other.map_, {})),
      data_starts_(other.data_starts_),
      metadata_(std::move(other.metadata_)),
      entries_(std::move(other.entries_)) {}

void File::read_header() {
  std::uint64_t length = 0;
  std::memcpy(&length, map_.data(), sizeof length);
  if (length > longest_header || length > map_.size() - 8)
    refuse(path_, fmt::format("its header of {} bytes does not fit in its {} bytes", length, map_.size()));
  data_starts_ = 8 + static_cast<std::size_t>(length);
  const auto* text = reinterpret_cast<const char*>(map_.data()) + 8;
  try {
    const auto header = nlohmann::json::parse(text, text + length);
    for (const auto& [name, value] : header.get_ref<const nlohmann::json::object_t&>())
      if (name == "__metadata__")
        metadata_ = value.get<Metadata>();
      else
        entries_.emplace(name, entry_in(name, value));
  } catch (const std::exception& error) {
    refuse(path_, fmt::format("its header is not a list of tensors: {}", reason_of(error)));
  }

  std::vector<const Entry*> in_order;
  for (const auto& [name, entry] : entries_) {
    if (entry.bytes < 0 || entry.bytes != bytes_of(entry.shape, entry.dtype))
      refuse(path_, fmt::format("tensor \"{}\" has the shape {} of {} but {} bytes", name, to_string(entry.shape),
                                format_name(entry.dtype), entry.bytes));
    in_order.push_back(&entry);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const Entry* a, const Entry* b) { return std::pair(a->first, a->bytes) < std::pair(b->first, b->bytes); });
  std::int64_t end = 0;
  for (const Entry* entry : in_order) {
    if (entry->first != end)
      refuse(path_, fmt::format("tensor \"{}\" starts at byte {} of the data, but the one before it ends at {}", entry->name,
                                entry->first, end));
    if (__builtin_add_overflow(end, entry->bytes, &end)) refuse(path_, "the size of its tensors overflows 64 bits");
  }
  if (end != bytes() - static_cast<std::int64_t>(data_starts_))
    refuse(path_, fmt::format("its tensors have {} bytes, but the file holds {}", end,
                              bytes() - static_cast<std::int64_t>(data_starts_)));
}

const Entry* File::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::span<const std::byte> File::data(const Entry& entry) const {
  return map_.subspan(data_starts_ + static_cast<std::size_t>(entry.first), static_cast<std::size_t>(entry.bytes));
}

void File::forget(const Entry& entry) const {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::span<const std::byte> bytes = data(entry);
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);  // loses no data, because this is a shared mapping of
                                                                        // a file
}

std::string header_of(std::vector<Entry>& entries, const Metadata& metadata) {
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t next = 0;
  for (Entry& entry : entries) {
    entry.first = next;
    entry.bytes = bytes_of(entry.shape, entry.dtype);
    require(entry.bytes >= 0, "the shape {} is negative or too large to write", to_string(entry.shape));
    require(!header.contains(entry.name), "two tensors are named \"{}\"", entry.name);
    next += entry.bytes;
    header[entry.name] = {
        {"dtype", format_name(entry.dtype)}, {"shape", entry.shape}, {"data_offsets", {entry.first, next}}};
  }
  std::string text = header.dump();
  text.resize(round_up(text.size(), 8), ' ');  // aligns the data
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

Writer::Writer(std::filesystem::path path, std::vector<Entry> entries, const Metadata& metadata)
    : file_(std::move(path)), header_(header_of(entries, metadata)) {
  for (const Entry& entry : entries) missing_ += entry.bytes;
  file_.write(std::as_bytes(std::span(header_)));
}

void Writer::write(std::span<const std::byte> bytes) {
  missing_ -= static_cast<std::int64_t>(bytes.size());
  require(missing_ >= 0, "{} bytes more were written than the header declares", -missing_);
  file_.write(bytes);
}

void Writer::finish() {
  require(missing_ == 0, "{} bytes that the header declares were not written", missing_);
  file_.finish();
}

}  // namespace chorale::safetensors
