#include "experiments/plan/published_series.hpp"

#include <fmt/format.h>

#include "experiments/common/each.hpp"
#include "experiments/common/parse_number.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/toml_fields.hpp"

namespace chorale::plan {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> all;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) all.push_back(word);
  return all;
}

Recompute recompute_of(TomlFields& fields) {
  return named<Recompute>(fields.choice("recompute", {"none", "selective", "full"}));
}

PublishedSeries series_of(TomlFields fields, const std::map<std::string, Software>& software) {
  PublishedSeries s{.name = fields.text("name"),
                    .measured = fields.text("measured"),
                    .columns = words(fields.text("columns")),
                    .machine = fields.text("machine"),
                    .family = named<ModelFamily>(fields.choice("family", {"gpt2", "llama"})),
                    .type = fields.choice("type", {"bf16", "f16"}),
                    .products = fields.choice("products", {"", "fp8"}),
                    .recompute = recompute_of(fields),
                    .zero = static_cast<int>(fields.integer("zero", 0, 3, 0)),
                    .sequence_parallel = fields.flag("sequence_parallel"),
                    .reduces_in_bf16 = fields.flag("reduces_in_bf16"),
                    .one_bucket = !fields.flag("many_buckets"),
                    .dropout = fields.number("dropout", 0, 1, 0.1)};
  s.closed_form_flops = s.recompute == Recompute::full ? 4.0 / 3 : 1;
  const std::string name = fields.text("software");
  const auto found = software.find(name);
  if (found == software.end()) fields.refuse("software", fields.find("software"), "names no [software] table");
  s.software = found->second;
  const std::string hosts = fields.choice("hosts", {"any", "one", "many"});
  s.one_host = hosts != "many";
  s.many_hosts = hosts != "one";
  s.fits_two_rows = fields.flag("fits_two_rows");
  if (fields.has("interleave")) {
    s.interleave.clear();
    for (const std::string& word : words(fields.text("interleave"))) {
      const auto chunks = parse_integer<std::int64_t>(word);
      if (!chunks || *chunks < 1)
        fields.refuse("interleave", fields.find("interleave"), "is not a list of whole numbers such as \"1 2\"");
      s.interleave.push_back(*chunks);
    }
  }
  if (auto given = fields.table("given")) {
    for (const std::string& key : given->keys()) s.given[key] = given->number(key.c_str(), 0, 1e15);
    given->finish();
  }
  fields.text("why", "");
  fields.finish();
  return s;
}

}  // namespace

std::vector<PublishedSeries> read_series(const std::filesystem::path& file) {
  const FieldsFile described{file.string(), "file of assumptions", "correct the line (docs/planner.md)"};
  const toml::table all = toml_in(config_text(file, "--assumptions"), described);
  TomlFields top(all, "", described);
  std::map<std::string, Software> software;
  if (auto tables = top.table("software"))
    for (const std::string& name : tables->keys()) software[name] = software_of(*tables->table(name.c_str()));
  std::vector<PublishedSeries> series =
      each(top.tables("series"), [&](const TomlFields& row) { return series_of(row, software); });
  top.finish();
  return series;
}

}  // namespace chorale::plan
