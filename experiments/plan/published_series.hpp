// Assumptions about a published table, one set for each measured column: the machine, the software, and how the model was
// trained. The file experiments/published/assumptions.toml states the assumptions, with the reasons. No assumption applies
// to only one row of a table.
//
//   [[series]]
//   name = "PTD-P, table 1"          columns = "heads hidden layers t p gpus batch"
//   measured = "tflops_per_gpu"      machine = "selene"      software = "megatron-2021"
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "parallel/step/training.hpp"
#include "src/base/system.hpp"

namespace chorale::plan {

struct PublishedSeries {
  std::string name, measured;               // name: the table; measured: the column of measured values
  std::vector<std::string> columns;         // settings that the table's rows must have
  bool one_host = true, many_hosts = true;  // whether rows on one host, and on several hosts, belong to the series
  bool fits_two_rows = false;               // also show errors with two constants fitted to two rows
  std::map<std::string, double> given;      // values of settings that the table does not have
  std::string machine;
  Software software;
  ModelFamily family = ModelFamily::gpt2;
  std::string type = "bf16", products = "";
  Recompute recompute = Recompute::none;
  int zero = 0;
  bool sequence_parallel = false, reduces_in_bf16 = false, one_bucket = true;
  double dropout = 0.1;
  std::vector<std::int64_t> interleave{1};
  double closed_form_flops = 1;  // flops of a step, relative to a step without recomputation
};

std::vector<PublishedSeries> read_series(const std::filesystem::path& file);

}  // namespace chorale::plan
