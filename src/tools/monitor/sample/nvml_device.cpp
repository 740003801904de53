// SPDX-License-Identifier: Apache-2.0
// What is read of one GPU: utilisation, memory, power, clocks, links, errors.
#include <chrono>

#include "tools/monitor/sample/nvml_call.h"
#include "tools/monitor/sample/nvml_source.h"

namespace tracefire::monitor {
namespace {

constexpr double kPercent = 0.01;
constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;
constexpr double kKilo = 1e3;
constexpr double kKibi = 1024;
constexpr int64_t kSlowMicroseconds = 5'000'000;
constexpr int kLost = nvidia::kNvmlGpuIsLost;
enum VideoClock : int { kNvmlClockVideo = 3 };

int64_t microseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

template <class T, class F, class... Arguments>
Reading ask(F* function, double scale, nvidia::NvmlDevice device, Arguments... arguments) {
  T value{};
  const int code = nvml_call(function, device, arguments..., &value);
  return nvml_reading(code, static_cast<double>(value), scale);
}

}  // namespace

void NvmlSource::read_device(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  g[Metric::kXidErrors] = nvml_reading(device->xid_code, static_cast<double>(device->xid_errors));
  g[Metric::kXidLast] = nvml_reading(device->xid_code, device->xid_last);
  int code = static_cast<int>(device->handle_code);
  if (device->handle != nullptr) {
    nvidia::NvmlMemory memory{};
    code = api_->nvmlDeviceGetMemoryInfo(device->handle, &memory);
  }
  // A GPU that fell off the bus answers every question slowly and in the same way: ask no more.
  if (device->handle == nullptr || code == kLost) {
    g.lost = true;
    g.lost_code = code;
    g.throttle_code = g.process_code = code;
    for (Reading& reading : g.readings) {
      if (!reading.ok()) reading = Reading::missing(code);
    }
    return;
  }
  read_basics(device, gpu);
  read_clocks(device, gpu);
  read_slow(device, gpu);
  read_fields(device, gpu);
  read_errors(device, gpu);
  if (scope_ == Scope::kAll) {
    read_activity(device, gpu);
    read_links(device, gpu);
    read_nvlink_rates(device, gpu);
  }
  read_instances(device, gpu);
  if (scope_ == Scope::kAll) read_processes(device, gpu);
}

void NvmlSource::read_activity(Device* device, Gpu* gpu) {
  if (device->gpm != nullptr) return device->gpm->read(&gpu->readings);
  for (const Metric m : {Metric::kEngine, Metric::kSmActivity, Metric::kSmOccupancy,
                         Metric::kTensor, Metric::kDram}) {
    (*gpu)[m] =
        Reading::missing(more_.nvmlGpmQueryDeviceSupport == nullptr ? Reading::kNoFunction
                                                                    : nvidia::kNvmlNotSupported);
  }
}

void NvmlSource::read_basics(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  const nvidia::NvmlDevice h = device->handle;
  nvidia::NvmlUtilization busy{};
  int code = nvml_call(api_->nvmlDeviceGetUtilizationRates, h, &busy);
  g[Metric::kBusy] = nvml_reading(code, busy.gpu, kPercent);
  g[Metric::kMemoryBusy] = nvml_reading(code, busy.memory, kPercent);
  unsigned percent = 0;
  unsigned period = 0;
  code = nvml_call(more_.nvmlDeviceGetEncoderUtilization, h, &percent, &period);
  g[Metric::kEncoder] = nvml_reading(code, percent, kPercent);
  code = nvml_call(more_.nvmlDeviceGetDecoderUtilization, h, &percent, &period);
  g[Metric::kDecoder] = nvml_reading(code, percent, kPercent);

  // Version 2 leaves out what driver and firmware reserve, as nvidia-smi does.
  nvidia::NvmlMemoryV2 memory{};
  memory.version = nvidia::kNvmlMemoryV2;
  code = nvml_call(more_.nvmlDeviceGetMemoryInfo_v2, h, &memory);
  g[Metric::kMemoryReserved] = nvml_reading(code, static_cast<double>(memory.reserved));
  if (code != nvidia::kNvmlSuccess) {
    nvidia::NvmlMemory old{};
    code = api_->nvmlDeviceGetMemoryInfo(h, &old);
    memory.total = old.total;
    memory.free = old.free;
    memory.used = old.used;
  }
  g[Metric::kMemoryTotal] = nvml_reading(code, static_cast<double>(memory.total));
  g[Metric::kMemoryFree] = nvml_reading(code, static_cast<double>(memory.free));
  g[Metric::kMemoryUsed] = nvml_reading(code, static_cast<double>(memory.used));
  nvidia::NvmlBar1 bar1{};
  code = nvml_call(more_.nvmlDeviceGetBAR1MemoryInfo, h, &bar1);
  g[Metric::kBar1Total] = nvml_reading(code, static_cast<double>(bar1.total));
  g[Metric::kBar1Used] = nvml_reading(code, static_cast<double>(bar1.used));

  g[Metric::kPower] = ask<unsigned>(api_->nvmlDeviceGetPowerUsage, kMilli, h);
  g[Metric::kPowerLimit] = ask<unsigned>(api_->nvmlDeviceGetEnforcedPowerLimit, kMilli, h);
  g[Metric::kEnergy] =
      ask<unsigned long long>(more_.nvmlDeviceGetTotalEnergyConsumption, kMilli, h);
  const int sensor = nvidia::kNvmlTemperatureGpu;
  g[Metric::kTemperature] = ask<unsigned>(api_->nvmlDeviceGetTemperature, 1, h, sensor);
  g[Metric::kFan] = ask<unsigned>(more_.nvmlDeviceGetFanSpeed, kPercent, h);
  g[Metric::kPcieGeneration] = ask<unsigned>(api_->nvmlDeviceGetCurrPcieLinkGeneration, 1, h);
  g[Metric::kPcieWidth] = ask<unsigned>(api_->nvmlDeviceGetCurrPcieLinkWidth, 1, h);
  g[Metric::kPcieReplays] = ask<unsigned>(more_.nvmlDeviceGetPcieReplayCounter, 1, h);
  g[Metric::kPersistence] = ask<int>(api_->nvmlDeviceGetPersistenceMode, 1, h);
  g[Metric::kComputeMode] = ask<int>(api_->nvmlDeviceGetComputeMode, 1, h);
  g[Metric::kDisplayActive] = ask<int>(more_.nvmlDeviceGetDisplayActive, 1, h);
  g[Metric::kDisplayMode] = ask<int>(more_.nvmlDeviceGetDisplayMode, 1, h);
}

void NvmlSource::read_clocks(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  const nvidia::NvmlDevice h = device->handle;
  const auto now = [&](int which) {
    return ask<unsigned>(api_->nvmlDeviceGetClockInfo, kMega, h, which);
  };
  g[Metric::kClockGraphics] = now(nvidia::kNvmlClockGraphics);
  g[Metric::kClockSm] = now(nvidia::kNvmlClockSm);
  g[Metric::kClockMemory] = now(nvidia::kNvmlClockMemory);
  g[Metric::kClockVideo] = now(kNvmlClockVideo);
  g[Metric::kPerformanceState] = ask<int>(more_.nvmlDeviceGetPerformanceState, 1, h);
  unsigned long long reasons = 0;
  g.throttle_code = nvml_call(more_.nvmlDeviceGetCurrentClocksEventReasons, h, &reasons);
  g.throttle = reasons;
  if (g.throttle_code != nvidia::kNvmlSuccess) {  // its name before driver 535
    g.throttle_code = nvml_call(api_->nvmlDeviceGetCurrentClocksThrottleReasons, h, &g.throttle);
  }
}

/// What hardly changes, and costs many calls of the driver.
void NvmlSource::read_slow(Device* device, Gpu* gpu) {
  static constexpr Metric kSlow[] = {Metric::kPowerDefaultLimit,   Metric::kPowerMaxLimit,
                                     Metric::kSlowdownTemperature, Metric::kClockGraphicsMax,
                                     Metric::kClockSmMax,          Metric::kClockMemoryMax,
                                     Metric::kPcieGenerationMax,   Metric::kPcieWidthMax,
                                     Metric::kNvlinkActive,        Metric::kNvlinkErrors};
  const int64_t now = microseconds_now();
  if (now >= device->slow_next) {
    ask_slow(*device, &device->slow);
    device->slow_next = now + kSlowMicroseconds;
  }
  for (const Metric m : kSlow) (*gpu)[m] = device->slow[static_cast<size_t>(m)];
}

void NvmlSource::ask_slow(const Device& device, Readings* slow) {
  const auto at = [slow](Metric m) -> Reading& { return (*slow)[static_cast<size_t>(m)]; };
  const nvidia::NvmlDevice h = device.handle;
  const auto clock = [&](int which) {
    return ask<unsigned>(api_->nvmlDeviceGetMaxClockInfo, kMega, h, which);
  };
  at(Metric::kPowerDefaultLimit) =
      ask<unsigned>(more_.nvmlDeviceGetPowerManagementDefaultLimit, kMilli, h);
  unsigned least = 0;
  unsigned most = 0;
  const int code = nvml_call(more_.nvmlDeviceGetPowerManagementLimitConstraints, h, &least, &most);
  at(Metric::kPowerMaxLimit) = nvml_reading(code, most, kMilli);
  at(Metric::kSlowdownTemperature) =
      ask<unsigned>(more_.nvmlDeviceGetTemperatureThreshold, 1, h, nvidia::kNvmlThresholdSlowdown);
  at(Metric::kClockGraphicsMax) = clock(nvidia::kNvmlClockGraphics);
  at(Metric::kClockSmMax) = clock(nvidia::kNvmlClockSm);
  at(Metric::kClockMemoryMax) = clock(nvidia::kNvmlClockMemory);
  at(Metric::kPcieGenerationMax) = ask<unsigned>(api_->nvmlDeviceGetMaxPcieLinkGeneration, 1, h);
  at(Metric::kPcieWidthMax) = ask<unsigned>(api_->nvmlDeviceGetMaxPcieLinkWidth, 1, h);
  if (scope_ == Scope::kAll) ask_nvlinks(device, slow);
}

void NvmlSource::ask_nvlinks(const Device& device, Readings* slow) {
  const nvidia::NvmlDevice h = device.handle;
  int active = 0;
  int code = Reading::kNoFunction;
  double errors = 0;
  int error_code = nvidia::kNvmlNotSupported;
  for (unsigned link = 0; link < nvidia::kNvmlMaxLinks; ++link) {
    int up = 0;
    const int answer = nvml_call(more_.nvmlDeviceGetNvLinkState, h, link, &up);
    if (link == 0) code = answer;
    if (answer != nvidia::kNvmlSuccess) break;
    if (up == 0) continue;
    ++active;
    for (int counter = 0; counter < 3; ++counter) {  // replay, recovery, CRC
      unsigned long long count = 0;
      const int got = nvml_call(more_.nvmlDeviceGetNvLinkErrorCounter, h, link, counter, &count);
      if (got != nvidia::kNvmlSuccess) continue;
      error_code = got;
      errors += static_cast<double>(count);
    }
  }
  (*slow)[static_cast<size_t>(Metric::kNvlinkActive)] = nvml_reading(code, active);
  (*slow)[static_cast<size_t>(Metric::kNvlinkErrors)] = nvml_reading(error_code, errors);
}

void NvmlSource::read_fields(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  const struct {
    unsigned field;
    unsigned scope;
    Metric metric;
    double scale;
  } wanted[] = {
      {nvidia::kNvmlFieldMemoryTemperature, 0, Metric::kMemoryTemperature, 1},
      {nvidia::kNvmlFieldPowerInstant, 0, Metric::kPowerInstant, kMilli},
      {nvidia::kNvmlFieldPowerAverage, 0, Metric::kPowerAverage, kMilli},
      {nvidia::kNvmlFieldNvlinkTx, ~0u, Metric::kNvlinkTxTotal, kKibi},
      {nvidia::kNvmlFieldNvlinkRx, ~0u, Metric::kNvlinkRxTotal, kKibi},
  };
  constexpr int kCount = static_cast<int>(std::size(wanted));
  nvidia::NvmlFieldValue values[kCount] = {};
  for (int i = 0; i < kCount; ++i) {
    values[i].field = wanted[i].field;
    values[i].scope = wanted[i].scope;
    values[i].result = nvidia::kNvmlNotSupported;
  }
  const int code = nvml_call(more_.nvmlDeviceGetFieldValues, device->handle, kCount, values);
  for (int i = 0; i < kCount; ++i) {
    g[wanted[i].metric] = nvml_reading(code != nvidia::kNvmlSuccess ? code : values[i].result,
                                       values[i].as_number(), wanted[i].scale);
  }
}

void NvmlSource::read_links(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  const nvidia::NvmlDevice h = device->handle;
  // The GPU measures 20 ms for each of these: only where the performance counters do not tell.
  if (!g[Metric::kPcieTx].ok()) {
    const int tx = nvidia::kNvmlPcieSent;
    const int rx = nvidia::kNvmlPcieReceived;
    g[Metric::kPcieTx] = ask<unsigned>(api_->nvmlDeviceGetPcieThroughput, kKilo, h, tx);
    g[Metric::kPcieRx] = ask<unsigned>(api_->nvmlDeviceGetPcieThroughput, kKilo, h, rx);
  }
}

void NvmlSource::read_nvlink_rates(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  const int64_t now = microseconds_now();
  const double seconds = static_cast<double>(now - device->nvlink_time) * 1e-6;
  const auto rate = [&](Metric total, Metric per_second, Reading* before) {
    if (!g[per_second].ok()) {
      if (!g[total].ok()) {
        g[per_second] = g[total];
      } else if (!before->ok() || seconds <= 0 || g[total].value < before->value) {
        g[per_second] = Reading::missing(Reading::kNotReady);
      } else {
        g[per_second] = Reading::of((g[total].value - before->value) / seconds);
      }
    }
    *before = g[total];
  };
  rate(Metric::kNvlinkTxTotal, Metric::kNvlinkTx, &device->nvlink_tx_before);
  rate(Metric::kNvlinkRxTotal, Metric::kNvlinkRx, &device->nvlink_rx_before);
  device->nvlink_time = now;
}

void NvmlSource::read_errors(Device* device, Gpu* gpu) {
  Gpu& g = *gpu;
  const nvidia::NvmlDevice h = device->handle;
  int current = 0;
  int pending = 0;
  int code = nvml_call(more_.nvmlDeviceGetEccMode, h, &current, &pending);
  g[Metric::kEccMode] = nvml_reading(code, current);
  const auto errors = [&](int type, int counter) {
    return ask<unsigned long long>(api_->nvmlDeviceGetTotalEccErrors, 1, h, type, counter);
  };
  g[Metric::kEccCorrected] = errors(0, 0);
  g[Metric::kEccUncorrected] = errors(1, 0);
  g[Metric::kEccCorrectedTotal] = errors(0, 1);
  g[Metric::kEccUncorrectedTotal] = errors(1, 1);
  unsigned rows[4] = {};
  code = nvml_call(more_.nvmlDeviceGetRemappedRows, h, &rows[0], &rows[1], &rows[2], &rows[3]);
  g[Metric::kRowsCorrected] = nvml_reading(code, rows[0]);
  g[Metric::kRowsUncorrected] = nvml_reading(code, rows[1]);
  g[Metric::kRowsPending] = nvml_reading(code, rows[2]);
  g[Metric::kRowsFailed] = nvml_reading(code, rows[3]);
}

}  // namespace tracefire::monitor
