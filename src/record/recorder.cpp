#include "src/record/recorder.hpp"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/base/spare_memory.hpp"
#include "src/base/text.hpp"
#include "src/record/embed_record.hpp"
#include "src/record/reader.hpp"

namespace chorale {
namespace {

using h5::check;
using h5::own;

constexpr std::size_t status_room = 16;  // fixed size, so that a status can be rewritten in place

h5::File create_in_memory(const std::filesystem::path& path) {
  require_spare_memory("libhdf5");
  const auto access = own<h5::Properties>(H5Pcreate(H5P_FILE_ACCESS));
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18));  // the file version that netCDF and older tools
                                                                              // can read
  check(H5Pset_fapl_core(access.get(), 1 << 16, false));                      // the image grows by 64 KiB
  const auto creation = own<h5::Properties>(H5Pcreate(H5P_FILE_CREATE));
  check(H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
  return own<h5::File>(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
}

// Formats attributes of the root as a line of metrics.jsonl.
std::string line_of_root(const nlohmann::ordered_json& attributes) {
  nlohmann::ordered_json line{{"table", "/"}};
  line.update(attributes);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

[[noreturn]] void disk_error(const std::filesystem::path& path) {
  const int reason = errno;
  throw Error(Exit::runtime, "the record cannot be written", fmt::format("{}: {}", path.string(), std::strerror(reason)),
              "check the disk's free space and permissions, or choose another --run-dir");
}

}  // namespace

Recorder::Recorder(const std::filesystem::path& folder, const Facts& facts, Clock& clock, bool takes_over)
    : folder_(folder), clock_(clock), snapshot_(file(), takes_over), flushed_at_(clock.seconds()), asked_at_(flushed_at_) {
  h5::quiet();
  file_ = create_in_memory(file());
  const auto lines_path = folder / "metrics.jsonl";
  lines_.reset(std::fopen(lines_path.c_str(), takes_over ? "ae" : "wxe"));
  if (!lines_) disk_error(lines_path);
  const hid_t root = file_.get();
  h5::set_attribute(root, "Conventions", "CF-1.10");
  h5::set_attribute(root, "schema", schema_name);
  h5::set_attribute(root, "schema_version", schema_version);
  h5::set_attribute(root, "status", "running", status_room);
  h5::set_attribute(root, "heartbeat", clock.wall_seconds());
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for (const auto& [name, value] : facts) {
    h5::set_attribute(root, name, value);
    line[name] = value;
  }
  line["status"] = "running";
  write_line(line_of_root(line));
}

Recorder::~Recorder() {
  if (!file_) return;
  try {
    finish("failed");
  } catch (const std::exception& error) {
    std::fputs(fmt::format("warning: the record {} was not closed cleanly: {}\n", file().string(), error.what()).c_str(),
               stderr);
  }
}

void Recorder::number(const std::string& name, std::int64_t value) {
  h5::set_attribute(file_.get(), name, value);
  write_line(line_of_root({{name, value}}));
}

void Recorder::dimension(const Dimension& dimension, const std::string& group) {
  write_dimension(group_named(group).get(), dimension);
}

h5::Group Recorder::group_named(const std::string& path) {
  return h5::exists(file_.get(), path) ? own<h5::Group>(H5Gopen2(file_.get(), path.c_str(), H5P_DEFAULT))
                                       : h5::make_group(file_.get(), path);
}

void Recorder::rows(const std::string& group, std::int64_t count) {
  h5::set_attribute(group_named(group).get(), "committed_rows", count);
}

void Recorder::text(const std::string& group, const std::string& name, const std::string& value) {
  h5::write_text(group_named(group).get(), name, value);
}

// Opens or creates a variable. The dimensions of the variable must exist in its group or in the root. `count` is the number
// of values that the variable must hold.
h5::Dataset Recorder::along(const std::string& group, const std::string& name, const std::vector<std::string>& dimensions,
                            hid_t stored, std::size_t count) {
  const auto parent = group_named(group);
  std::vector<h5::Dataset> scales;
  std::vector<hsize_t> size;
  for (const std::string& dimension : dimensions) {
    scales.push_back(scale_named(file_.get(), parent.get(), dimension));
    size.push_back(length_of(scales.back().get()));
  }
  require(std::accumulate(size.begin(), size.end(), hsize_t{1}, std::multiplies<>()) == count,
          "{} values of {} do not fill the dimension {}", count, name, join(dimensions, " × "));
  if (h5::exists(parent.get(), name)) return own<h5::Dataset>(H5Dopen2(parent.get(), name.c_str(), H5P_DEFAULT));
  const auto space = own<h5::Space>(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr));
  auto dataset =
      own<h5::Dataset>(H5Dcreate2(parent.get(), name.c_str(), stored, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  for (unsigned i = 0; i < scales.size(); ++i) check(H5DSattach_scale(dataset.get(), scales[i].get(), i));
  return dataset;
}

void Recorder::texts(const std::string& group, const std::string& name, const std::string& dimension,
                     const std::vector<std::string>& values) {
  const auto type = h5::text_type();
  const auto dataset = along(group, name, {dimension}, type.get(), values.size());
  std::vector<const char*> starts;
  for (const std::string& value : values) starts.push_back(value.c_str());
  check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, starts.data()));
}

void Recorder::numbers(const std::string& group, const std::string& name, const std::vector<std::string>& dimensions,
                       const std::vector<double>& values, const std::string& units, const std::string& about) {
  const auto dataset = along(group, name, dimensions, H5T_IEEE_F64LE, values.size());
  describe_variable(dataset.get(), units, about);
  check(H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

void Recorder::numbers(const std::string& group, const std::string& name, const std::vector<std::string>& dimensions,
                       const std::vector<std::int64_t>& values, const std::string& units, const std::string& about) {
  const auto dataset = along(group, name, dimensions, H5T_STD_I64LE, values.size());
  describe_variable(dataset.get(), units, about);
  check(H5Dwrite(dataset.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

void Recorder::attach(const std::string& group, const std::filesystem::path& record) {
  embed_record(file_.get(), group, record);
}

Table& Recorder::table(const TableSpec& spec) { return tables_.emplace_back(file_.get(), spec); }

// After Ctrl-C, Open MPI gives a rank one second to end its step. Therefore, if a step took longer than one second, the
// record is flushed before the next step begins.
bool Recorder::due(std::int64_t step) {
  const double now = clock_.seconds();
  const bool took_long = now - std::exchange(asked_at_, now) >= 1;
  step_ = step;
  return took_long || step - flushed_step_ >= 50 || now - flushed_at_ >= 10;
}

void Recorder::flush() {
  for (Table& table : tables_) table.write();
  h5::set_attribute(file_.get(), "heartbeat", clock_.wall_seconds());
  check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL));
  // Uses the image in place, because the copy from H5Fget_file_image has a wrong checksum in its superblock (seen with HDF5
  // 1.10.8).
  void* image = nullptr;
  hsize_t bytes = 0;
  check(H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &image));
  check(H5Fget_filesize(file_.get(), &bytes));
  snapshot_.publish({*static_cast<const std::byte**>(image), bytes});
  flushed_at_ = clock_.seconds();
  flushed_step_ = step_;
}

void Recorder::finish(const std::string& status) {
  require(bool(file_), "this record is already finished");
  require(status.size() <= status_room, "the status \"{}\" is longer than {} characters", status, status_room);
  h5::set_attribute(file_.get(), "status", status, status_room);
  flush();
  tables_.clear();
  check(H5Fclose(file_.release()));
  write_line(line_of_root({{"status", status}}));  // written last, so that a reader of this line finds a complete file
  if (std::fclose(lines_.release()) != 0) disk_error(folder_ / "metrics.jsonl");
}

void Recorder::write_line(const std::string& line) {
  if (std::fputs((line + "\n").c_str(), lines_.get()) == EOF || std::fflush(lines_.get()) != 0)
    disk_error(folder_ / "metrics.jsonl");
}

}  // namespace chorale
