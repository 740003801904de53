// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/visible.h"

#include <algorithm>

#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

/// The GPUs that the driver lists.
std::vector<size_t> listed(const Machine& m) {
  std::vector<size_t> out;
  for (size_t i = 0; i < m.gpus.size(); ++i)
    if (!unlisted(m, m.gpus[i])) out.push_back(i);
  return out;
}

std::string number_of(const Machine& m, size_t i) {
  std::string index = cell(m.gpus[i].measured, "index");
  return index.empty() ? std::to_string(i) : index;
}

std::string uuid_of(const Machine& m, size_t i) {
  std::string uuid = cell(m.gpus[i].measured, "uuid");
  return uuid.empty() && i < m.smi_list.gpu_uuids.size() ? m.smi_list.gpu_uuids[i] : uuid;
}

/// What one entry names: GPUs of the machine, or why it names none. Neither where the machine does
/// not tell.
struct Named {
  std::vector<size_t> gpus;
  std::string fault;  ///< continues "… names X, "
  std::string alone;  ///< in place of `fault` and what follows from it, where nothing comes before
};

Named by_number(const Machine& m, std::string_view digits) {
  Named out;
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  const std::vector<size_t> all = listed(m);
  for (size_t i : all)
    if (number_of(m, i) == digits) out.gpus.push_back(i);
  // Instances of MIG are numbered too, and a machine without a list may have more than it shows.
  if (out.gpus.empty() && !all.empty() && m.smi_list.mig_uuids.empty())
    out.fault = "but the machine has only " + std::to_string(all.size()) + " GPU" +
                (all.size() == 1 ? " (number 0)" : "s (numbered from 0)");
  return out;
}

Named by_uuid(const Machine& m, const std::string& item) {
  Named out;
  std::string id = lower(item.substr(4));
  if (id.empty() || id.find_first_not_of("0123456789abcdef-") != std::string::npos) {
    out.fault = "which is no UUID of a GPU";
    return out;
  }
  const std::vector<size_t> all = listed(m);
  bool known = !all.empty();
  for (size_t i : all) {
    std::string uuid = lower(uuid_of(m, i));
    known &= !uuid.empty();
    if (uuid.rfind("gpu-" + id, 0) == 0) out.gpus.push_back(i);
  }
  if (out.gpus.size() > 1) {
    out.gpus.clear();
    out.fault = "with which the UUIDs of several GPUs begin";
  } else if (out.gpus.empty() && known) {
    out.fault = "which nvidia-smi -L does not list";
  }
  return out;
}

Named named_by(const Machine& m, const std::string& item) {
  if (item.empty()) return {{}, "with an empty entry", ""};
  const size_t digits = item.find_first_not_of("0123456789");
  // Letters after a number are left out, as strtol does.
  if (digits != 0) return by_number(m, std::string_view(item).substr(0, digits));
  if (item[0] == '-') return {{}, "which is no GPU's number", "which hides every GPU"};
  if (item.rfind("GPU-", 0) == 0) return by_uuid(m, item);
  if (item.rfind("MIG-", 0) == 0) return {};  // mig_choice_facts() judges instances
  return {{}, "which names no GPU", "which names no GPU"};
}

/// The sentence for an entry that ends the list.
std::string end_of_list(const VisibleDevices& so_far, const std::string& item, const Named& named) {
  const bool first = so_far.entries == 0;
  const std::string begin = "CUDA_VISIBLE_DEVICES is " + so_far.shown + ", ";
  if (first && !named.alone.empty()) return begin + named.alone + ".";
  const bool told = item.empty() || item == so_far.shown;
  return begin + (told ? "" : "and names " + item + ", ") + named.fault +
         (first ? ": no GPU is left." : ": CUDA stops there and sees only what comes before.");
}

}  // namespace

VisibleDevices visible_devices(const Machine& m) {
  VisibleDevices out;
  auto it = m.env.find("CUDA_VISIBLE_DEVICES");
  out.set = it != m.env.end();
  if (!out.set) {
    out.gpus = listed(m);
    return out;
  }
  const std::string value(trim(it->second));
  out.shown = value.empty() ? "empty" : value;
  if (value.empty()) {
    out.hides_all = true;
    out.reason = "CUDA_VISIBLE_DEVICES is set and empty, which hides every GPU.";
    return out;
  }
  for (std::string_view part : split(value, ',')) {
    const std::string item(trim(part));
    Named named = named_by(m, item);
    if (!named.fault.empty()) {
      out.hides_all = out.entries == 0;
      out.reason = end_of_list(out, item, named);
      return out;
    }
    for (size_t gpu : named.gpus) {
      if (std::find(out.gpus.begin(), out.gpus.end(), gpu) != out.gpus.end()) {
        out.hides_all = true;
        out.reason = "CUDA_VISIBLE_DEVICES is " + value + " and names GPU " + number_of(m, gpu) +
                     " twice, which CUDA refuses (error 101, invalid device ordinal).";
        return out;
      }
      out.gpus.push_back(gpu);
    }
    ++out.entries;
  }
  return out;
}

std::vector<Gpu> visible_gpus(const Machine& machine) {
  std::vector<size_t> seen = visible_devices(machine).gpus;
  if (seen.empty()) seen = listed(machine);
  std::vector<Gpu> out;
  for (size_t i : seen) out.push_back(machine.gpus[i]);
  return out;
}

}  // namespace tracefire::doctor
