"""The mutants: (file, its text, what stands there instead, the programs and tests that may notice).

A text occurs once in its file (`run.py --check`). A mutant that no listed test notices has survived: a
test is missing, or the mutant is equivalent.
"""

ENGINE = "test_engine"
WORLD = "test_backends_cpu_world"
CONFORMANCE = "test_conformance"
SIMULATOR = "test_simulator"
RUNNER = "test_runner"
SCENARIOS = "test_scenarios"
CORE = "test_core"
WAIT = "if (stream != StreamId::compute) context_.wait(stream, context_.record(StreamId::compute));"

MUTANTS = [
    # Ranks: wrong sums, wrong places, wrong books.
    ("backends/cpu/reduce.cpp", "Sum<T>{1} / static_cast<Sum<T>>(sources.size()) : Sum<T>{1};",
     "Sum<T>{1} : Sum<T>{1};", [WORLD]),
    ("backends/cpu/reduce.cpp", "larger(a, b) : a + b;", "larger(a, b) : a - b;", [WORLD]),
    ("backends/cpu/move_data.cpp", "= source(from) + rank * chunk;", "= source(from) + from * chunk;",
     [WORLD]),
    ("backends/cpu/move_data.cpp", "copy(from, destination + from * chunk, source(from), chunk);",
     "copy(from, destination + step * chunk, source(from), chunk);", [WORLD]),
    ("backends/cpu/move_data.cpp", "moved += (ranks - 1) * chunk;", "moved += ranks * chunk;",
     [ENGINE + ":Traffic*"]),
    ("core/device/communicator.cpp", "return others * count * element;",
     "return ranks * count * element;", [CORE, ENGINE + ":Wire*:Traffic*"]),
    ("core/device/communicator.cpp", "return others * segment.destination.count() * element;",
     "return others * segment.source.count() * element;", [CORE, ENGINE + ":Wire*:Traffic*"]),
    ("core/threads/thread_group.cpp", "channel.exit.arrive_and_wait();", "", [WORLD]),
    ("core/rank/rank_context.cpp", "record.wire_bytes += wire_bytes(",
     "record.wire_bytes = wire_bytes(", [CORE, ENGINE + ":Wire*:Traffic*"]),
    ("core/parallel/partition.cpp", "slot.chunk = (slot.count + ranks - 1) / ranks;",
     "slot.chunk = slot.count / ranks + 1;", [CORE, RUNNER + ":*olden*", ENGINE]),
    ("core/parallel/partition.cpp",
     "return std::clamp<std::int64_t>(s.count - owned_begin(parameter), 0, s.chunk);",
     "return std::min(s.count, s.chunk) + 0 * parameter;", [ENGINE]),
    # ZeRO: missing waits, lost sums, a wrong purpose.
    ("core/zero/replicated_weights.cpp",
     "if (event >= 0) context_.wait(StreamId::compute, event);", "", [ENGINE + ":Hazards*:Stage*"]),
    ("core/zero/replicated_gradients.cpp", WAIT, "", [ENGINE + ":Hazards*:Stage*"]),
    ("core/zero/sharded_gradients.cpp", "InFlight entry;\n  " + WAIT, "InFlight entry;",
     [ENGINE + ":Hazards*:Stage*"]),
    ("core/zero/sharded_weights.cpp",
     "if (gathered.event >= 0) context_.wait(StreamId::compute, gathered.event);", "",
     [ENGINE + ":Hazards*:*Stage*"]),
    ("core/zero/sharded_weights.cpp", "if (ahead_elements_ >= budget) return;",
     "if (ahead_elements_ >= 2 * budget) return;", [ENGINE + ":Prefetch*:Twin*", RUNNER + ":*olden*"]),
    ("core/zero/sharded_gradients.cpp", "items.push_back({padded, owned(p), !first_});",
     "items.push_back({padded, owned(p), false});", [ENGINE + ":Accumulation*"]),
    ("core/zero/replicated_weights.cpp",
     "{CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, segments,",
     "{CollectiveKind::all_gather, ReduceOp::sum, Purpose::control, segments,",
     [ENGINE + ":Wire*:Traffic*"]),
    ("core/zero/gradient_reducer.cpp", "config_.zero.sum_gradients ? 1.0 : 1.0 / partition_.ranks();",
     "config_.zero.sum_gradients ? 2.0 : 1.0;", [ENGINE + ":Quantized*"]),
    # Tiers and checkpoints.
    ("core/offload/host_step.cpp",
     "if (!leaving_.empty() && leaving(g).free >= 0) context_.wait(StreamId::host, leaving(g).free);",
     "", [ENGINE + ":*ffload*:*Files*"]),
    ("core/offload/host_step.cpp",
     "context_.wait(StreamId::copy_in, context_.record(StreamId::host));\n"
     "  for (int p = groups_[group].first;",
     "for (int p = groups_[group].first;",
     [ENGINE + ":*HasNoHazard*:Delayed*"]),
    ("core/checkpoint/state_file.cpp",
     "context_.upload(StreamId::compute, view, stored.bytes.data());", "", [ENGINE + ":*heckpoint*"]),
    ("core/checkpoint/training_checkpoint.cpp", "if (files[rank].bytes < 0) follow(", "if (false) follow(",
     [ENGINE + ":Interrupted*"]),
    ("core/checkpoint/training_checkpoint.cpp", "if (is == completed_with) return file;",
     "return file;", [ENGINE + ":Damaged*"]),
    ("core/checkpoint/labels.cpp",
     "if (label->second != value) return", "if (false) return", [ENGINE + ":Damaged*:Checkpoint*"]),
    ("core/base/crc32c.cpp",
     "state = kTable[(state ^ static_cast<std::uint32_t>(data[i])) & 0xff] ^ (state >> 8);",
     "state = kTable[(state ^ static_cast<std::uint32_t>(data[i])) & 0xff] ^ (state >> 7);",
     [CORE, "test_storage"]),
    # Data.
    ("core/data/token_source.cpp", "std::copy(window.begin() + 1, window.end(), targets);",
     "std::copy(window.begin(), window.end() - 1, targets);", [CORE]),
    ("core/data/data_source.h", "return (micro * ranks + rank) * micro_batch;",
     "return (micro * ranks + 0 * rank) * micro_batch;", [CORE, ENGINE + ":RankCount*"]),
    # Operators and optimizers: signs, scales.
    ("backends/cpu/ops/optimizer.cpp", "param[i] = std::fma(m_new / d, step, p);",
     "param[i] = std::fma(m_new / d, -step, p);", [CONFORMANCE, ENGINE + ":Initialize*:Stage*"]),
    ("backends/cpu/ops/optimizer.cpp", "step = -op.lr * trust;", "step = -op.lr;",
     [CONFORMANCE, "test_parity:*lamb*"]),
    ("backends/cpu/ops/optimizer.cpp", "nesterov ? std::fma(momentum, velocity, g) : velocity",
     "nesterov ? std::fma(momentum, velocity, velocity) : velocity",
     [CONFORMANCE, "test_parity:*nesterov*"]),
    ("backends/cpu/ops/loss.cpp", "(fast_exp(own - normaliser) - A{1})",
     "(fast_exp(own - normaliser) + A{1})", [CONFORMANCE, ENGINE + ":Stage*"]),
    ("backends/cpu/ops/norm.cpp", "(g[c] - average - xhat[c] * along)",
     "(g[c] - average + xhat[c] * along)", [CONFORMANCE, "test_parity"]),
    ("backends/cpu/ops/compress.cpp", "x[i] -= positive ? scale : -scale;",
     "x[i] -= positive ? scale : scale;", [CONFORMANCE, "test_optim"]),
    ("backends/cpu/ops/activation.cpp", "* Function::at(widen<A>(x[i])).slope",
     "* Function::at(widen<A>(x[i])).value", [CONFORMANCE, "test_parity"]),
    ("core/optim/loss_scaler.cpp", "stable % config_.window == 0",
     "stable % (config_.window + 1) == 0", [CORE]),
    # The simulator.
    ("simulator/scheduler.cpp", "std::int64_t start = std::max(issued.time, stream.ready);",
     "std::int64_t start = stream.ready;", [SIMULATOR]),
    ("simulator/scheduler.cpp", "if (left > done) return until + left - done;",
     "if (left > done) return until + left;", [SIMULATOR]),
    ("simulator/step_accounts.cpp", "spend(time.end - from, account);",
     "spend(time.end - time.start, account);", [SIMULATOR]),
    ("simulator/cost/collective.cpp", "kind == CollectiveKind::all_reduce ? 2 : 1;",
     "kind == CollectiveKind::all_reduce ? 1 : 1;", [SIMULATOR]),
    ("simulator/cost/collective.cpp", "std::min<double>(placement.smallest, most)",
     "std::min<double>(placement.per_node, most)", [SIMULATOR]),
    # Scenarios.
    ("scenarios/deepspeed/batch.cpp", "t.micro = *t.total / ranks / *t.accumulation;",
     "t.micro = *t.total / *t.accumulation;", [SCENARIOS]),
    ("scenarios/files/clusters.cpp", "std::min(least, limit)", "std::max(least, limit)",
     [RUNNER, "test_cli"]),
]
