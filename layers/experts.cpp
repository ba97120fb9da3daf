// A mixture of experts (Shazeer et al. 2017) in place of a dense MLP. For each token, a router chooses k of E small MLPs:
//
//   y_t = Σ over the chosen experts e, in ascending order, of weight_te · expert_e(x_t)  +  shared(x_t)
//
//   x ─┬─ router ─ choices, weights ────────────────────────┐
//      ├─ rows by (expert, token) ─ up ─ act ─ down ─ rows ─┴─ weighted sum of a token's k rows ─ + ── y
//      └─ shared expert, an ordinary MLP ──────────────────────────────────────────────────────── ┘
//
// All k expert outputs of a token are computed before they are summed, so y does not depend on how rows are divided among
// ranks. Tensor parallelism splits every expert like a dense MLP: `up` by columns and `down` by rows. Every tensor rank
// routes all tokens of the micro-batch. The ranks' copies of x are bit-identical, and choice_counts.hpp checks that all
// tensor ranks choose the same experts. ExpertExchange sends each row to the rank that has the row's expert.
//
// The tape keeps x, the logits and choices, the input and output of the activation function, and the experts' outputs. The
// backward pass gathers the rows of x again. Per token, the layer multiplies by k experts of width f, which takes 2·k·(gates
// + 1)·h·f flops in the forward pass. The layer sums k rows per token over the tensor ranks, whereas a dense MLP sums one
// row per token.
//
// Exact numerics adds up an expert's weight gradient leaf by leaf (Context::leaves). An expert's rows from one leaf form one
// addend.
#include "layers/layers.hpp"

#include <span>

#include "layers/choice_counts.hpp"
#include "layers/expert_mlps.hpp"
#include "layers/router_balance.hpp"
#include "layers/token_routing.hpp"
#include "src/math/dropout.hpp"
#include "src/math/forced_routing.hpp"
#include "src/math/slots.hpp"

namespace chorale {
namespace {

class MixtureOfExperts final : public Layer {
 public:
  MixtureOfExperts(std::string name, std::int64_t block, const ModelShape& s, const Sharding& width, const Sharding& experts,
                   double deviation, LayerPointer shared)
      : Layer(std::move(name)),
        number_(block / s.experts.every),
        rule_(rule_of(s)),
        forced_(s.experts.forced() ? forced_choices(*s.experts.routing, rule_, block) : std::vector<std::int32_t>()),
        width_(s.width),
        router_(std::make_shared<Parameter>(
            Parameter{.name = name_ + ".router.weight", .shape = {s.width, s.experts.count}, .deviation = 0.02})),
        experts_(name_, s, width, experts, deviation,
                 forced_.empty() ? std::vector<std::int64_t>() : counts_of(forced_, rule_, rule_.sequence)),
        shared_(std::move(shared)) {}

  Tensor forward(const Tensor& x, Context& context) override {
    Tape* const tape = context.tape;
    const Tape::Recipe again = tape ? tape->recipe_of(x) : Tape::Recipe();
    if (tape) tape->keep(x);
    const Tensor all = context.boundary->whole(x, context);
    const Routed routed = this->routed(all, context);
    const Routing& routing = routed.routing;
    const Counts& counts = routed.counts;
    const Tensor rows = context.exchange->dispatch(all, nullptr, routing.places, counts.home, counts.here, context);
    const Tensor before = experts_.before(rows, counts.here, context), after = experts_.after(before, context);
    if (tape) {
      if (routed.of_sequences) tape->keep(routed.of_sequences);
      for (const Tensor& tensor : {routed.logits, routing.chosen, routing.weights, routing.places, before})
        tape->keep(tensor);
      tape->can_be_made_again(after, [this, before, &context] { return experts_.after(before, context); });
      tape->keep(after);
      tape->note(counts);
    }
    const Tensor partial = experts_.outputs(after, counts.here, context);
    context.look("partial output", name_, partial);
    const auto sum = start_sum(partial, routing.places, counts, experts_.output_site(), context);
    Tensor shared;
    if (shared_) {  // the shared expert overlaps the communication of rows or the sum over ranks
      if (again) tape->can_be_made_again(x, again);
      shared = shared_->forward(x, context);
    }
    const Tensor outputs = sum(), y = context.tensor(x.shape()), weights = rows_here(routing.weights, context);
    add_slots(outputs, &weights, shared ? &shared : nullptr, y, context.queue);
    if (tape) tape->keep(outputs);
    return y;
  }

  // The gradients per token and chosen expert e, where w are the routing weights and o are the experts' outputs:
  //
  //   do_e = w_e · dy      dw_e = dy · o_e     dlogits from dw and the two losses      dx = Σ_e dx_e + (dlogits·Wᵀ + shared)
  //
  // All tensor ranks compute the logits' gradient for all tokens, so they all get the same router gradient.
  Tensor backward(const Tensor& dy, Context& context) override {
    Tape& tape = *context.tape;
    const Tensor outputs = tape.take();
    const Tensor shared = shared_ ? shared_->backward(dy, context) : Tensor();
    const auto counts = tape.take_note<Counts>();
    const Tensor after = tape.take(), before = tape.take();
    const Tensor places = tape.take(), weights = tape.take(), chosen = tape.take(), logits = tape.take();
    const Tensor of_sequences = counts_sequences(rule(context), context) ? tape.take() : Tensor();
    const Tensor x = tape.take();
    const Tensor dy_all = context.boundary->whole(dy, context);
    const Tensor dweights_here = context.typed({dy.dim(0), rule_.chosen}, context.statistics(), Category::workspace);
    weight_gradients(dy, outputs, dweights_here, context.queue);
    const Tensor dweights = context.boundary->whole(dweights_here, context);

    const Tensor doutputs = context.exchange->dispatch(dy_all, &weights, places, counts.home, counts.here, context);
    const Tensor dbefore = experts_.before_gradient(doutputs, before, counts.here, context);
    const Tensor partial = experts_.input_gradient(dbefore, counts.here, context);
    context.look("partial input gradient", name_, partial);
    const auto sum = start_sum(partial, places, counts, experts_.input_gradient_site(), context);

    const Tensor dlogits = context.typed(logits.shape(), logits.dtype(), Category::workspace);
    routing_gradient(logits, rule_of_tokens(rule(context), of_sequences, context), chosen, places, dweights,
                     context.loss_scale, dlogits, context.queue);
    context.look("router input gradient", name_, dlogits);
    const Tensor dx_of_router = from_logits(rows_here(dlogits, context), context);
    if (shared) add_residual(shared, nullptr, Dropout{}, dx_of_router, dx_of_router, context.queue);
    context.weight_gradient(
        [=, this, &context] { add_weight_gradients(x, places, counts, after, doutputs, dbefore, dlogits, context); });
    const Tensor slots = sum(), dx = context.tensor(dy.shape());
    add_slots(slots, nullptr, &dx_of_router, dx, context.queue);
    return dx;
  }

  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    each_own_parameter(visit);
    if (shared_) shared_->each_parameter(visit);
  }

  void each_site(const std::function<void(SumSite&)>& visit) override {
    visit(experts_.output_site());
    visit(experts_.input_gradient_site());
    if (shared_) shared_->each_site(visit);
  }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    const std::int64_t element = size_of(context.compute), here = context.boundary->rows(rows), k = rule_.chosen;
    const std::int64_t per_row = experts_.kept_columns(context.selective()) * element;
    const std::int64_t samples = rows / context.tokens.tokens;
    Keeps keeps{
        .input = here * width_ * element,
        .inside = rows * (rule_.experts * size_of(context.statistics()) + k * (4 + 4 + size_of(context.statistics()))) +
                  most_rows_here(samples, context) * per_row + here * k * width_ * element,
        .at_most = !knows_rows_here(context)};
    if (counts_sequences(rule(context), context)) keeps.inside += samples * rule_.experts * size_of(DType::i64);
    if (shared_) keeps.inside += shared_->keeps(rows, context).inside;  // the shared expert has the same input as this layer
    return keeps;
  }

 private:
  // The row counts of this rank's tokens, and the row counts of this rank's experts.
  struct Counts {
    ExpertRows home, here;
  };
  struct Routed {
    Tensor logits;
    Routing routing;
    Tensor of_sequences;  // TokenRouting::counts
    Counts counts;
  };

  Routed routed(const Tensor& x, Context& context) {
    const DType type = context.statistics();
    const Tensor logits = context.typed({x.dim(0), rule_.experts}, type, Category::activations);
    context.numerics.product(context.as(type, x), context.as(type, router_->value), false, nullptr, logits, context.queue);
    context.look("router logits", name_, logits);
    const auto [routing, of_sequences] = route_tokens(logits, rule(context), forced_, context);
    const ExpertRows home{
        .experts = rule_.experts, .leaves = std::ssize(routing.counts) / rule_.experts, .counts = routing.counts};
    if (context.choices) count(routing, home, *context.choices);
    return {logits, routing, of_sequences, {home, context.exchange->here(home, routing, context)}};
  }

  // The maximum number of rows that this rank's experts can receive, if each source rank has `samples` samples. A different
  // rank can have more tokens of a sample than this rank.
  std::int64_t most_rows_here(std::int64_t samples, const Context& context) const {
    const std::int64_t own = experts_.count(), sources = rule_.experts / own;
    const std::int64_t tokens = sources == 1 ? context.tokens.tokens : context.sequences->most_tokens(context);
    std::int64_t of_a_source = rule_.most_rows(samples, tokens, own);
    if (!forced_.empty()) of_a_source = std::min(of_a_source, samples * experts_.forced_rows());
    return sources * of_a_source;
  }

  // Whether this rank's experts receive exactly most_rows_here() rows, regardless of the routing.
  bool knows_rows_here(const Context& context) const {
    const bool has_all = rule_.capacity == 0 && experts_.count() == rule_.experts;
    return has_all || (!forced_.empty() && !context.sequences->divided());
  }

  // The routing rule of the layer, with the balance state of earlier steps.
  RoutingRule rule(const Context& context) const {
    RoutingRule rule = rule_;
    if (context.balance) {
      rule.bias = context.balance->bias(number_);
      rule.counts = context.balance->previous(number_);
    }
    return rule;
  }

  void count(const Routing& routing, const ExpertRows& home, ChoiceCounts& choices) const {
    const std::span<std::int64_t> here = choices.row(number_);
    for (std::int64_t e = 0; e < home.experts; ++e) {
      const std::int64_t dropped = routing.dropped[static_cast<std::size_t>(e)];
      here[static_cast<std::size_t>(e)] += home.of(e) + dropped;
      here.back() += dropped;
    }
  }

  // Starts to send the experts' partial products back to the ranks of their tokens, and to sum them over the ranks that
  // share an expert. `partial` has one row for each row of this rank's experts. In the sum, the k slots of each token are
  // stored side by side, [tokens, k·width]. A dropped slot is zero. If rows are sent between ranks, the sum over ranks
  // starts only when the returned function is called.
  std::function<Tensor()> start_sum(const Tensor& partial, const Tensor& places, const Counts& counts, SumSite& site,
                                    Context& context) const {
    const auto home = context.exchange->start_combine(partial, counts.home, counts.here, context);
    const auto start = [=, this, &site, &context] {
      const Tensor rows = home();
      const bool ends = rows.dtype() == context.compute;
      const Tensor slots = context.typed({places.dim(0), rule_.chosen * width_}, rows.dtype(),
                                         ends ? Category::activations : Category::workspace);
      put_slots(rows, places, slots, context.queue);
      return context.boundary->start_sum(slots, site, context);
    };
    if (counts.here.between.empty()) return start();
    return [start] { return start()(); };
  }

  void add_weight_gradients(const Tensor& x, const Tensor& places, const Counts& counts, const Tensor& after,
                            const Tensor& doutputs, const Tensor& dbefore, const Tensor& dlogits, Context& context) {
    const Tensor all = context.boundary->whole(x, context);
    const Tensor rows = context.exchange->dispatch(all, nullptr, places, counts.home, counts.here, context);
    experts_.add_weight_gradients(rows, dbefore, after, doutputs, counts.here, context);
    context.numerics.add_outer(context.as(dlogits.dtype(), all), dlogits, context.leaves(), router_->gradient, router_->site,
                               context.queue);
    each_own_parameter([&](const ParameterPointer& p) { context.ready(*p); });
  }

  Tensor from_logits(const Tensor& dlogits, Context& context) const {
    const Tensor dx = context.typed({dlogits.dim(0), width_}, dlogits.dtype(), Category::workspace);
    context.numerics.product(dlogits, context.as(dlogits.dtype(), router_->value), true, nullptr, dx, context.queue);
    return context.as(context.compute, dx);
  }

  // This rank's rows of the residual stream.
  static Tensor rows_here(const Tensor& all, const Context& context) {
    return all.narrow(context.boundary->first_row(all.dim(0)), context.boundary->rows(all.dim(0)));
  }

  // Excludes the shared expert.
  void each_own_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
    visit(router_);
    experts_.each_parameter(visit);
  }

  std::int64_t number_;  // this block's index among the model's blocks that have experts
  RoutingRule rule_;
  std::vector<std::int32_t> forced_;  // [s,k]: the forced experts of each position in a sequence; empty if the router
                                      // chooses
  std::int64_t width_;
  ParameterPointer router_;
  ExpertMlps experts_;  // this rank's experts
  LayerPointer shared_;
};

}  // namespace

LayerPointer expert_layer(std::string name, std::int64_t block, const ModelShape& shape, const Sharding& width,
                          const Sharding& experts, double deviation, LayerPointer shared) {
  return std::make_unique<MixtureOfExperts>(std::move(name), block, shape, width, experts, deviation, std::move(shared));
}

}  // namespace chorale
