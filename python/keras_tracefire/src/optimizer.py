# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps without conditionals on variables, so that one graph serves every step."""

from keras.src.optimizers import base_optimizer
from keras_tracefire.src.ops._create import zeros_like
from keras_tracefire.src.ops._tensor import convert_to_tensor
from tracefire import _core
from tracefire import _ops



def _choose(pred, new, old):
    return [_ops.select(pred, convert_to_tensor(a), convert_to_tensor(b)) for a, b in zip(new, old)]


class TracefireOptimizer(base_optimizer.BaseOptimizer):
    def _backend_apply_gradients(self, grads, trainable_variables):
        if self.gradient_accumulation_steps:
            self._accumulate(grads, trainable_variables)
        else:
            self._step(grads, trainable_variables)
        if self.use_ema:
            self._update_model_variables_moving_average(self._trainable_variables)
            if self.ema_overwrite_frequency:
                due = (self.iterations + 1) % self.ema_overwrite_frequency == 0
                averages = self._model_variables_moving_average
                for variable, average in zip(self._trainable_variables, averages):
                    if average is not None:
                        (value,) = _choose(due, [average.value], [variable.value])
                        variable.assign(value)

    def _step(self, grads, trainable_variables):
        grads = self._clip_gradients(grads)
        self._apply_weight_decay(trainable_variables)
        self._backend_update_step(grads, trainable_variables, self.learning_rate)

    def _accumulate(self, grads, trainable_variables):
        """Adds `grads` up; every so many steps applies their mean and starts again."""
        steps = self.gradient_accumulation_steps
        due = (self._iterations + 1) % steps == 0
        # Optimizer state and weights change only when an update is due.
        state = list(trainable_variables) + list(self.variables)
        before = [v.value for v in state]
        at = [self._get_variable_index(v) for v in trainable_variables]
        sums = [self._accumulated_gradients[i] for i in at]
        totals = [g + s.value for g, s in zip(grads, sums)]
        self._step([t / steps for t in totals], trainable_variables)
        for variable, value in zip(state, _choose(due, [v.value for v in state], before)):
            variable.assign(value)
        zeros = [zeros_like(t) for t in totals]
        for total, value in zip(sums, _choose(due, zeros, totals)):
            total.assign(value)
