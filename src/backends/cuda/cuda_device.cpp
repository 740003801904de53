// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_device.h"

#include "backends/cuda/cuda_devices.h"
#include "backends/cuda/kernel_table.h"

namespace tracefire::cuda {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

DeviceInfo describe(const nvidia::Inventory& inventory, const nvidia::Gpu& gpu, Device device) {
  DeviceInfo info;
  info.device = device;
  info.name = gpu.name;
  info.architecture = gpu.architecture();
  info.memory_bytes = gpu.memory_bytes;
  const std::string cuda =
      "CUDA " + nvidia::version_text(nvidia::Library::kDriver, inventory.cuda_version);
  info.driver =
      inventory.driver_version.empty() ? cuda : inventory.driver_version + " (" + cuda + ")";
  info.peak_flops_f32 = gpu.peak_flops_f32();
  return info;
}

}  // namespace

CudaDevice::CudaDevice(nvidia::Stack& stack, nvidia::Gpu gpu, Device device)
    : stack_(stack), gpu_(std::move(gpu)), info_(describe(stack.inventory(), gpu_, device)) {}

CudaDevice::~CudaDevice() = default;

Result<CudaDevice::Running*> CudaDevice::running() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) running_.emplace(start());
  if (!running_->ok()) return running_->status();
  return (**running_).get();
}

Result<std::unique_ptr<CudaDevice::Running>> CudaDevice::start() {
  TF_ASSIGN(const nvidia::DriverApi* const api, stack_.driver());
  TF_ASSIGN(std::shared_ptr<const Context> context, Context::make(*api, gpu_, info_.device));
  auto made = std::make_unique<Running>();
  Running& parts = *made;
  parts.context = context;
  parts.pool = std::make_shared<Pool>(context, [&parts] { return lanes_passed(parts); });
  parts.staging = std::make_unique<Staging>(context);
  return made;
}

Pool::Token CudaDevice::lanes_passed(Running& running) {
  const std::lock_guard<std::mutex> lock(running.mutex);
  if (running.lanes.size() <= 1) return {};
  auto events = std::make_shared<std::vector<std::unique_ptr<Event>>>();
  for (const auto& [number, lane] : running.lanes) {
    Result<std::unique_ptr<Event>> event = Event::make(running.context);
    // Without an event nothing is known, so the block waits until the lanes are idle anyway.
    if (!event.ok() || !(*event)->record(lane->handle()).ok()) {
      if (!lane->synchronize().ok()) return {};
      continue;
    }
    events->push_back(std::move(*event));
  }
  return [events] {
    for (const auto& event : *events) {
      if (!event->passed()) return false;
    }
    return true;
  };
}

Result<std::shared_ptr<const Context>> CudaDevice::context() {
  TF_ASSIGN(Running* const parts, running());
  return parts->context;
}

Result<BufferPtr> CudaDevice::allocate(size_t bytes, const char* what) {
  TF_ASSIGN(Running* const parts, running());
  TF_ASSIGN(BufferPtr buffer, parts->pool->allocate(bytes, what));
  // What is recorded now will use the block again at each replay, long after it was dropped here.
  if (Capture* const capture = Capture::current(*parts->context)) capture->keep(buffer);
  return buffer;
}

MemoryStats CudaDevice::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_ || !running_->ok()) return {};
  return (**running_)->pool->stats();
}

void CudaDevice::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (running_ && running_->ok()) (**running_)->pool->reset_peak();
}

void CudaDevice::release_cached() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (running_ && running_->ok()) (**running_)->pool->release_cached();
}

Result<Stream*> CudaDevice::stream(int lane) {
  TF_ASSIGN(Running* const parts, running());
  if (Capture* const capture = Capture::current(*parts->context)) {
    TF_ASSIGN(Lane* const own, capture->lane(lane));
    return own;
  }
  const std::lock_guard<std::mutex> lock(parts->mutex);
  std::unique_ptr<Lane>& made = parts->lanes[lane];
  if (made == nullptr) {
    Result<std::unique_ptr<Lane>> result = Lane::make(parts->context, lane);
    if (!result.ok()) {
      parts->lanes.erase(lane);
      return result.status();
    }
    made = std::move(*result);
  }
  return made.get();
}

Status CudaDevice::copy_in(Stream& stream, void* target, const void* source, size_t bytes) {
  TF_ASSIGN(Running* const parts, running());
  return parts->staging->copy_in(lane_of(stream), target, source, bytes);
}

Status CudaDevice::copy_out(Stream& stream, void* target, const void* source, size_t bytes) {
  TF_ASSIGN(Running* const parts, running());
  return parts->staging->copy_out(lane_of(stream), target, source, bytes);
}

Status CudaDevice::copy(Stream& stream, void* target, const void* source, size_t bytes) {
  if (bytes == 0) return {};
  TF_ASSIGN(Running* const parts, running());
  TF_RETURN_IF_ERROR(parts->context->enter());
  TF_CUDA(*parts->context, cuMemcpyDtoDAsync, address(target), address(source), bytes,
          lane_of(stream).handle());
  return {};
}

Status CudaDevice::fill_zero(Stream& stream, void* target, size_t bytes) {
  if (bytes == 0) return {};
  TF_ASSIGN(Running* const parts, running());
  TF_RETURN_IF_ERROR(parts->context->enter());
  TF_CUDA(*parts->context, cuMemsetD8Async, address(target), 0, bytes, lane_of(stream).handle());
  return {};
}

Status CudaDevice::prepare(std::span<const NodeView> nodes) { return prepare_loops(nodes, *this); }

const KernelList& CudaDevice::kernels(OpId op) const { return kernel_table()[op]; }

Result<std::unique_ptr<CapturedGraph>> CudaDevice::capture(
    Stream&, const std::function<Status(Stream&)>& body) {
  TF_ASSIGN(Running* const parts, running());
  TF_ASSIGN(std::unique_ptr<Graph> graph, Capture::record(parts->context, body));
  return std::unique_ptr<CapturedGraph>(std::move(graph));
}

Status CudaDevice::health() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return {};
  if (!running_->ok()) return running_->status();
  return (**running_)->context->health();
}

Result<const Compiler*> CudaDevice::compiler() {
  TF_ASSIGN(Running* const parts, running());
  const std::lock_guard<std::mutex> lock(parts->mutex);
  if (parts->compiler == nullptr) {
    TF_ASSIGN(const nvidia::NvrtcApi* const nvrtc, stack_.nvrtc());
    Result<std::unique_ptr<Compiler>> made =
        Compiler::make(*nvrtc, gpu_.capability, DiskCache::from_settings("cuda"));
    if (!made.ok()) return with_cure(made.status(), nvidia::Library::kNvrtc);
    parts->compiler = std::move(*made);
  }
  return parts->compiler.get();
}

Result<LoopKernels*> CudaDevice::loop_kernels() {
  TF_ASSIGN(const Compiler* const compiler, this->compiler());
  TF_ASSIGN(Running* const parts, running());
  const std::lock_guard<std::mutex> lock(parts->mutex);
  if (parts->loop_kernels == nullptr) {
    parts->loop_kernels = std::make_unique<LoopKernels>(parts->context, *compiler);
  }
  return parts->loop_kernels.get();
}

LoopKernels* CudaDevice::made_loop_kernels() {
  const Result<Running*> parts = running();
  if (!parts.ok()) return nullptr;
  const std::lock_guard<std::mutex> lock((*parts)->mutex);
  return (*parts)->loop_kernels.get();
}

Status CudaDevice::with_cure(const Status& failure, nvidia::Library library) {
  const Result<nvidia::OpenLibrary> file = stack_.library(library);
  const Result<int> major = stack_.cuda_major();
  if (!file.ok() || !major.ok()) return failure;
  return error(failure.code(), file->path, ": ", failure.message(), " ",
               nvidia::how_to_install(library, *major, true));
}

Result<MatmulPlans*> CudaDevice::matmul_plans() {
  TF_ASSIGN(Running* const parts, running());
  const std::lock_guard<std::mutex> lock(parts->mutex);
  if (parts->matmul_plans == nullptr) {
    TF_ASSIGN(const nvidia::CublasLtApi* const cublaslt, stack_.cublaslt());
    Result<std::unique_ptr<MatmulPlans>> plans = MatmulPlans::make(*cublaslt, parts->context);
    if (!plans.ok()) return with_cure(plans.status(), nvidia::Library::kCublasLt);
    parts->matmul_plans = std::move(*plans);
  }
  return parts->matmul_plans.get();
}

Result<std::shared_ptr<const MatmulPlan>> CudaDevice::find_matmul(const MatmulProblem& problem,
                                                                  bool tune) {
  TF_ASSIGN(Running* const parts, running());
  TF_ASSIGN(MatmulPlans* const plans, matmul_plans());
  if (!tune || Capture::current(*parts->context) != nullptr) {
    return plans->find(problem, std::nullopt);
  }
  TF_ASSIGN(Stream* const lane, stream(0));
  return plans->find(problem, MatmulPlans::Tuning{*parts->pool, lane_of(*lane)});
}

CudaDevices make_cuda_devices(nvidia::Stack& stack) {
  CudaDevices made;
  const nvidia::Inventory& inventory = stack.inventory();
  if (inventory.problem) {
    made.why_not = inventory.problem->line();
    return made;
  }
  const Result<int> major = stack.cuda_major();
  if (!major.ok()) {
    made.why_not = major.status().message();
    return made;
  }
  for (const nvidia::Gpu& gpu : inventory.gpus) {
    if (!gpu.refusal.empty()) continue;
    const Device device{Device::kGpu, static_cast<uint8_t>(made.devices.size())};
    made.devices.push_back(std::make_unique<CudaDevice>(stack, gpu, device));
  }
  return made;
}

}  // namespace tracefire::cuda
