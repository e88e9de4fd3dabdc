#include "core/inference/generator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/model/architecture.h"
#include "core/model/tensor_model.h"

namespace zl {
namespace {

std::int64_t capacity_of(const ModelConfig& model, std::int64_t asked) {
  if (asked == 0) return model.max_sequence;
  if (model.position == PositionKind::learned && asked > model.max_sequence) {
    throw Error(ErrorCode::invalid, "capacity: prompt and output of " + std::to_string(asked) +
                                        " tokens are more than the " +
                                        std::to_string(model.max_sequence) + " positions of " +
                                        model.name + "; shorten them");
  }
  return asked;
}

PrecisionConfig precision_of(DType dtype) {
  PrecisionConfig precision;
  precision.compute_dtype = dtype;
  return precision;
}

// Without dropout, on whichever ranks the context's mesh has it cut over.
ModelConfig shown_model(ModelConfig model, const RankContext& context) {
  if (model.encoder) {
    throw Error(ErrorCode::invalid, "model.family: " + model.name +
                                        " is an encoder, which sees both ways and writes no text; "
                                        "give a decoder");
  }
  check_tensor(model, {.ranks = context.ranks(Axis::tensor)}, 0);
  model.dropout = model.attention_dropout = 0;
  return model;
}

// Of each rank its [rows, stride] logits, one after the other, of which `count` columns are tokens.
template <class T>
void widen(const std::vector<std::byte>& stored, std::size_t stride, std::size_t count,
           std::vector<std::vector<float>>& out) {
  const T* values = reinterpret_cast<const T*>(stored.data());
  for (std::size_t row = 0; row < out.size(); ++row) {
    const T* from = values + row * stride;
    for (std::size_t token = 0; token < out[row].size(); from += out.size() * stride) {
      const std::size_t here = std::min(count, out[row].size() - token);
      std::transform(from, from + here, out[row].begin() + static_cast<std::ptrdiff_t>(token),
                     [](T value) { return to_float(value); });
      token += here;
    }
  }
}

}  // namespace

Generator::Generator(RankContext& context, const ModelConfig& model,
                     const GeneratorOptions& options, const InitialWeights& initial)
    : context_(context),
      model_(shown_model(model, context)),
      options_(options),
      group_(context, {context.ranks(Axis::tensor), context.rank(Axis::tensor)}),
      rank_model_(shard_of(model_, group_.shard())),
      table_(model_, group_.shard()),
      partition_(table_.counts(), 1, 0),
      precision_(precision_of(options.dtype)),
      placement_(partition_, offload_) {
  const std::int64_t capacity = capacity_of(model_, options.capacity);
  ScopeGuard scope(context_, Phase::init, -1);
  ParameterAccess& access = *this;
  stage_ = std::make_unique<Stage>(
      context_, access,
      make_units(context_, access, rank_model_, group_, table_, 0, table_.units()),
      RecomputePlan({}, static_cast<int>(model_.layers)));
  weights_ = make_weight_store(context_, {zero_, precision_, offload_, placement_, 1}, table_,
                               partition_, stage_->evaluation_visits());
  cache_ = std::make_unique<KeyValueCache>(context_, rank_model_, options.sequences, capacity,
                                           options.dtype);
  lengths_.assign(static_cast<std::size_t>(options.sequences), 0);
  weights_->initialize(initial);
}

Generator::~Generator() = default;

GradientTarget Generator::gradient(int) {
  throw Error(ErrorCode::failed, "a generator has no gradients");
}

void Generator::gradient_ready(int parameter) { gradient(parameter); }

CacheExtension Generator::plan(std::span<const Extension> extensions) {
  CacheExtension planned{cache_.get(), options_.blocks, {}};
  std::int64_t row = 0;
  for (const Extension& each : extensions) {
    const auto count = static_cast<std::int64_t>(each.tokens.size());
    std::int64_t& length = lengths_[static_cast<std::size_t>(each.sequence)];
    if (count == 0 || length + count > capacity()) {
      throw Error(ErrorCode::invalid,
                  "sequence " + std::to_string(each.sequence) + ": " + std::to_string(count) +
                      " tokens after " + std::to_string(length) + " do not fit its cache of " +
                      std::to_string(capacity()) + "; make the prompt or the output shorter");
    }
    planned.rows.push_back({row, count, each.sequence, length});
    row += count;
    length += count;
  }
  return planned;
}

std::vector<std::vector<float>> Generator::extend(std::span<const Extension> extensions) {
  const CacheExtension planned = plan(extensions);
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> last;
  for (const Extension& each : extensions) {
    tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
    last.push_back(static_cast<std::int64_t>(tokens.size()) - 1);
  }
  return run(planned, std::move(tokens), last);
}

std::vector<std::vector<float>> Generator::extend_all(int sequence,
                                                      std::span<const std::int32_t> tokens) {
  const Extension extension{sequence, tokens};
  const CacheExtension planned = plan({&extension, 1});
  std::vector<std::int64_t> rows(tokens.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  return run(planned, {tokens.begin(), tokens.end()}, rows);
}

std::vector<std::vector<float>> Generator::run(const CacheExtension& extension,
                                               std::vector<std::int32_t> tokens,
                                               const std::vector<std::int64_t>& rows) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  Tensor ids = context_.allocate(DType::i32, Shape{count}, MemoryTag::staging, {"token ids"});
  context_.upload(StreamId::compute, ids, tokens.data());
  // Rows of logits begin at multiples of 64 elements, as in training.
  constexpr std::int64_t kElements = 64;
  const std::int64_t width = (rank_model_.vocab + kElements - 1) / kElements * kElements;
  const auto asked = static_cast<std::int64_t>(rows.size());
  Tensor logits =
      context_.allocate(options_.dtype, {asked, width}, MemoryTag::workspace, {"logits"});
  MicroBatch micro;
  micro.geometry = {.batch = 1, .sequence = count, .dtype = options_.dtype, .train = false};
  micro.geometry.extension = &extension;
  micro.ids.tokens = ids;
  stage_->extend(micro, rows, logits);
  return read(of_all_ranks(std::move(logits)), rows.size());
}

// Each rank's part of the vocabulary, one after the other.
Tensor Generator::of_all_ranks(Tensor logits) {
  if (!group_.has_others()) return logits;
  const TensorView& own = logits.view;
  Tensor all = context_.allocate(own.dtype, {own.rows() * group_.shard().ranks, own.columns()},
                                 MemoryTag::workspace, {"logits of all ranks"});
  const Segment segment{own, all};
  context_.collective(
      StreamId::compute,
      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
  return all;
}

std::vector<std::vector<float>> Generator::read(const TensorView& logits, std::size_t rows) {
  std::vector<std::byte> stored(static_cast<std::size_t>(logits.bytes()));
  context_.download(StreamId::compute, stored.data(), logits);
  context_.synchronize(StreamId::compute);
  std::vector<std::vector<float>> out(rows,
                                      std::vector<float>(static_cast<std::size_t>(model_.vocab)));
  const auto stride = static_cast<std::size_t>(logits.columns());
  const auto count = static_cast<std::size_t>(rank_model_.vocab);
  switch (logits.dtype) {
    case DType::bf16:
      widen<bfloat16>(stored, stride, count, out);
      break;
    case DType::f16:
      widen<float16>(stored, stride, count, out);
      break;
    default:
      widen<float>(stored, stride, count, out);
  }
  return out;
}

}  // namespace zl
