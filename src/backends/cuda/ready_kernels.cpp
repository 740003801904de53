// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/ready_kernels.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/cuda/ready_images.h"

namespace tracefire::cuda {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kBlocksPerMultiprocessor = 8;

/// Images by the names of their kernels.
const std::multimap<std::string_view, const ReadyImage*>& images_by_kernel() {
  static const auto& images = *[] {
    auto* const made = new std::multimap<std::string_view, const ReadyImage*>;
    for (const auto all : {ready_images(), ready_loop_images()}) {
      for (const ReadyImage& image : all) {
        for (const std::string_view kernel : image.kernels) made->emplace(kernel, &image);
      }
    }
    return made;
  }();
  return images;
}

/// Machine code runs on GPUs of its major architecture from its minor on; PTX on all newer ones.
bool fits(const ReadyImage& image, int capability) {
  if (image.is_ptx) return image.capability <= capability;
  return image.capability / 10 == capability / 10 && image.capability <= capability;
}

const ReadyImage* choose(const std::string& name, int capability) {
  const ReadyImage* best = nullptr;
  const auto [first, last] = images_by_kernel().equal_range(name);
  for (auto it = first; it != last; ++it) {
    const ReadyImage& image = *it->second;
    if (!fits(image, capability)) continue;
    const bool nearer = best == nullptr || (best->is_ptx && !image.is_ptx) ||
                        (best->is_ptx == image.is_ptx && image.capability > best->capability);
    if (nearer) best = &image;
  }
  return best;
}

}  // namespace

Result<Function> ready_kernel(CudaDevice& device, const std::string& name) {
  static std::mutex mutex;
  static auto& modules =
      *new std::map<std::pair<const Context*, const ReadyImage*>, std::shared_ptr<Module>>;
  TF_ASSIGN(std::shared_ptr<const Context> context, device.context());
  const ReadyImage* image = choose(name, context->capability());
  if (image == nullptr) {
    return error(ErrorCode::kInternal, "no ready kernel '", name, "' fits compute capability ",
                 context->capability(), "; please report it");
  }
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Module>& module = modules[{context.get(), image}];
  if (!module) {
    Image code;
    code.bytes.assign(reinterpret_cast<const char*>(image->data.data()), image->data.size());
    code.architecture = image->capability;
    // Kernels compiled for 9.0 and newer wait for the one before them; older code does not.
    TF_ASSIGN(module, Module::load(context, code, image->capability >= 90));
  }
  return module->function(name);
}

bool has_ready_kernel(const CudaDevice& device, const std::string& name) {
  return choose(name, device.gpu().capability) != nullptr;
}

LaunchShape grid_over(int64_t elements, const CudaDevice& device) {
  const int64_t most = kBlocksPerMultiprocessor * std::max(1, device.gpu().multiprocessors);
  LaunchShape shape;
  shape.block[0] = static_cast<unsigned>(kThreads);
  shape.grid[0] =
      static_cast<unsigned>(std::clamp<int64_t>((elements + kThreads - 1) / kThreads, 1, most));
  return shape;
}

}  // namespace tracefire::cuda
