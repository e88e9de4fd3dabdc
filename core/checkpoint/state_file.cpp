#include "core/checkpoint/state_file.h"

#include <cstring>

#include "core/base/error.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"

namespace zl {
namespace {

class Restoring : public StateArchive {
 public:
  Restoring(RankContext& context, const SafetensorsFile& file) : context_(context), file_(file) {}

  bool restores() const override { return true; }
  void tensor(const std::string& name, const TensorView& view, Place place) override {
    if (view.empty()) return;
    const NamedTensor& stored = find(name, view.dtype, view.bytes());
    if (place == Place::host) {
      std::memcpy(view.data, stored.bytes.data(), stored.bytes.size());
      return;
    }
    context_.upload(StreamId::compute, view, stored.bytes.data());
    context_.synchronize(StreamId::compute);
  }
  void number(const std::string& name, double& value) override {
    std::memcpy(&value, find(name, DType::f64, sizeof value).bytes.data(), sizeof value);
  }

 private:
  const NamedTensor& find(const std::string& name, DType dtype, std::size_t bytes) const {
    const NamedTensor& stored = file_.at(name);
    if (stored.dtype == dtype && stored.bytes.size() == bytes) return stored;
    throw Error(ErrorCode::invalid, file_.path + ": \"" + name + "\" has " +
                                        std::to_string(stored.bytes.size()) +
                                        " bytes where this run has " + std::to_string(bytes) +
                                        "; resume with the run's own model and strategy");
  }

  RankContext& context_;
  const SafetensorsFile& file_;
};

}  // namespace

class StateCopy::Saving : public StateArchive {
 public:
  Saving(RankContext& context, StateCopy& copy) : context_(context), copy_(copy) {}

  bool restores() const override { return false; }
  void tensor(const std::string& name, const TensorView& view, Place place) override {
    if (view.empty()) return;
    auto& bytes = copy_.buffers_.emplace_back(view.bytes());
    if (place == Place::host) {
      std::memcpy(bytes.data(), view.data, bytes.size());
    } else {
      context_.download(StreamId::compute, bytes.data(), view);
      context_.synchronize(StreamId::compute);
    }
    copy_.tensors_.push_back({name, view.dtype, {view.count()}, bytes});
  }
  void number(const std::string& name, double& value) override {
    auto& bytes = copy_.buffers_.emplace_back(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    copy_.tensors_.push_back({name, DType::f64, {}, bytes});
  }

 private:
  RankContext& context_;
  StateCopy& copy_;
};

StateCopy::StateCopy(RankContext& context, Archived& state) {
  Saving archive(context, *this);
  state.archive(archive);
}

WrittenFile StateCopy::write(const std::string& path, const Labels& labels) const {
  return write_safetensors(path, tensors_, labels);
}

void restore_state(RankContext& context, const SafetensorsFile& file, Archived& state) {
  Restoring archive(context, file);
  state.archive(archive);
}

}  // namespace zl
