// Hand-made traces and a cluster with round numbers, so that tests can price them by hand.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/device/communicator.h"
#include "core/ops/op.h"
#include "core/trace/trace.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/timeline.h"

namespace zl::sim::test {

// 1 TFLOP/s, 1 TB/s, links of 1 GB/s, no fixed costs: a GFLOP takes a millisecond.
inline ClusterSpec plain_cluster(int devices = 1) {
  ClusterSpec cluster;
  cluster.name = "plain";
  cluster.device.name = "plain";
  cluster.device.memory_bandwidth = 1e12;
  cluster.device.memory_efficiency = 1;
  cluster.device.rates.fill({1e12, 1.0});
  cluster.device.attention_forward = cluster.device.attention_backward = 1;
  cluster.devices = devices;
  cluster.node_devices = 8;
  cluster.intra = {"intra", {1e-6, 1e-6, 1e-6}, 1e9, 1.0};
  cluster.inter = {"inter", {1e-5, 1e-5, 1e-5}, 1e8, 1.0};
  cluster.host = {"host", {2e-6, 2e-6, 2e-6}, 1e9, 1.0};
  cluster.step_error = 0;
  return cluster;
}

inline ClusterSpec links_without_latency(int devices) {
  ClusterSpec cluster = plain_cluster(devices);
  cluster.intra.hop_seconds = cluster.inter.hop_seconds = {0, 0, 0};
  return cluster;
}

inline std::int64_t sum_of_parts(const StepPrice& step) {
  return step.compute + step.exposed_communication + step.optimizer + step.offload_stall +
         step.bubble + step.host;
}

// To the picosecond, and in all parts; spreads and least times are sums of doubles.
inline void expect_same_price(const StepPrice& a, const StepPrice& b, const std::string& what) {
  const auto parts = [](const StepPrice& step) {
    return std::array{step.duration,       step.compute,          step.exposed_communication,
                      step.exposed_tensor, step.exposed_pipeline, step.optimizer,
                      step.offload_stall,  step.bubble,           step.host};
  };
  EXPECT_EQ(parts(a), parts(b)) << what;
  EXPECT_NEAR(static_cast<double>(a.least), static_cast<double>(b.least), 2) << what;
  EXPECT_NEAR(a.spread, b.spread, 1e-9) << what;
  EXPECT_EQ(sum_of_parts(b), b.duration) << what;
}

inline constexpr std::int64_t kMillisecond = 1'000'000'000;  // picoseconds
inline constexpr std::int64_t kMs = kMillisecond;
inline constexpr StreamId kMain = StreamId::compute, kWire = StreamId::communication;

class TraceBuilder {
 public:
  Trace trace;
  Scope scope{.phase = Phase::forward, .unit = 0, .step = 1};

  // A vector op that takes this long on plain_cluster.
  TraceEvent& op(StreamId stream, double milliseconds) {
    TraceEvent event = make(EventType::op, stream);
    event.kind = kOpKind<Axpy>;
    event.flops = milliseconds * 1e9;
    return trace.append(event);
  }

  // The same work every time, measured to take this long, after those measured before.
  void measured_op(std::int64_t nanoseconds) {
    op(kMain, 1).timing = {now_, now_ + nanoseconds};
    now_ += nanoseconds;
  }

  // Sends `bytes` per rank.
  TraceEvent& collective(StreamId stream, CollectiveKind kind, std::int64_t bytes, int ranks,
                         std::int64_t segments = 1) {
    TraceEvent event = make(EventType::collective, stream);
    event.kind = static_cast<std::uint8_t>(kind);
    event.n = segments;
    event.k = ranks;
    event.bytes_read = event.bytes_written = bytes;
    event.wire_bytes = bytes;
    return trace.append(event);
  }

  TraceEvent& copy(StreamId stream, std::int64_t bytes) {
    TraceEvent event = make(EventType::copy, stream);
    event.bytes_read = event.bytes_written = bytes;
    return trace.append(event);
  }

  // To or from a rank of a group of `ranks`, without bytes.
  TraceEvent& message(StreamId stream, bool sends, int peer, int ranks) {
    TraceEvent event = make(EventType::message, stream);
    event.kind = sends ? 1 : 0;
    event.n = peer;
    event.k = ranks;
    return trace.append(event);
  }

  void record(StreamId stream, std::int64_t id) { mark(EventType::record, stream, id); }
  void wait(StreamId stream, std::int64_t id) { mark(EventType::wait, stream, id); }
  void synchronize(StreamId stream) { mark(EventType::synchronize, stream, 0); }

 private:
  TraceEvent make(EventType type, StreamId stream) const {
    TraceEvent event;
    event.type = type;
    event.stream = static_cast<std::uint8_t>(stream);
    event.scope = scope;
    return event;
  }
  void mark(EventType type, StreamId stream, std::int64_t id) {
    TraceEvent event = make(type, stream);
    event.id = id;
    trace.append(event);
  }

  std::int64_t now_ = 1000;
};

}  // namespace zl::sim::test
