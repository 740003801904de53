// SPDX-License-Identifier: Apache-2.0
// Loops on the emulated GPU against the CPU's interpreter, and their texts through the real NVRTC.
#include <cmath>
#include <random>

#include "backends/cpu/cpu_device.h"
#include "backends/cuda/emit/device_library.h"
#include "backends/cuda/emit/loop_source.h"
#include "cuda/emulated_gpu.h"
#include "support/paths.h"
#include "support/skip.h"
#include "tracefire/half.h"

namespace tracefire::cuda {
namespace {

using test::EmulatedGpu;

DeviceBackend& cpu() {
  static std::vector<std::unique_ptr<DeviceBackend>>& devices =
      *new std::vector<std::unique_ptr<DeviceBackend>>(make_cpu_devices(1));
  return *devices[0];
}

/// A loop with everything that a kernel is asked about.
struct LoopNode {
  LoopProgram program;
  Node node;
  std::vector<ValueType> inputs, outputs;
  NodeView view;

  explicit LoopNode(LoopProgram loop) : program(std::move(loop)) {
    node.op = OpTable::instance().id("fused");
    for (const auto& input : program.inputs) inputs.push_back({input.dtype, input.shape});
    for (const auto& output : program.outputs) outputs.push_back({output.dtype, program.shape});
    view.node = &node;
    view.inputs = inputs;
    view.outputs = outputs;
    view.loop = &program;
  }
  LoopNode(const LoopNode&) = delete;
  LoopNode& operator=(const LoopNode&) = delete;
};

size_t bytes_of(const ValueType& type) {
  return static_cast<size_t>(type.shape.elements().value()) * dtype_size(type.dtype);
}

using Bytes = std::vector<uint8_t>;

/// Runs a loop on a device; `shift` moves the arrays by that many elements off their alignment.
std::vector<Bytes> run(DeviceBackend& device, const LoopNode& loop,
                       const std::vector<Bytes>& inputs, size_t shift = 0,
                       ErrorWord* word = nullptr) {
  Stream& stream = *device.stream(0).value();
  std::vector<BufferPtr> buffers;
  std::vector<void*> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t offset = shift * dtype_size(loop.inputs[i].dtype);
    buffers.push_back(device.allocate(inputs[i].size() + offset + 16, "input").value());
    in.push_back(static_cast<char*>(buffers.back()->data()) + offset);
    const Status copied = device.copy_in(stream, in.back(), inputs[i].data(), inputs[i].size());
    CHECK(copied.ok());
  }
  for (const ValueType& type : loop.outputs) {
    const size_t offset = shift * dtype_size(type.dtype);
    buffers.push_back(device.allocate(bytes_of(type) + offset + 16, "output").value());
    out.push_back(static_cast<char*>(buffers.back()->data()) + offset);
  }
  buffers.push_back(device.allocate(sizeof(ErrorWord), "error").value());
  const Status cleared = device.fill_zero(stream, buffers.back()->data(), sizeof(ErrorWord));
  CHECK(cleared.ok());
  const Kernel* const kernel = device.kernels(loop.node.op).front();
  const Answer answer = kernel->accept(loop.view);
  CHECK(answer.refusal == "");
  const Result<std::unique_ptr<Launch>> launch = kernel->bind(loop.view, device);
  if (!launch.ok()) MESSAGE(launch.status().message());
  REQUIRE(launch.ok());
  const Status ran = (*launch)->run(
      {stream, in, out, nullptr, static_cast<ErrorWord*>(buffers.back()->data()), 41});
  if (!ran.ok()) MESSAGE(ran.message());
  REQUIRE(ran.ok());
  std::vector<Bytes> results;
  for (size_t i = 0; i < loop.outputs.size(); ++i) {
    results.emplace_back(bytes_of(loop.outputs[i]));
    const Status copied = device.copy_out(stream, results[i].data(), out[i], results[i].size());
    CHECK(copied.ok());
  }
  if (word != nullptr) {
    const Status copied = device.copy_out(stream, word, buffers.back()->data(), sizeof *word);
    CHECK(copied.ok());
  }
  return results;
}

/// Numbers that reach the corners: zeros of both signs, infinities, NaN, the limits.
Bytes draw(const ValueType& type, uint32_t seed) {
  const size_t n = static_cast<size_t>(type.shape.elements().value());
  Bytes bytes(bytes_of(type));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 2);
  const double corners[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e30, -3e9, 0.5, 300.0};
  for (size_t i = 0; i < n; ++i) {
    const bool corner = i % 7 == 3;
    const double real = corner ? corners[random() % std::size(corners)] : normal(random);
    uint8_t* const at = bytes.data() + i * dtype_size(type.dtype);
    const auto put = [at](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (type.dtype) {
      case DType::kF64:
        put(real);
        break;
      case DType::kF32:
        put(static_cast<float>(real));
        break;
      case DType::kF16:
        put(f16_from_float(static_cast<float>(real)));
        break;
      case DType::kBF16:
        put(bf16_from_float(static_cast<float>(real)));
        break;
      case DType::kF8E4M3:
        put(f8e4m3_from_float(static_cast<float>(real)));
        break;
      case DType::kF8E5M2:
        put(f8e5m2_from_float(static_cast<float>(real)));
        break;
      case DType::kBool:
        put(static_cast<uint8_t>(random() & 1));
        break;
      default: {
        // Small numbers, and now and then any bits at all.
        const uint64_t word =
            corner ? random() : static_cast<uint64_t>(static_cast<int64_t>(random() % 13) - 6);
        std::memcpy(at, &word, dtype_size(type.dtype));
      }
    }
  }
  return bytes;
}

double number_at(const Bytes& bytes, DType dtype, size_t i) {
  const uint8_t* const at = bytes.data() + i * dtype_size(dtype);
  const auto get = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kF64:
      return get(double());
    case DType::kF32:
      return get(float());
    case DType::kF16:
      return f16_to_float(get(uint16_t()));
    case DType::kBF16:
      return bf16_to_float(get(uint16_t()));
    case DType::kF8E4M3:
      return f8e4m3_to_float(get(uint8_t()));
    case DType::kF8E5M2:
      return f8e5m2_to_float(get(uint8_t()));
    default:
      return 0;
  }
}

/// Whole numbers must be equal, floating ones equal within `tolerance`, NaN where NaN is expected.
bool same(const Bytes& got, const Bytes& expected, DType dtype, double tolerance) {
  if (!is_floating(dtype)) return got == expected;
  for (size_t i = 0; i < got.size() / dtype_size(dtype); ++i) {
    const double a = number_at(got, dtype, i), b = number_at(expected, dtype, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b && std::signbit(a) == std::signbit(b)) continue;
    if (!(std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)))) return false;
  }
  return true;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-14;
    case DType::kF32:
      return 3e-6;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 1e-2;
    default:
      return 0.2;
  }
}

void check_against_cpu(EmulatedGpu& gpu, const LoopNode& loop, size_t shift = 0) {
  std::vector<Bytes> inputs;
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    inputs.push_back(draw(loop.inputs[i], static_cast<uint32_t>(17 * i + 5)));
  }
  const std::vector<Bytes> expected = run(cpu(), loop, inputs);
  const std::vector<Bytes> got = run(gpu.device(), loop, inputs, shift);
  for (size_t i = 0; i < got.size(); ++i) {
    const DType dtype = loop.outputs[i].dtype;
    const bool equal = same(got[i], expected[i], dtype, tolerance_of(dtype));
    if (!equal) MESSAGE("output " << i << " of\n" << loop.program.str());
    CHECK(equal);
  }
}

/// A program with three inputs of `dtype` and one of bool; `instr` may use registers 0 … 3.
class ProgramOf {
 public:
  ProgramOf(DType dtype, Shape shape) : dtype_(dtype) {
    program_.shape = shape;
    for (int i = 0; i < 3; ++i) program_.inputs.push_back({dtype, shape, false});
    program_.inputs.push_back({DType::kBool, shape, false});
  }
  /// Appends an instruction whose result is an output, if the CPU and the GPU define it.
  void add(LoopOp op, DType result, DType from, int32_t a, int32_t b = -1, int32_t c = -1) {
    LoopProgram trial = program_;
    LoopInstr instr;
    instr.op = op;
    instr.dtype = result;
    instr.from = from;
    instr.a = a;
    instr.b = b;
    instr.c = c;
    trial.body.push_back(instr);
    const int32_t reg = static_cast<int32_t>(trial.inputs.size() + trial.body.size()) - 1;
    const DType stored = result;
    trial.outputs.push_back({reg, stored});
    const LoopNode node(trial);
    const bool cpu_accepts = cpu().kernels(node.node.op).front()->accept(node.view).accepted;
    const std::string refusal = loop_refusal(trial);
    if (cpu_accepts != refusal.empty()) MESSAGE(refusal << " for " << trial.str());
    CHECK(cpu_accepts == refusal.empty());
    if (cpu_accepts && refusal.empty()) program_ = std::move(trial);
  }
  LoopProgram take() { return std::move(program_); }

 private:
  DType dtype_;
  LoopProgram program_;
};

const DType kRegisterTypes[] = {DType::kF32, DType::kF64, DType::kI8,  DType::kI16,
                                DType::kI32, DType::kI64, DType::kU8,  DType::kU16,
                                DType::kU32, DType::kU64, DType::kBool};

/// Every operation on registers of one type.
LoopProgram all_operations(DType type) {
  ProgramOf p(type, Shape{64});
  for (int op = static_cast<int>(LoopOp::kNeg); op < static_cast<int>(LoopOp::kCount); ++op) {
    const LoopOp kind = static_cast<LoopOp>(op);
    if (kind == LoopOp::kCast || kind == LoopOp::kBitcast || kind == LoopOp::kCheckFinite) continue;
    const bool truth = kind == LoopOp::kIsNan || kind == LoopOp::kIsFinite ||
                       (kind >= LoopOp::kEqual && kind <= LoopOp::kGreaterEqual);
    const DType result = truth ? DType::kBool : type;
    const int operands = loop_op_operands(kind);
    if (operands == 1) p.add(kind, result, type, 0);
    if (operands == 2) p.add(kind, result, type, 0, 1);
    if (operands == 3) p.add(kind, result, type, kind == LoopOp::kSelect ? 3 : 2, 0, 1);
  }
  for (const DType to : {DType::kBool, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                         DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kF32,
                         DType::kF64, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    p.add(LoopOp::kCast, to, type, 2);
  }
  return p.take();
}

TEST_CASE("cuda loops: every operation on every type agrees with the CPU") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu(1, EmulatedGpu::DiskCache::kOwn);
  std::vector<std::unique_ptr<LoopNode>> nodes;
  std::vector<NodeView> views;
  for (const DType type : kRegisterTypes) {
    nodes.push_back(std::make_unique<LoopNode>(all_operations(type)));
    views.push_back(nodes.back()->view);
    CHECK(nodes.back()->program.body.size() >= 10);
  }
  REQUIRE(gpu.device().prepare(views).ok());
  CHECK(gpu.counts().compiles == 1);  // all kernels in one piece
  for (const auto& node : nodes) check_against_cpu(gpu, *node);
  CHECK(gpu.counts().compiles == 1);
}

LoopInstr instruction(LoopOp op, DType dtype, DType from, int32_t a = -1, int32_t b = -1,
                      int32_t c = -1) {
  LoopInstr instr;
  instr.op = op;
  instr.dtype = dtype;
  instr.from = from;
  instr.a = a;
  instr.b = b;
  instr.c = c;
  return instr;
}

TEST_CASE("cuda loops: narrow types are loaded, computed in float32, rounded and stored") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  std::vector<std::unique_ptr<LoopNode>> nodes;
  std::vector<NodeView> views;
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    const DType word = dtype_size(type) == 2 ? DType::kU16 : DType::kU8;
    LoopProgram p;
    p.shape = Shape{40};
    p.inputs = {{type, Shape{40}, false}, {type, Shape{40}, false}, {word, Shape{40}, false}};
    p.body = {instruction(LoopOp::kMul, DType::kF32, DType::kF32, 0, 1),
              instruction(LoopOp::kCast, type, DType::kF32, 3),
              instruction(LoopOp::kAdd, DType::kF32, DType::kF32, 4, 0),
              instruction(LoopOp::kBitcast, word, type, 0),
              instruction(LoopOp::kBitcast, type, word, 2)};
    p.outputs = {{5, type}, {4, DType::kF32}, {6, word}, {7, type}};
    nodes.push_back(std::make_unique<LoopNode>(p));
    views.push_back(nodes.back()->view);
  }
  REQUIRE(gpu.device().prepare(views).ok());
  for (const auto& node : nodes) check_against_cpu(gpu, *node);
}

/// y = a * b + c with shapes that broadcast.
LoopProgram multiply_add(Shape shape, Shape a, Shape b, Shape c, DType type = DType::kF32) {
  LoopProgram p;
  p.shape = shape;
  p.inputs = {{type, a, false}, {type, b, false}, {type, c, false}};
  p.body = {instruction(LoopOp::kMul, type, type, 0, 1),
            instruction(LoopOp::kAdd, type, type, 3, 2)};
  p.outputs = {{4, type}};
  return p;
}

TEST_CASE("cuda loops: every way to walk the operands") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  std::vector<std::unique_ptr<LoopNode>> nodes;
  const auto add = [&](LoopProgram p) {
    nodes.push_back(std::make_unique<LoopNode>(std::move(p)));
  };
  add(multiply_add(Shape{}, Shape{}, Shape{}, Shape{}));
  add(multiply_add(Shape{7}, Shape{7}, Shape{}, Shape{1}));
  add(multiply_add(Shape{16, 128}, Shape{16, 128}, Shape{128}, Shape{16, 1}));  // four at a time
  add(multiply_add(Shape{33, 65}, Shape{33, 65}, Shape{65}, Shape{33, 1}));     // one at a time
  add(multiply_add(Shape{8, 4, 3, 32}, Shape{8, 1, 3, 1}, Shape{4, 1, 32}, Shape{8, 4, 3, 32}));
  add(multiply_add(Shape{2, 3, 5, 7, 2}, Shape{2, 1, 5, 1, 2}, Shape{3, 1, 7, 1},
                   Shape{1, 1, 1, 1, 2}));
  add(multiply_add(Shape{4096}, Shape{4096}, Shape{4096}, Shape{}));
  add(multiply_add(Shape{4099}, Shape{4099}, Shape{4099}, Shape{}));
  add(multiply_add(Shape{0, 5}, Shape{0, 5}, Shape{5}, Shape{}));
  std::vector<NodeView> views;
  for (const auto& node : nodes) views.push_back(node->view);
  REQUIRE(gpu.device().prepare(views).ok());
  for (const auto& node : nodes) check_against_cpu(gpu, *node);
  // Off their alignment, arrays are walked one element at a time.
  check_against_cpu(gpu, *nodes[2], 1);
  check_against_cpu(gpu, *nodes[6], 3);
}

TEST_CASE("cuda loops: a result may be written over an input") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  const LoopNode node(multiply_add(Shape{4096}, Shape{4096}, Shape{4096}, Shape{4096}));
  const std::vector<float> a(4096, 3.f), b(4096, 2.f), c(4096, 1.f);
  const BufferPtr da = gpu.put(a), db = gpu.put(b), dc = gpu.put(c);
  const Kernel* const kernel = gpu.device().kernels(node.node.op).front();
  CHECK(kernel->in_place());
  const std::unique_ptr<Launch> launch = kernel->bind(node.view, gpu.device()).value();
  void* const inputs[] = {da->data(), db->data(), dc->data()};
  void* const outputs[] = {da->data()};
  REQUIRE(launch->run({gpu.stream(), inputs, outputs, nullptr, nullptr, 0}).ok());
  REQUIRE(launch->run({gpu.stream(), inputs, outputs, nullptr, nullptr, 0}).ok());
  CHECK(gpu.get<float>(da, 4096) == std::vector<float>(4096, 15.f));
  CHECK(launch->kernel_names().front().rfind("tf_mul_add_", 0) == 0);
}

TEST_CASE("cuda loops: coordinates, constants and random words") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  LoopProgram p;
  p.shape = Shape{6, 5, 4};
  p.inputs = {{DType::kU32, Shape{2}, true}, {DType::kF32, Shape{5, 1}, false}};
  LoopInstr axis0 = instruction(LoopOp::kIndex, DType::kI64, DType::kI64);
  axis0.axis = 0;
  LoopInstr axis2 = instruction(LoopOp::kIndex, DType::kF32, DType::kF32);
  axis2.axis = 2;
  LoopInstr real = instruction(LoopOp::kConst, DType::kF32, DType::kF32);
  real.imm = -0.1f;
  LoopInstr infinite = real;
  infinite.imm = -INFINITY;
  LoopInstr whole = instruction(LoopOp::kConst, DType::kI64, DType::kI64);
  whole.imm_int = INT64_MIN;
  p.body = {axis0,
            axis2,
            real,
            infinite,
            whole,
            instruction(LoopOp::kThreefry, DType::kU32, DType::kU32, 0),
            instruction(LoopOp::kPhilox, DType::kU32, DType::kU32, 0),
            instruction(LoopOp::kAdd, DType::kF32, DType::kF32, 3, 1)};
  for (int32_t i = 0; i < static_cast<int32_t>(p.body.size()); ++i) {
    p.outputs.push_back({i + 2, p.body[static_cast<size_t>(i)].dtype});
  }
  check_against_cpu(gpu, LoopNode(p));
}

TEST_CASE("cuda loops: a value that is not finite is reported, and the first report stays") {
  if (test::skip_without_kernels()) return;
  EmulatedGpu gpu;
  LoopProgram p;
  p.shape = Shape{3, 2};
  p.inputs = {{DType::kF32, Shape{3, 2}, false}};
  p.body = {instruction(LoopOp::kCheckFinite, DType::kF32, DType::kF32, 0)};
  p.outputs = {{1, DType::kF32}};
  const LoopNode node(p);
  const auto word_for = [&](std::vector<float> values) {
    Bytes bytes(24);
    std::memcpy(bytes.data(), values.data(), 24);
    ErrorWord word;
    run(gpu.device(), node, {bytes}, 0, &word);
    return word;
  };
  CHECK(word_for({1, 2, 3, 4, 5, 6}).step_plus_one == 0);
  const ErrorWord bad = word_for({1, 2, 3, INFINITY, 5, NAN});
  CHECK(bad.step_plus_one == 42);
  CHECK(bad.code == static_cast<uint32_t>(ErrorCode::kNotFinite));
  CHECK(bad.detail == 3);
}

TEST_CASE("cuda loops: kernels are compiled once for all sizes of one kind") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu(1, EmulatedGpu::DiskCache::kOwn);
  for (const int64_t n : {5, 6, 1000}) {
    const LoopNode node(multiply_add(Shape{n}, Shape{n}, Shape{n}, Shape{}));
    check_against_cpu(gpu, node);
  }
  CHECK(gpu.counts().compiles == 1);
  // A symbol is as good as a number.
  LoopProgram p = multiply_add(Shape{7}, Shape{7}, Shape{7}, Shape{});
  p.shape = Shape{Dim::fresh("N")};
  p.inputs[0].shape = p.inputs[1].shape = p.shape;
  const LoopNode symbolic(p);
  REQUIRE(gpu.device().prepare(std::vector<NodeView>{symbolic.view}).ok());
  CHECK(gpu.counts().compiles == 1);
  CHECK(gpu.device().kernels(symbolic.node.op).front()->accept(symbolic.view).accepted);
}

TEST_CASE("cuda loops: refusals say why") {
  LoopProgram p = multiply_add(Shape{2}, Shape{2}, Shape{2}, Shape{2}, DType::kBool);
  CHECK(loop_refusal(p) == "cuda: mul of bool is not defined");
  p = multiply_add(Shape{2}, Shape{2}, Shape{2}, Shape{2}, DType::kC64);
  CHECK(loop_refusal(p) == "cuda: elements of complex64 are not computed in loops");
}

/// Compiles with every NVRTC of this machine, found as in production, but without a driver, for its
/// oldest and newest architecture. Returns how often.
int compile_for_real(const std::string& text, bool first_only) {
  nvidia::SearchOptions options = nvidia::SearchOptions::from_environment();
  options.loaded = nullptr;  // other tests of this program loaded emulated libraries
  options.path_dirs.push_back(test::binary_dir() + "/deps/cuda12/lib");
  nvidia::Search search(options);
  int compiled = 0;
  for (const int major : {12, 13}) {
    const Result<nvidia::OpenLibrary> library = search.open(nvidia::Library::kNvrtc, major);
    if (!library.ok()) continue;
    const Result<nvidia::NvrtcApi> api = nvidia::load_nvrtc_api(*library);
    REQUIRE(api.ok());
    int count = 0;
    REQUIRE(api->nvrtcGetNumSupportedArchs(&count) == NVRTC_SUCCESS);
    std::vector<int> known(static_cast<size_t>(count));
    REQUIRE(api->nvrtcGetSupportedArchs(known.data()) == NVRTC_SUCCESS);
    for (const int architecture : {known.back(), std::max(70, known.front())}) {
      const auto compiler = Compiler::make(*api, architecture, DiskCache("", 0));
      REQUIRE(compiler.ok());
      const Result<Image> image = (*compiler)->compile("all loops", text);
      if (!image.ok()) MESSAGE(image.status().message());
      CHECK(image.ok());
      ++compiled;
      if (first_only) return compiled;
    }
  }
  return compiled;
}

std::string text_of_all_operations(DType type) {
  const LoopProgram p = all_operations(type);
  LoopVariant variant;
  variant.access.assign(p.inputs.size(), BoundLoop::Access::kFlat);
  return loop_source(p, variant).text;
}

std::string text_of_strided_loops() {
  std::string text;
  LoopVariant strided;
  strided.access = {BoundLoop::Access::kFlat, BoundLoop::Access::kStrided,
                    BoundLoop::Access::kScalar};
  strided.axes = 3;
  for (const int vector : {1, 4}) {
    for (const bool wide : {false, true}) {
      strided.vector = vector;
      strided.wide = wide;
      const Shape s{4};
      text += loop_source(multiply_add(s, s, s, s, DType::kBF16), strided).text;
    }
  }
  return text;
}

TEST_CASE("cuda loops: the real NVRTC accepts the texts") {
  const std::string text =
      std::string(device_library()) + text_of_all_operations(DType::kF32) + text_of_strided_loops();
  if (compile_for_real(text, true) == 0) test::skip("no NVRTC on this machine");
}

TEST_CASE("cuda loops: each NVRTC accepts the texts of all types, old and new GPUs [deep]") {
  std::string text = std::string(device_library()) + text_of_strided_loops();
  for (const DType type : kRegisterTypes) text += text_of_all_operations(type);
  if (compile_for_real(text, false) == 0) test::skip("no NVRTC on this machine");
}

}  // namespace
}  // namespace tracefire::cuda
