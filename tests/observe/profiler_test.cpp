// SPDX-License-Identifier: Apache-2.0
// The profiler: what it makes of records with known numbers, and of a real run.
#include "tracefire/profiler.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/event.h"
#include "support/paths.h"
#include "tracefire/error.h"
#include "tracefire/nn.h"

using namespace tracefire;
using profiler::Profile;
using Json = nlohmann::json;

namespace {

/// A program of two operations: matmul by oneDNN, add by our own loop.
struct Recorded {
  std::shared_ptr<ProgramRecord> program = std::make_shared<ProgramRecord>();
  std::shared_ptr<std::vector<StepWork>> work = std::make_shared<std::vector<StepWork>>();

  explicit Recorded(const std::string& name = "step", const std::string& layer = "dense") {
    program->name = name;
    for (const char* op : {"matmul", "add"}) {
      StepRecord step;
      step.op = op;
      step.name = layer + "/" + op;
      step.device = {Device::kCpu, 0};
      step.kernel = step.op == "matmul" ? "onednn_matmul" : "cpu_loop";
      step.library = step.op == "matmul" ? "oneDNN" : "tracefire";
      step.location = "train.py:12";
      program->steps.push_back(step);
      work->push_back({100.0, 40.0});
    }
  }

  /// `repeats` executions, of which `times` were measured: [execution][2] in ns.
  void run(uint64_t repeats, std::vector<int64_t> times, bool sampled = false,
           uint64_t launches = 0) const {
    RunEvent event;
    event.program = program;
    event.work = work;
    event.repeats = repeats;
    event.captured = launches > 0;
    event.graph_launches = launches;
    event.start_ns = Events::now_ns();
    event.host_ns = 5000;
    event.step_ns = std::move(times);
    event.sampled = sampled;
    Events::instance().publish(event);
  }
};

const Profile::Row& row(const std::vector<Profile::Row>& rows, const std::string& op) {
  for (const Profile::Row& r : rows) {
    if (r.op == op || r.kernel == op) return r;
  }
  throw std::runtime_error("no row " + op);
}

bool about(double value, double wanted, double share = 0.06) {
  return std::abs(value - wanted) <= share * wanted;
}

}  // namespace

TEST_CASE("operations and kernels get count, total, mean, quantiles and share") {
  profiler::start();
  const Recorded program, other("other", "out");
  for (int i = 0; i < 98; ++i) program.run(1, {3000, 1000});
  program.run(1, {300000, 1000});
  program.run(1, {300000, 1000});
  other.run(100, {});  // not measured
  const Profile p = profiler::stop();

  const Profile::Row& matmul = row(p.operations, "matmul");
  CHECK(matmul.name == "dense/matmul");
  CHECK(matmul.device == "/CPU:0");
  CHECK(matmul.library == "oneDNN");
  CHECK(matmul.location == "train.py:12");
  CHECK(matmul.runs == 100);
  CHECK(matmul.time.count == 100);
  CHECK(about(matmul.time.total_us, 98 * 3 + 600, 1e-9));
  CHECK(about(matmul.time.mean_us, 8.94, 1e-9));
  CHECK(about(matmul.time.p50_us, 3));
  CHECK(about(matmul.time.p99_us, 300));
  CHECK(matmul.source == "measured");
  CHECK(about(matmul.share, 894.0 / 994.0, 1e-9));
  CHECK(matmul.flops == 100 * 100.0);

  size_t unmeasured = 0;
  for (const Profile::Row& r : p.operations) unmeasured += r.source == "none" ? 1 : 0;
  CHECK(unmeasured == 2);
  // By kernel both layers are one; the time is that of all 200 runs.
  const Profile::Row& kernel = row(p.kernels, "onednn_matmul");
  CHECK(kernel.runs == 200);
  CHECK(about(kernel.time.total_us, 200 * 8.94, 1e-9));
  REQUIRE(p.programs.size() == 2);
  CHECK(p.programs[0].executions == 100);
}

TEST_CASE("a replay stands for its steps and says where its times come from") {
  profiler::start();
  const Recorded program;
  program.run(468, {20000, 10000, 20000, 10000}, true, 9);
  const Profile p = profiler::stop();
  const Profile::Row& matmul = row(p.operations, "matmul");
  CHECK(matmul.runs == 468);
  CHECK(matmul.time.count == 2);
  CHECK(about(matmul.time.total_us, 468 * 20, 1e-9));
  CHECK(matmul.source == "sampled");
  REQUIRE(p.programs.size() == 1);
  CHECK(p.programs[0].records == 1);
  CHECK(p.programs[0].executions == 468);
  CHECK(p.programs[0].graph_launches == 9);
  std::string notes;
  for (const std::string& note : p.notes) notes += note;
  CHECK(notes.find("one record that stands for its steps") != std::string::npos);
  CHECK(notes.find("`sampled`") != std::string::npos);
}

TEST_CASE("steps, gaps between them and input add up") {
  profiler::start();
  const auto span = [](const char* name, SpanKind kind, int64_t start, int64_t length) {
    Events::instance().publish(SpanEvent{name, kind, 0, start, length});
  };
  // Steps of 10 ms with gaps of 5 ms, of which 2 ms were told as input.
  const int64_t ms = 1000000, begin = Events::now_ns();
  for (int64_t i = 0; i < 4; ++i) {
    if (i > 0) span("read", SpanKind::kInput, begin + (15 * i - 4) * ms, 2 * ms);
    span("train", SpanKind::kStep, begin + 15 * i * ms, 10 * ms);
  }
  const Profile p = profiler::stop();
  REQUIRE(p.spans.size() == 2);
  CHECK(p.spans[0].name == "train");
  CHECK(p.spans[0].kind == "step");
  CHECK(p.spans[0].time.count == 4);
  CHECK(about(p.spans[0].time.mean_us, 10000, 1e-9));
  CHECK(p.spans[0].between.count == 3);
  CHECK(about(p.spans[0].between.mean_us, 5000, 1e-9));
  CHECK(about(p.input_us, 3 * 2000, 1e-9));
  CHECK(about(p.between_us, 3 * 3000, 1e-9));
  CHECK(about(p.active_us, 3 * 15000 + 10000, 1e-9));
}

TEST_CASE("memory over time: the peak and who held it") {
  profiler::start();
  int blocks[4];
  const Device device{Device::kCpu, 5};
  const auto event = [&](int i, uint64_t bytes, bool taken, uint64_t in_use, const char* what) {
    Events::instance().publish(MemoryEvent{device, &blocks[i], bytes, taken, in_use, what});
  };
  event(0, 100, true, 1100, "weights");  // 1,000 bytes are older than the profile
  event(1, 50, true, 1150, "batch");
  event(1, 50, false, 1100, "");
  event(2, 400, true, 1500, "activations");
  event(3, 30, true, 1530, "activations");
  event(2, 400, false, 1130, "");
  const Profile p = profiler::stop();
  const Profile::Memory* line = nullptr;
  for (const Profile::Memory& m : p.memory) line = m.device == "/CPU:5" ? &m : line;
  REQUIRE(line != nullptr);
  CHECK(line->peak == 1530);
  REQUIRE(line->holders.size() == 3);
  CHECK(line->holders[0] == std::make_pair(std::string("(before the profile)"), uint64_t{1000}));
  CHECK(line->holders[1] == std::make_pair(std::string("activations"), uint64_t{430}));
  CHECK(line->holders[2] == std::make_pair(std::string("weights"), uint64_t{100}));
  REQUIRE(line->points.size() == 6);
  CHECK(line->points[3].bytes == 1500);
}

TEST_CASE("memory of the profiler is bounded; what is cut is told once and the peak stays") {
  profiler::Options options;
  options.max_events = 100;
  profiler::start(options);
  const Device device{Device::kCpu, 6};
  int block;
  for (int i = 0; i < 50000; ++i) {
    const uint64_t in_use = i == 31415 ? 999 : 10;
    Events::instance().publish(MemoryEvent{device, &block, 1, true, in_use, "x"});
    Events::instance().publish(MemoryEvent{device, &block, 1, false, 5, ""});
  }
  for (int i = 0; i < 6000; ++i) Recorded("p", "layer" + std::to_string(i)).run(1, {1000, 1000});
  const Profile p = profiler::stop();
  CHECK(p.slices.size() == 100);
  CHECK(p.operations.size() <= 4098);
  uint64_t runs = 0;
  for (const Profile::Row& r : p.operations) runs += r.op == "add" ? r.runs : 0;
  CHECK(runs == 6000);
  for (const Profile::Memory& m : p.memory) {
    if (m.device != "/CPU:6") continue;
    CHECK(m.points.size() < 8192);
    uint64_t top = 0;
    for (const auto& point : m.points) top = std::max(top, point.bytes);
    CHECK(top == 999);
  }
  size_t cut = 0;
  for (const std::string& note : p.notes) cut += note.find("time line was cut") != note.npos;
  CHECK(cut == 1);
}

TEST_CASE("what is written can be read again, and outside text is escaped") {
  profiler::start();
  const Recorded program("<script>alert(1)</script>", "</td><b>");
  program.run(3, {3000, 1000, 3000, 1000, 3000, 1000});
  { const profiler::Step step("train \"quoted\"\n", 7); }
  const Profile p = profiler::stop();
  const Profile again = Profile::from_json(p.json(true));
  CHECK(again.json(true) == p.json(true));
  CHECK(again.slices.size() == p.slices.size());
  const std::string html = p.html();
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("<b>") == std::string::npos);
  CHECK(html.find("&lt;script&gt;") != std::string::npos);
  CHECK(html.find("default-src 'none'") != std::string::npos);
  const Json trace = Json::parse(p.trace());
  bool found = false;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    found |= event.at("name") == "train \"quoted\"\n 7";
    CHECK(event.at("dur").get<double>() >= 0);
  }
  CHECK(found);
  CHECK(p.str().find('\n', p.str().find("<script>")) != std::string::npos);
  const std::string xplane = p.xplane();
  for (const char* text : {"/host:CPU", "matmul:Matmul", "step_num", "_r"}) {
    CHECK(xplane.find(text) != std::string::npos);
  }
  for (const char* text : {"", "{}", "[1]", "{\"pid\": \"x\"}"}) {
    CHECK_THROWS_AS(Profile::from_json(text), Error);
  }
}

TEST_CASE("a profile is written whole, with mode 0600, or says why not") {
  const std::string folder = test::binary_dir() + "/tests/profile";
  std::filesystem::remove_all(folder);
  profiler::start();
  Recorded().run(1, {3000, 1000});
  const Profile p = profiler::stop();
  p.write(folder + "/deep");
  for (const char* name : {"profile.txt", "profile.json", "profile.html", "trace.json"}) {
    const std::filesystem::path path = folder + "/deep/" + name;
    REQUIRE(std::filesystem::exists(path));
    CHECK(std::filesystem::file_size(path) > 100);
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms(077)) ==
          std::filesystem::perms::none);
  }
  CHECK_THROWS_AS(p.write("/proc/none"), Error);
}

TEST_CASE("start and stop in the wrong order are errors, and a session ends with its block") {
  CHECK_THROWS_AS(profiler::stop(), Error);
  {
    const profiler::Session session;
    CHECK(profiler::running());
    CHECK_THROWS_AS(profiler::start(), Error);
  }
  CHECK(!profiler::running());
  profiler::Session again;
  CHECK(again.stop().operations.empty());
  CHECK(!profiler::running());
}

TEST_CASE("nothing is measured while nobody asks") {
  CHECK(Events::instance().timing() == 0);
  CHECK(!Events::instance().wants_memory());
  CHECK(!Events::instance().wants_spans());
  profiler::start();
  CHECK(Events::instance().timing() != 0);
  CHECK(Events::instance().wants_memory());
  CHECK(Events::instance().wants_spans());
  profiler::stop();
  CHECK(Events::instance().timing() == 0);
}

TEST_CASE("fit is profiled: every step, its kernels, its feed and its memory") {
  const auto [training, test] = data::split_every(data::digits(), 5);
  nn::set_seed(1);
  nn::Sequential model({nn::Dense(32, nn::relu), nn::Dense(10, nn::softmax)});
  model.compile({.optimizer = optim::Adam(),
                 .loss = nn::SparseCategoricalCrossentropy(),
                 .metrics = {nn::SparseCategoricalAccuracy()}});
  profiler::Session session;
  model.fit(training, {.batch_size = 64, .epochs = 3, .verbose = false});
  const Profile p = session.stop();
  const uint64_t steps =
      3 * ((training.rows() + 63) / 64);  // the last batch of an epoch is smaller
  const Profile::Program* epochs = nullptr;
  for (const Profile::Program& program : p.programs) {
    if (program.executions == steps) epochs = &program;
  }
  REQUIRE(epochs != nullptr);
  CHECK(epochs->records == 3 * 2);
  // Forward twice and the gradients of both layers, in each step.
  uint64_t products = 0;
  double measured = 0, longest = 0;
  for (const Profile::Row& r : p.operations) {
    if (r.op == "matmul") products += r.runs;
    if (r.device != "/CPU:0") continue;
    CHECK(r.source == "measured");
    measured += r.time.total_us;
    longest = std::max(longest, r.time.p99_us);
  }
  CHECK(products >= 5 * steps);
  CHECK(measured > 0);
  CHECK(measured < p.wall_us);
  CHECK(longest < p.wall_us);
  bool shuffled = false;
  for (const Profile::Span& span : p.spans) shuffled |= span.name == "shuffle";
  CHECK(shuffled);
  CHECK(p.input_us > 0);
  REQUIRE(!p.memory.empty());
  CHECK(p.memory[0].peak > 0);
  CHECK(!p.memory[0].holders.empty());
}

TEST_CASE("four threads work while profiles are started and stopped [threads]") {
  std::atomic<bool> done{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&, i] {
      const Recorded program("p" + std::to_string(i));
      while (!done) {
        const profiler::Step step("train");
        program.run(2, {3000, 1000, 3000, 1000});
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    profiler::Session session;
    std::this_thread::yield();
    const Profile p = session.stop();
    for (const Profile::Row& r : p.operations) CHECK(r.runs == r.time.count);
  }
  done = true;
  for (std::thread& worker : workers) worker.join();
}

TEST_CASE("tables fit their columns and lose nothing") {
  Profile p;
  p.wall_us = 4629208.4;
  p.command = "/opt/environments/training/.venv/bin/python3 -m package.of.the.program --epochs 5";
  for (int i = 0; i < 3; ++i) {
    Profile::Row row;
    row.op = "fused_" + std::to_string(i);
    row.name = "train_step/epoch/dense_1/kernel/momentum";
    row.kernel = "tf_select_div_select_553c6e2ad0891b0e";
    row.device = "/GPU:0";
    row.location = "/srv/of/a/project/train.py:" + std::to_string(123 + i);
    row.source = "CUPTI";
    row.library = "cuBLASLt";
    row.runs = 1234567;
    row.share = 0.333;
    row.time.total_us = 12345678;
    row.time.mean_us = row.time.p50_us = row.time.p99_us = 12.345;
    p.operations.push_back(row);
    p.kernels.push_back(row);
  }
  p.notes = {
      "a note that is much longer than a line of a terminal has columns, and more of it, "
      "and more of it, and more of it"};
  for (const int columns : {40, 60, 80, 120, 160}) {
    const std::string out = p.str(columns);
    CAPTURE(columns);
    CAPTURE(out);
    size_t lines = 0;
    for (size_t begin = 0; begin < out.size();) {
      const size_t end = out.find('\n', begin);
      const std::string line = out.substr(begin, end - begin);
      // A path or a kernel's name stays whole.
      const bool one_word =
          line.find_last_of(' ') == line.find_last_of(' ', line.find_first_not_of(' '));
      CHECK((line.size() <= static_cast<size_t>(columns) || one_word));
      begin = end + 1;
      ++lines;
    }
    CHECK(lines < 70);
    for (const char* text : {"fused_2", "/srv/of/a/project/train.py:125", "cuBLASLt", "CUPTI",
                             "tf_select_div_select_553c6e2ad0891b0e", "1234567"}) {
      CHECK(out.find(text) != std::string::npos);
    }
  }
  // Where there is room, a row is a line.
  const std::string wide = p.str(250);
  const size_t row = wide.find("fused_1");
  CHECK(wide.find("train.py:124", row) < wide.find('\n', row));
}
