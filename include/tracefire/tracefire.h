// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything that a program uses; each header can be included alone as well.
#include "tracefire/config.h"
#include "tracefire/control.h"
#include "tracefire/data.h"
#include "tracefire/error.h"
#include "tracefire/error_codes.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"
#include "tracefire/half.h"
#include "tracefire/nn.h"
#include "tracefire/observe.h"
#include "tracefire/ops.h"
#include "tracefire/optim.h"
#include "tracefire/profiler.h"
#include "tracefire/summary.h"
#include "tracefire/tensor.h"
#include "tracefire/version.h"
