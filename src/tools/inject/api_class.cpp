// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/api_class.h"

namespace tracefire::inject {
namespace {

using enum ApiClass;

constexpr ApiRange kRuntime[] = {
    {13, 13, kLaunch},     {20, 22, kAllocate},   {25, 26, kAllocate}, {31, 48, kCopy},
    {49, 52, kSet},        {126, 126, kWait},     {131, 131, kWait},   {137, 137, kWait},
    {142, 143, kSet},      {144, 145, kCopy},     {160, 163, kCopy},   {165, 165, kWait},
    {206, 206, kAllocate}, {211, 211, kLaunch},   {213, 214, kLaunch}, {215, 232, kCopy},
    {233, 236, kSet},      {239, 239, kWait},     {243, 244, kSet},    {245, 246, kCopy},
    {249, 250, kCopy},     {269, 270, kLaunch},   {272, 272, kLaunch}, {311, 312, kGraphLaunch},
    {373, 376, kAllocate}, {391, 392, kAllocate}, {430, 431, kLaunch}, {482, 485, kCopy},
    {505, 506, kLaunch},   {509, 512, kCopy},
};
constexpr ApiRange kDriver[] = {
    {17, 17, kWait},     {43, 70, kCopy},     {71, 82, kSet},           {115, 117, kLaunch},
    {121, 121, kWait},   {126, 126, kWait},   {216, 227, kSet},         {232, 234, kCopy},
    {248, 248, kCopy},   {249, 254, kSet},    {276, 293, kCopy},        {305, 306, kCopy},
    {307, 307, kLaunch}, {318, 321, kCopy},   {397, 410, kCopy},        {411, 416, kSet},
    {418, 427, kCopy},   {428, 433, kSet},    {440, 440, kWait},        {442, 442, kLaunch},
    {477, 478, kLaunch}, {480, 480, kLaunch}, {514, 515, kGraphLaunch}, {652, 653, kLaunch},
    {776, 779, kCopy},   {796, 799, kCopy},   {800, 800, kWait},
};

}  // namespace

std::span<const ApiRange> runtime_ranges() { return kRuntime; }
std::span<const ApiRange> driver_ranges() { return kDriver; }

int api_class(bool runtime, uint32_t number) {
  for (const ApiRange& range : runtime ? runtime_ranges() : driver_ranges()) {
    if (number >= range.first && number <= range.last) return static_cast<int>(range.work);
  }
  return 0;
}

}  // namespace tracefire::inject
