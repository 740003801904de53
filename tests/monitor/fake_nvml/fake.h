// SPDX-License-Identifier: Apache-2.0
// A scripted NVML. TF_FAKE_NVML names a JSON file, read again at each nvmlDeviceGetCount_v2, which
// the monitor calls once a sample: a test changes what happens by writing the file anew.
//
// {"init": 0, "driver": "580.159.04", "cuda": 13000, "count_result": 0,
//  "fail": {"nvmlDeviceGetPowerUsage": 3},        code of a function, for every GPU
//  "fail_after": {"calls": 500, "code": 15},      everything fails after so many calls
//  "hang": {"function": "nvmlDeviceGetPowerUsage", "seconds": 60},
//  "copies": 16,                                  the first GPU so many times
//  "gpus": [{"name": …, "uuid": …, "values": {"busy": 87, …}, "wave": 20, "fail": {…},
//            "processes": [{"pid": 1, "memory": 1, "sm": 50, "kind": "compute"}],
//            "mig": [{"gi": 1, "ci": 0, "name": …, "uuid": …, "values": {…}}],
//            "xids": [{"id": 1, "xid": 79}]}]}
//
// Values are in NVML's own units; what is not given is that of an H200 under load.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#define TF_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

using Json = nlohmann::json;

/// What a device handle points to.
struct Handle {
  int gpu = 0;
  int instance = -1;  ///< place in "mig", -1 for the GPU itself
};

/// Reads the file anew.
void reload();
const Json& config();
const Json& gpu(int index);
int gpu_count();
Handle* handle_of(int gpu, int instance);
const Handle& at(void* device);

/// The code that `function` is to return for a device; counts the call, and hangs where it is told
/// to.
int result(const char* function, void* device = nullptr);
/// A number of "values", of the GPU or of the instance.
double value(void* device, const char* name, double other);
/// "wave" swings percentages around their value over time.
double swinging(void* device, const char* name, double other);
int copy_text(const std::string& text, char* out, unsigned length);

}  // namespace fake
