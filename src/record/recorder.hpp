// The record of one run: one HDF5 file, which survives the death of its writer, and metrics.jsonl next to it. Rank 0 writes
// both files.
//
//   Recorder recorder(folder.path, facts, clock);
//   auto& eval = recorder.table<EvalRow>({.group = "eval", .rows = "step", .live = true});
//   recorder.append(eval, {step, loss});           buffered; the row of a live table also goes to metrics.jsonl
//   if (recorder.due(step)) recorder.flush();      also before each checkpoint, at the end and at a request to stop
//   recorder.finish("ok");
//
// The attributes of the root are also written to metrics.jsonl. A program that follows this file therefore knows which run
// is writing it, and when the run has ended:
//
//   {"table":"/","run_id":…,"status":"running"}   {"table":"/","jobsize":4}   …rows…   {"table":"/","status":"ok"}
//
// HDF5 rewrites its trees and last chunks in place. If the process were killed between two such writes, rows that were
// already stored would be lost. Therefore the file is built in memory, and each flush replaces the file on disk atomically
// (snapshot_file.hpp). A process killed at any moment loses only unflushed rows. Cost: a copy of the file in memory.
#pragma once
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <chorale/clock.hpp>
#include "src/record/snapshot_file.hpp"
#include "src/record/table.hpp"

namespace chorale {

using Facts = std::vector<std::pair<std::string, std::string>>;  // the string attributes of the root

class Recorder {
 public:
  // Creates folder/run.h5 and folder/metrics.jsonl, which must not exist yet. If `takes_over` is true, the first flush
  // replaces the run.h5 of a writer that died, and new lines are appended to that writer's metrics.jsonl.
  Recorder(const std::filesystem::path& folder, const Facts& facts, Clock& clock, bool takes_over = false);
  ~Recorder();  // flushes an unfinished record and marks it "failed"
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void number(const std::string& name, std::int64_t value);                    // an integer attribute of the root
  void dimension(const Dimension& dimension, const std::string& group = "/");  // all groups share the dimensions of the root
  void rows(const std::string& group, std::int64_t count);  // sets committed_rows of a table whose number of rows is known
  void text(const std::string& group, const std::string& name, const std::string& value);  // replaces an earlier string
  // Writes one string for each index of a dimension, such as the host name of each rank.
  void texts(const std::string& group, const std::string& name, const std::string& dimension,
             const std::vector<std::string>& values);
  // Writes one number per index of one or more dimensions; the last dimension varies fastest. Each dimension must exist in
  // the group or in the root. A second call replaces the values.
  void numbers(const std::string& group, const std::string& name, const std::vector<std::string>& dimensions,
               const std::vector<double>& values, const std::string& units, const std::string& about);
  void numbers(const std::string& group, const std::string& name, const std::vector<std::string>& dimensions,
               const std::vector<std::int64_t>& values, const std::string& units, const std::string& about);
  // Copies the record of a finished run into a group of this record.
  void attach(const std::string& group, const std::filesystem::path& record);
  Table& table(const TableSpec& spec);
  template <class Row>
  Table& table(const TableSpec& spec) {
    return table(table_of<Row>(spec));
  }

  template <class Row>
  void append(Table& table, const Row& row) {
    table.append(row);
    if (table.spec().live) write_line(table.last_row_as_json());
  }

  bool due(std::int64_t step);  // true if the last flush was at least 10 s or 50 steps ago, or if the last step took more
                                // than a second
  void flush();
  void finish(const std::string& status);

  std::filesystem::path file() const { return folder_ / "run.h5"; }

 private:
  struct CloseStream {
    void operator()(std::FILE* stream) const { std::fclose(stream); }
  };
  h5::Group group_named(const std::string& path);
  h5::Dataset along(const std::string& group, const std::string& name, const std::vector<std::string>& dimensions,
                    hid_t stored, std::size_t count);
  void write_line(const std::string& line);

  std::filesystem::path folder_;
  Clock& clock_;
  h5::File file_;
  SnapshotFile snapshot_;
  std::unique_ptr<std::FILE, CloseStream> lines_;
  std::deque<Table> tables_;
  double flushed_at_, asked_at_;  // times of the latest calls of flush() and due()
  std::int64_t step_ = 0, flushed_step_ = 0;
};

}  // namespace chorale
