// Training's search for the first NaN or Inf of a step that has failed (first_nan.hpp).
#include <map>

#include "parallel/step/first_nan.hpp"
#include "parallel/step/training.hpp"

namespace chorale {

// Repeats the step and throws an error that names the first NaN or Inf. All ranks repeat the complete step before they
// throw, so that no rank waits for a rank that has already thrown.
void Training::name_first_nan(const ReadSamples& read) {
  if (memory_.arena()) memory_.arena()->end_step();  // the repeated step's allocations differ from those of a planned step
  updates_->cancel(steps_ + 1);
  if (mesh_.layout().zero < 2)
    for (const Bucket& bucket : buckets_->all()) buckets_->clear_gradients(bucket);
  trouble_of_sums();  // clears the errors of the first run of the step
  FirstNan first_nan(steps_ + 1);
  for (const ParameterPointer& p : parameters_)
    if (p->value) first_nan.look({}, "value", p->name, p->value);
  for (const Owned& owned : buckets_->owned()) first_nan.look({}, "value", owned.parameter->name, owned.value);
  std::vector<PipelineAction> forward;
  for (const PipelineAction& action : schedule_.actions.at(static_cast<std::size_t>(mesh_.pipeline().rank())))
    if (action.kind == Pass::forward) forward.push_back(action);
  std::size_t opened = 0;
  std::map<const Bucket*, std::size_t> looked;  // number of gradients inspected so far, by bucket
  run_batch(read, [&](MicroBatch& batch) {
    const PipelineAction action = forward.at(opened++);
    const std::int64_t part = schedule_.part(mesh_.pipeline().rank(), action.chunk), last = schedule_.parts() - 1;
    const FirstNan::Place there{action.micro_batch, false, part}, back{action.micro_batch, true, last - part};
    batch.context.inspect = [this, there, back, &first_nan](const char* what, const std::string& layer,
                                                            const Tensor& tensor) {
      const FirstNan::Place& place = std::string_view(what).ends_with("input gradient") ? back : there;
      first_nan.take(place, trouble_of_sums());  // exact sums are integers, so only Numerics records that an addend was NaN
      first_nan.look(place, what, layer, tensor);
    };
    batch.context.on_gradient_ready = [this, back, &first_nan, &looked](Parameter& p) {
      first_nan.take(back, trouble_of_sums());
      first_nan.look(back, "gradient", p.name, p.gradient);
      Bucket& bucket = buckets_->of(p);
      const bool is_last = ++looked[&bucket] % bucket.places.size() == 0;
      if (is_last && mesh_.layout().zero >= 2) bucket.bind_gradients({});  // removes the full gradients, as the reducer does
    };
  });
  first_nan.throw_first(mesh_.world());
  throw NotFinite(steps_ + 1, " produced Inf or NaN in its loss or gradients",
                  "in a repetition of the step, every tensor is finite before it is summed over ranks",
                  "either sums over ranks overflow (lower --lr or --loss-scale), or the memory is faulty", false);
}

}  // namespace chorale
