// `chorale export` writes the weights of a run as a folder in the format of Hugging Face's transformers.
#include <fmt/format.h>

#include <filesystem>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/kept_tokenizer.hpp"
#include "parallel/state/stored_weights.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

class Export final : public Command {
 public:
  void declare(Options& o) override {
    o.add("load", load_, "a run, its checkpoints or one checkpoint").words("DIR");
    o.add("out", out_, "the folder to make").words("DIR");
    o.add("tokenizer", tokenizer_, "tokenizer to put beside the weights; default: the tokenizer kept with the run")
        .words("bytes|FILE|DIR");
    o.add("dtype", dtype_, "type of the exported weights").one_of({"f32", "bf16", "f16"});
  }

  void check(const Launch&) override {
    if (load_.empty() || out_.empty())
      usage_error("export needs --load and --out", fmt::format("--load is \"{}\", --out \"{}\"", load_, out_),
                  program() + " export --load runs/latest --out model");
    if (std::filesystem::exists(out_) && !(std::filesystem::is_directory(out_) && std::filesystem::is_empty(out_)))
      usage_error("the folder to export to already exists", out_, "name another with --out, or remove it first");
    require_writable(out_, "--out");
  }

  int run(Session& session) override {
    Log log({.level = session.log_level});
    HostMemory host;
    Ledger ledger;
    Allocator memory(host, ledger);
    const ImportedModel model = StoredWeights(load_, memory, log).whole();
    if (!tokenizer_.empty()) require_tokenizer(tokenizer_, model.shape.vocabulary);
    const std::string tokenizer = tokenizer_.empty() ? tokenizer_beside(load_) : tokenizer_;
    export_folder(out_, model.shape, model.tensors, dtype_);
    if (!tokenizer.empty()) keep_tokenizer(tokenizer, out_, model.shape.sequence);
    log.result("{}: a {} model of {:.2f} million parameters in {}", out_, model_type_of(model.shape),
               static_cast<double>(model.shape.parameters()) / 1e6, name_of(dtype_));
    if (tokenizer.empty())
      log.result("without a tokenizer: the run kept none, and --tokenizer is not given");
    else
      log.result("with the tokenizer of {}", tokenizer);
    return 0;
  }

 private:
  std::string load_, out_, tokenizer_;
  DType dtype_ = DType::f32;
};

}  // namespace

std::unique_ptr<Command> make_export() { return std::make_unique<Export>(); }

}  // namespace chorale
