// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/beside.h"

#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// PyTorch pins one version, in its metadata or, of a release that is not there, in the tables.
void add_torch(const Data& data, const Environment* env, const Framework& fw, CudnnNeed* need) {
  const Dist* dist = env == nullptr ? nullptr : env->dist(fw.dist);
  if (dist != nullptr && !dist->requirements.empty()) {
    for (const char* major : {"11", "12", "13"})
      if (std::string pin = exact_pin(*dist, std::string("nvidia-cudnn-cu") + major); !pin.empty())
        need->cuda = major, need->exact = pin;
    return;  // a wheel without the pin holds the libraries itself
  }
  const Json* release = data.release("torch", fw.version);
  const std::string pin = release == nullptr ? "" : text_of(*release, "cudnn");
  if (pin.empty()) return;
  need->cuda = leading(fw.cuda, 1);
  // The tables tell the default build's; those for other CUDA 12 and 13 are made with the same.
  (need->cuda == "11" && fw.variant == "cu118" ? need->least : need->exact) = pin;
}

}  // namespace

std::string exact_pin(const Dist& dist, const std::string& package) {
  for (const Requirement& requirement : dist.requirements)
    if (requirement.name == package && requirement.conditions.rfind("==", 0) == 0)
      return requirement.conditions.substr(2);
  return "";
}

std::string CudnnNeed::requirement() const {
  if (!exact.empty()) return package() + "==" + exact;
  return package() + ">=" + least + ",<" + std::to_string(major_of(least) + 1);
}

std::string CudnnNeed::words() const {
  return (exact.empty() ? "needs " : "pins ") + requirement();
}

CudnnNeed cudnn_need(const Data& data, const Environment* env, const Framework& fw) {
  CudnnNeed need;
  need.id = fw.id;
  need.product = fw.product;
  need.version = fw.version;
  need.dist = fw.dist;
  if (fw.build != Build::kGpu || fw.conda) return need;
  if (fw.id == "torch") add_torch(data, env, fw, &need);
  if (fw.id == "tensorflow") {
    const Json* release = data.release("tensorflow", fw.version);
    auto extra = release == nullptr ? Json::const_iterator() : release->find("extra");
    // Older ones open what the system has.
    if (release == nullptr || extra == release->end() || !extra->is_boolean() ||
        !extra->get<bool>())
      return need;
    // What it runs with: the extra of some releases pins more than that.
    need.least =
        leading(fw.cudnn.find('.') == fw.cudnn.npos ? text_of(*release, "cudnn") : fw.cudnn, 2);
    need.cuda = leading(fw.cuda, 1);
  }
  if (fw.id == "jax") {
    need.least = leading(fw.cudnn, 2);
    need.cuda = leading(fw.cuda, 1);
    const Dist* plugin = env == nullptr ? nullptr : env->dist(fw.plugin);
    if (plugin != nullptr)
      for (const Requirement& requirement : plugin->requirements)
        if (requirement.name.rfind("nvidia-cudnn", 0) == 0)
          if (std::string least = between(requirement.conditions, ">=", ",<"); !least.empty())
            need.least = least;
  }
  if (need.exact.empty() && need.least.empty()) need.cuda.clear();
  return need;
}

std::string clash_between(const CudnnNeed& one, const CudnnNeed& other) {
  if (!one.by_pip() || !other.by_pip()) return "";
  const std::string both = one.product + " " + one.version + " " + one.words() + ", " +
                           other.product + " " + other.version + " " + other.words();
  if (one.cuda != other.cuda)
    return both + ", and the packages of both CUDA versions own the same files";
  const std::string &a = one.exact.empty() ? one.least : one.exact,
                    &b = other.exact.empty() ? other.least : other.exact;
  bool clash = major_of(a) != major_of(b);
  if (!one.exact.empty() && !other.exact.empty()) clash |= compare_versions(a, b) != 0;
  if (!one.exact.empty() && other.exact.empty())
    clash |= compare_versions(leading(a, 2), leading(b, 2)) < 0;
  if (one.exact.empty() && !other.exact.empty())
    clash |= compare_versions(leading(b, 2), leading(a, 2)) < 0;
  return clash ? both : "";
}

std::string pinned_cudnn(const std::vector<CudnnNeed>& needs) {
  for (const CudnnNeed& need : needs)
    if (need.by_pip() && !need.exact.empty()) return need.requirement();
  return "";
}

}  // namespace tracefire::doctor
