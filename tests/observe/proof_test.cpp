// SPDX-License-Identifier: Apache-2.0
// The proof of endless runs: its memory is bounded, its sums are whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "core/base/event.h"
#include "core/base/log.h"
#include "tracefire/config.h"
#include "tracefire/device.h"
#include "tracefire/observe.h"
#include "tracefire/ops.h"

using namespace tracefire;

namespace {

/// A program of `steps` additions, as the executor would publish it.
struct Recorded {
  std::shared_ptr<ProgramRecord> program = std::make_shared<ProgramRecord>();
  std::shared_ptr<std::vector<StepWork>> work = std::make_shared<std::vector<StepWork>>();

  explicit Recorded(size_t steps, const std::string& kernel = "cpu_loop",
                    const std::string& reason = "") {
    program->precision = "tf32";
    for (size_t i = 0; i < steps; ++i) {
      StepRecord step;
      step.op = i % 2 == 0 ? "add" : "mul";
      step.device = {Device::kCpu, 0};
      step.kernel = kernel;
      step.library = "tracefire";
      step.placement = reason.empty() ? Placement::kOnDevice : Placement::kFellBack;
      step.reason = reason;
      step.location = "train.py:" + std::to_string(i);
      program->steps.push_back(std::move(step));
      work->push_back({2.0, 12.0});
    }
  }

  void run(uint64_t repeats = 1, std::vector<int32_t> steps = {}) const {
    RunEvent event;
    event.program = program;
    event.work = work;
    event.repeats = repeats;
    event.steps = std::move(steps);
    Events::instance().publish(event);
  }
};

uint64_t runs_of(const Proof& proof, const std::string& op) {
  uint64_t runs = 0;
  for (const Proof::Row& row : proof.rows) runs += row.op == op ? row.runs : 0;
  return runs;
}

}  // namespace

TEST_CASE("thousands of programs are added up, none is kept, no count is lost") {
  reset_proof();
  const Recorded hot(3);  // runs all the time, also between the others
  std::vector<std::weak_ptr<ProgramRecord>> records;
  for (int i = 0; i < 5000; ++i) {
    const Recorded once(2);
    records.push_back(once.program);
    once.run(3);
    hot.run();
    hot.run(2, {1});
  }
  size_t alive = 0;
  for (const auto& record : records) alive += record.expired() ? 0 : 1;
  CHECK(alive <= 256);
  const Proof all = proof();
  REQUIRE(all.rows.size() == 2);
  CHECK(runs_of(all, "add") == 5000 * 3 + 5000 * 2);
  CHECK(runs_of(all, "mul") == 5000 * 3 + 5000 + 5000 * 2);
  CHECK(all.cpu_flops == 2.0 * (25000 + 30000));
  CHECK(all.runs == 5000 * 3 + 5000 + 5000 * 2);
  CHECK(all.rows[0].bytes + all.rows[1].bytes == 12.0 * 55000);
  CHECK(all.rows[0].location == "train.py:1");
  alive = 0;
  for (const auto& record : records) alive += record.expired() ? 0 : 1;
  CHECK(alive == 0);  // a report lets go of all
  // A report takes nothing away.
  hot.run();
  CHECK(runs_of(proof(), "mul") == 30001);
  reset_proof();
  CHECK(proof().rows.empty());
  hot.run();
  CHECK(runs_of(proof(), "add") == 2);
}

TEST_CASE("thousands of different programs that really ran are counted, few are kept") {
  synchronize();
  reset_proof();
  std::vector<std::weak_ptr<const ProgramRecord>> records;
  Events::Subscriber subscriber;
  subscriber.run = [&](const RunEvent& event) { records.push_back(event.program); };
  const int listener = Events::instance().subscribe(std::move(subscriber));
  constexpr int64_t kPrograms = 2500;
  for (int64_t n = 1; n <= kPrograms; ++n) {  // each shape is a program of its own
    const Tensor x = Tensor::of(std::vector<float>(static_cast<size_t>(n), 1.0f), {n});
    add(x, x).wait();
  }
  Events::instance().unsubscribe(listener);
  REQUIRE(records.size() == kPrograms);
  const auto alive = std::count_if(records.begin(), records.end(),
                                   [](const auto& record) { return !record.expired(); });
  // What the executor keeps to run again (1,024), what the engine does, what is not added up yet.
  CHECK(alive <= 1024 + 512 + 256);
  CHECK(runs_of(proof(), "add") == kPrograms);
  CHECK(proof().rows.size() < 10);
  reset_proof();
  CHECK(proof().json().find("\"rows\": []") != std::string::npos);
}

TEST_CASE("a few large programs are too much to keep, too") {
  reset_proof();
  std::vector<std::weak_ptr<ProgramRecord>> records;
  for (int i = 0; i < 40; ++i) {
    const Recorded large(10000);
    records.push_back(large.program);
    large.run();
  }
  size_t alive = 0;
  for (const auto& record : records) alive += record.expired() ? 0 : 1;
  CHECK(alive <= 7);
  CHECK(runs_of(proof(), "add") == 40 * 5000);
  const Recorded enormous(100000);
  enormous.run();
  enormous.run();
  CHECK(runs_of(proof(), "add") == 40 * 5000 + 2 * 50000);
}

TEST_CASE("rows beyond the limit are added up by operation, said once, nothing is lost") {
  reset_proof();
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, const std::string& line) { said.push_back(line); });
  for (int i = 0; i < 6000; ++i) {
    Recorded(1, "loop_" + std::to_string(i)).run();
    Recorded(2, "loop", "size " + std::to_string(i) + " is odd").run();
  }
  const Proof all = proof();
  set_log_sink({});
  CHECK(all.rows.size() <= 4096 + 3);
  CHECK(runs_of(all, "add") == 12000);
  CHECK(runs_of(all, "mul") == 6000);
  CHECK(all.cpu_flops == 2.0 * 18000);
  CHECK(all.verdict == Verdict::kOnCpu);
  uint64_t various = 0;
  for (const Proof::Row& row : all.rows) {
    if (row.kernel != "(various)") continue;
    various += row.runs;
    CHECK(row.library == "(various)");
    CHECK(row.reason == (row.placement == Placement::kFellBack ? "(various)" : ""));
  }
  CHECK(various == 18000 - 4096);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("4096 rows") != std::string::npos);
  reset_proof();
  Recorded(1, "loop_1").run();
  CHECK(proof().rows[0].kernel == "loop_1");
}

TEST_CASE("long names widen a column of the table for all rows") {
  reset_proof();
  Recorded longest(1, "cuda_softmax_cross_entropy_grad_of_rows");
  longest.program->steps[0].op = "softmax_cross_entropy_grad";
  longest.run();
  Recorded(1, "loop").run();
  const std::string text = proof().str();
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  }
  REQUIRE(lines.size() >= 3);
  const size_t device = lines[0].find("device"), kernel = lines[0].find("kernel"),
               runs = lines[0].find("runs");
  for (size_t i = 1; i < 3; ++i) {
    CHECK(lines[i].substr(device, 7) == "/CPU:0 ");
    CHECK(lines[i][device - 1] == ' ');
    CHECK(lines[i][kernel - 1] == ' ');
    CHECK(lines[i][kernel] != ' ');
    CHECK(lines[i].substr(runs, 2) == "1 ");
  }
}

TEST_CASE("a proof of nothing says that nothing ran, and blames no CPU") {
  synchronize();
  reset_proof();
  CHECK(proof().str() == "nothing ran\n");
  CHECK(std::string(proof().verdict_text()) == "nothing-ran");
  CHECK(proof().json().find("\"verdict\": \"nothing-ran\"") != std::string::npos);
  Recorded(1, "loop").run();
  CHECK(std::string(proof().verdict_text()) == "on-cpu");
}

TEST_CASE("precisions of products on GPUs are all named") {
  reset_proof();
  for (const char* precision : {"tf32", "highest", "tf32"}) {
    Recorded product(1, "cublaslt");
    product.program->steps[0].op = "matmul";
    product.program->precision = precision;
    product.run();
    CHECK(proof().precision == "highest");  // on a CPU
  }
  Recorded product(1, "cublaslt");
  product.program->steps[0].op = "matmul";
  product.program->steps[0].device = {Device::kGpu, 0};
  product.run();
  CHECK(proof().precision == "tf32");
  CHECK(proof().verdict == Verdict::kPartlyOnGpu);
  Recorded other(1, "cublaslt");
  other.program->steps = product.program->steps;
  other.program->precision = "highest";
  other.run();
  CHECK(proof().precision == "highest, tf32");
  reset_proof();
}

TEST_CASE("threads run programs while others read the proof [threads]") {
  reset_proof();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 1000; ++i) {
        Recorded(2, "loop_" + std::to_string(t)).run(2);
        if (i % 100 == 0) proof();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Proof all = proof();
  CHECK(all.rows.size() == 8);
  CHECK(runs_of(all, "add") == 8000);
  CHECK(runs_of(all, "mul") == 8000);
  reset_proof();
}
