// The recording file tier: hands out objects; nothing is stored.
// Ownership: a value. Threads: used by one rank's thread.
#pragma once

#include "core/device/storage.h"

namespace zl::sim {

class Storage final : public zl::Storage {
 public:
  std::string describe() const override { return "sim"; }
  ObjectId create(const std::string&, const ObjectLayout&) override { return next_++; }
  void read(ObjectId, std::span<const ObjectPart>) override {}
  void write(ObjectId, std::span<const ObjectPart>) override {}

 private:
  ObjectId next_ = 0;
};

}  // namespace zl::sim
