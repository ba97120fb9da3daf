#include "src/record/reader.hpp"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <unistd.h>

#include <algorithm>
#include <set>

#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/record/in_child.hpp"

namespace chorale {
namespace {

using h5::check;
using h5::own;

// The sizes in a file can be wrong, so at most this many cells of a variable are read.
constexpr std::int64_t most_cells = 20'000'000;

}  // namespace

h5::File open_record_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const auto refuse = [&](const std::string& why, const std::string& fix) {
    usage_error("the record cannot be read", path.string() + ": " + why, fix);
  };
  if (!std::filesystem::exists(status)) refuse("no such file", "check the path; runs/latest/run.h5 is the newest record");
  if (!std::filesystem::is_regular_file(status)) refuse("it is not a regular file", "give the run.h5 inside a run folder");
  if (access(path.c_str(), R_OK) != 0) refuse("permission denied", "ask its owner for read permission");
  h5::quiet();
  if (H5Fis_hdf5(path.c_str()) <= 0) refuse("it is not an HDF5 file, or is truncated", "give a run.h5 that chorale wrote");
  const auto properties = own<h5::Properties>(H5Pcreate(H5P_FILE_ACCESS));
  check(H5Pset_file_locking(properties.get(), false, true));
  h5::File file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, properties.get()));
  if (!file) refuse("HDF5 cannot open it: it is truncated or damaged", "restore it, or read the metrics.jsonl beside it");
  if (h5::text_attribute(file.get(), "schema") != schema_name)
    refuse("it was not written by chorale", "h5dump shows its contents");
  const std::int64_t found = h5::whole_attribute(file.get(), "schema_version", 0);
  if (found > schema_version)
    refuse(fmt::format("its schema version is {}; this program reads up to {}", found, schema_version),
           "update chorale to read it");
  return file;
}

std::vector<std::string> links_in(hid_t group, H5O_type_t wanted) {
  std::vector<std::string> names;
  const auto by_order = H5_INDEX_CRT_ORDER;
  H5G_info_t info{};
  check(H5Gget_info(group, &info));
  for (const H5_index_t index : {by_order, H5_INDEX_NAME}) {  // in creation order if the file stores it
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      char name[1024] = "";
      if (H5Lget_name_by_idx(group, ".", index, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) < 0) break;
      H5L_info_t link{};
      if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
        continue;  // skips soft and external links, which can point anywhere
      H5O_info_t object{};
      if (H5Oget_info_by_name(group, name, &object, H5P_DEFAULT) >= 0 && object.type == wanted) names.emplace_back(name);
    }
    if (!names.empty()) break;
  }
  H5Eclear2(H5E_DEFAULT);
  return names;
}

namespace {

// Visits each group only once, because hard links can form a cycle.
void find_groups(hid_t group, const std::string& path, std::set<haddr_t>& seen, std::vector<std::string>& found) {
  H5O_info_t info{};
  check(H5Oget_info(group, &info));
  if (!seen.insert(info.addr).second) return;
  if (!links_in(group, H5O_TYPE_DATASET).empty()) found.push_back(path.empty() ? "/" : path);
  for (const std::string& name : links_in(group, H5O_TYPE_GROUP)) {
    const auto child = own<h5::Group>(H5Gopen2(group, name.c_str(), H5P_DEFAULT));
    find_groups(child.get(), path + "/" + name, seen, found);
  }
}

std::vector<std::string> read_texts(hid_t dataset, hid_t memory, hid_t selected, std::size_t count) {
  std::vector<std::string> cells;
  const auto stored = own<h5::Datatype>(H5Dget_type(dataset));
  if (H5Tis_variable_str(stored.get()) <= 0) return std::vector<std::string>(count, "(fixed-length text)");
  const auto type = h5::text_type();
  std::vector<char*> starts(count, nullptr);
  check(H5Dread(dataset, type.get(), memory, selected, H5P_DEFAULT, starts.data()));
  for (const char* start : starts) cells.emplace_back(start ? start : "");
  check(H5Dvlen_reclaim(type.get(), memory, H5P_DEFAULT, starts.data()));
  return cells;
}

template <class T>
std::vector<std::string> read_numbers(hid_t dataset, hid_t memory, hid_t selected, std::size_t count,
                                      const std::vector<std::string>& labels) {
  std::vector<T> values(count);
  check(H5Dread(dataset, h5::native_type(dtype_of<T>()), memory, selected, H5P_DEFAULT, values.data()));
  std::vector<std::string> cells;
  for (const T value : values) {
    if constexpr (std::is_integral_v<T>)
      if (value >= 0 && static_cast<std::size_t>(value) < labels.size()) {
        cells.push_back(labels[static_cast<std::size_t>(value)]);
        continue;
      }
    cells.push_back(fmt::format("{}", value));
  }
  return cells;
}

std::vector<std::string> read_cells(hid_t dataset, hid_t memory, hid_t selected, std::size_t count) {
  const auto type = own<h5::Datatype>(H5Dget_type(dataset));
  const auto labels = split(h5::text_attribute(dataset, "flag_meanings"), ' ');
  switch (H5Tget_class(type.get())) {
    case H5T_STRING: return read_texts(dataset, memory, selected, count);
    case H5T_FLOAT:
      return H5Tget_size(type.get()) <= 4 ? read_numbers<float>(dataset, memory, selected, count, labels)
                                          : read_numbers<double>(dataset, memory, selected, count, labels);
    case H5T_INTEGER: return read_numbers<std::int64_t>(dataset, memory, selected, count, labels);
    default: return std::vector<std::string>(count, "(a type that chorale does not write)");
  }
}

}  // namespace

std::string dimension_name(hid_t dataset, unsigned axis) {
  if (H5DSis_scale(dataset) > 0) {
    char name[256] = "";
    H5DSget_scale_name(dataset, name, sizeof name);
    return name;
  }
  std::string found;
  int first = 0;
  H5DSiterate_scales(
      dataset, axis, &first,
      [](hid_t, unsigned, hid_t scale, void* out) -> herr_t {
        char name[256] = "";
        H5DSget_scale_name(scale, name, sizeof name);
        *static_cast<std::string*>(out) = name;
        return 1;
      },
      &found);
  return found;
}

namespace {

// Refuses a dataset that stores its values in other files. Otherwise a foreign record could make Chorale print any file that
// this user can read.
void refuse_foreign_storage(hid_t dataset, const std::string& name) {
  const auto properties = own<h5::Properties>(H5Dget_create_plist(dataset));
  if (H5Pget_layout(properties.get()) == H5D_VIRTUAL || H5Pget_external_count(properties.get()) > 0)
    usage_error("the record refers to other files", fmt::format("{} keeps its values in other files", name),
                "chorale never writes such records: do not trust this one");
}

// Skips rows beyond the first `committed`, and reads only the last `most` of the remaining rows. A negative number means no
// limit.
Variable read_variable(hid_t group, const std::string& name, std::int64_t committed, std::int64_t most) {
  const auto dataset = own<h5::Dataset>(H5Dopen2(group, name.c_str(), H5P_DEFAULT));
  refuse_foreign_storage(dataset.get(), name);
  const auto space = own<h5::Space>(H5Dget_space(dataset.get()));
  const int dims = static_cast<int>(check(H5Sget_simple_extent_ndims(space.get())));
  std::vector<hsize_t> size(static_cast<std::size_t>(dims)), limit(size), start(size);
  if (dims) check(H5Sget_simple_extent_dims(space.get(), size.data(), limit.data()));
  if (dims && limit[0] == H5S_UNLIMITED) {
    const auto whole = static_cast<std::int64_t>(size[0]);
    const std::int64_t rows = committed < 0 ? whole : std::min(whole, committed);
    const std::int64_t kept = most < 0 ? rows : std::min(rows, most);
    start[0] = static_cast<hsize_t>(rows - kept);
    size[0] = static_cast<hsize_t>(kept);
  }
  Variable variable{name, h5::text_attribute(dataset.get(), "units"), {}, {}, {}};
  std::int64_t count = 1;
  for (unsigned axis = 0; axis < size.size(); ++axis) {
    variable.dimensions.push_back(dimension_name(dataset.get(), axis));
    variable.shape.push_back(static_cast<std::int64_t>(size[axis]));
    if (size[axis] > most_cells || __builtin_mul_overflow(count, variable.shape.back(), &count) || count > most_cells)
      usage_error("the record is too large to print", fmt::format("{} has over {} cells", name, most_cells),
                  "print fewer rows, or read it with xarray");
  }
  if (count == 0) return variable;
  if (dims) check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr));
  const auto memory = own<h5::Space>(dims ? H5Screate_simple(dims, size.data(), nullptr) : H5Screate(H5S_SCALAR));
  variable.cells = read_cells(dataset.get(), memory.get(), space.get(), static_cast<std::size_t>(count));
  return variable;
}

std::vector<std::pair<std::string, std::string>> attributes_of(hid_t file, const std::string& group) {
  const auto object = own<h5::Group>(H5Gopen2(file, group.c_str(), H5P_DEFAULT));
  std::vector<std::pair<std::string, std::string>> all;
  H5O_info_t info{};
  check(H5Oget_info(object.get(), &info));
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const auto attribute =
        own<h5::Attribute>(H5Aopen_by_idx(object.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT));
    char name[256] = "";
    check(H5Aget_name(attribute.get(), sizeof name, name));
    const auto type = own<h5::Datatype>(H5Aget_type(attribute.get()));
    const auto space = own<h5::Space>(H5Aget_space(attribute.get()));
    std::string text = h5::text_attribute(object.get(), name);
    if (H5Tget_class(type.get()) == H5T_INTEGER) text = fmt::format("{}", h5::whole_attribute(object.get(), name, 0));
    if (H5Tget_class(type.get()) == H5T_FLOAT && H5Sget_simple_extent_npoints(space.get()) == 1) {
      double value = 0;
      check(H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value));
      text = fmt::format("{:.3f}", value);
    }
    all.emplace_back(name, text);
  }
  return all;
}

std::vector<std::string> groups_in(hid_t file) {
  std::vector<std::string> found;
  std::set<haddr_t> seen;
  find_groups(file, "", seen, found);
  return found;
}

// Reads everything that a Reader can read. Tries to read each part, even if another part is unreadable.
void read_everything(const std::filesystem::path& path) {
  const auto tried = [](const auto& part) {
    try {
      part();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const h5::File file = open_record_file(path);
  for (const std::string& group : groups_in(file.get())) {
    tried([&] { attributes_of(file.get(), group); });
    const auto id = own<h5::Group>(H5Gopen2(file.get(), group.c_str(), H5P_DEFAULT));
    for (const std::string& name : links_in(id.get(), H5O_TYPE_DATASET)) {
      constexpr std::int64_t some_rows = 1000;  // number of rows that are read if a variable is too large to be read
                                                // completely
      if (!tried([&] { read_variable(id.get(), name, -1, -1); }))
        tried([&] { read_variable(id.get(), name, -1, some_rows); });
    }
  }
}

h5::File open_after_trial(const std::filesystem::path& path) {
  std::error_code missing;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path, missing));
  const double most_seconds = missing ? 5 : 5 + bytes / 1e6;  // CPU time of the child; 48 MB take 0.5 s
  const std::string end = end_in_child([&] { read_everything(path); }, most_seconds);
  if (!end.empty())
    usage_error("the record is damaged", fmt::format("{}: reading it ended in a child process with: {}", path.string(), end),
                "restore it, or read the metrics.jsonl beside it");
  return open_record_file(path);
}

}  // namespace

Reader::Reader(const std::filesystem::path& path) : path_(path), file_(open_after_trial(path)) {}

std::string Reader::attribute(const std::string& wanted) const {
  for (const auto& [name, value] : attributes())
    if (name == wanted) return value;
  return "";
}

bool Reader::is_number(const std::string& attribute) const {
  if (H5Aexists(file_.get(), attribute.c_str()) <= 0) return false;
  const auto found = own<h5::Attribute>(H5Aopen(file_.get(), attribute.c_str(), H5P_DEFAULT));
  const auto type = own<h5::Datatype>(H5Aget_type(found.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

std::vector<std::pair<std::string, std::string>> Reader::attributes(const std::string& group) const {
  return attributes_of(file_.get(), group);
}

std::vector<std::string> Reader::groups() const { return groups_in(file_.get()); }

std::int64_t Reader::rows(const std::string& group) const {
  const auto id = own<h5::Group>(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT));
  return h5::whole_attribute(id.get(), "committed_rows", -1);
}

std::vector<Variable> Reader::variables(const std::string& group, std::int64_t most) const {
  const auto id = own<h5::Group>(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT));
  const std::int64_t committed = h5::whole_attribute(id.get(), "committed_rows", -1);
  std::vector<Variable> all;
  for (const std::string& name : links_in(id.get(), H5O_TYPE_DATASET))
    all.push_back(read_variable(id.get(), name, committed, most));
  return all;
}

}  // namespace chorale
